/** What makes pods: deployments, sets, jobs. */
import type { DaemonSet, Deployment, ReplicaSet, StatefulSet } from '#apis/apps/v1.ts'
import type { CronJob, Job } from '#apis/batch/v1.ts'
import type { Pod, ReplicationController } from '#apis/core/v1.ts'
import { humanDuration } from '#meta/duration.ts'
import { asSelector, type LabelSelector, labelSelectorText } from '#meta/label-selector.ts'
import { labelsText, type Selector, selectorFromLabels, selectorText } from '#meta/labels.ts'
import type { KubeObject } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'

import { storageClassOf } from './claim.ts'
import { replicaSetsOf } from './deployment-sets.ts'
import type { Surroundings } from './describer.ts'
import { Page } from './page.ts'
import { putPodTemplate } from './pods.ts'
import {
  boolText,
  controllerText,
  listText,
  putAnnotations,
  putConditions,
  putEventsOf,
  putHead,
  putLabels,
} from './sections.ts'
import { dateIfAny, dateText } from './times.ts'

/** `2 Running / 0 Waiting / 0 Succeeded / 0 Failed` of the pods that a controller has. */
async function podsText(around: Surroundings, owner: KubeObject, selector: Selector): Promise<string> {
  const labels = selectorText(selector)
  const pods = await around.list<Pod>('v1/pods', owner.metadata.namespace ?? '', { labels })
  const own = pods.filter(({ metadata }) =>
    metadata.ownerReferences?.some(({ controller, uid }) => controller === true && uid === owner.metadata.uid),
  )
  const count = (phase: string): number => own.filter(({ status }) => status.phase === phase).length
  const [running, waiting, succeeded, failed] = ['Running', 'Pending', 'Succeeded', 'Failed'].map(count)
  return `${running} Running / ${waiting} Waiting / ${succeeded} Succeeded / ${failed} Failed`
}

function putLabelsAndAnnotations(page: Page, { metadata }: KubeObject): void {
  putLabels(page, 'Labels', metadata.labels)
  putAnnotations(page, 'Annotations', metadata.annotations)
}

function putName(page: Page, { metadata }: KubeObject): void {
  page.rows(0, [
    ['Name', metadata.name],
    ['Namespace', metadata.namespace ?? ''],
  ])
}

export async function describeReplicationController(rc: ReplicationController, around: Surroundings): Promise<string> {
  const page = new Page()
  putName(page, rc)
  page.row(0, 'Selector', labelsText(rc.spec.selector))
  putLabelsAndAnnotations(page, rc)
  page.row(0, 'Replicas', `${rc.status.replicas} current / ${rc.spec.replicas ?? 0} desired`)
  page.row(0, 'Pods Status', await podsText(around, rc, selectorFromLabels(rc.spec.selector)))
  putPodTemplate(page, rc.spec.template)
  putConditions(page, rc.status.conditions)
  await putEventsOf(page, rc, around)
  return page.text()
}

export async function describeReplicaSet(rs: ReplicaSet, around: Surroundings): Promise<string> {
  const page = new Page()
  putName(page, rs)
  page.row(0, 'Selector', labelSelectorText(rs.spec.selector))
  putLabelsAndAnnotations(page, rs)
  page.row(0, 'Controlled By', controllerText(rs))
  page.row(0, 'Replicas', `${rs.status.replicas} current / ${rs.spec.replicas ?? 0} desired`)
  const status = await podsText(around, rs, asSelector(rs.spec.selector)).catch(
    (error: unknown) => `error in fetching pods: ${(error as Error).message}`,
  )
  page.row(0, 'Pods Status', status)
  putPodTemplate(page, rs.spec.template)
  putConditions(page, rs.status.conditions)
  await putEventsOf(page, rs, around)
  return page.text()
}

export async function describeDaemonSet(set: DaemonSet, around: Surroundings): Promise<string> {
  const page = new Page()
  const selector = asSelector(set.spec.selector)
  const { status } = set
  putName(page, set)
  page.row(0, 'Selector', selectorText(selector))
  page.row(0, 'Node-Selector', labelsText(set.spec.template.spec?.nodeSelector))
  putLabelsAndAnnotations(page, set)
  for (const [label, count] of [
    ['Desired Number of Nodes Scheduled', status.desiredNumberScheduled],
    ['Current Number of Nodes Scheduled', status.currentNumberScheduled],
    ['Number of Nodes Scheduled with Up-to-date Pods', status.updatedNumberScheduled],
    ['Number of Nodes Scheduled with Available Pods', status.numberAvailable],
    ['Number of Nodes Misscheduled', status.numberMisscheduled],
  ] as const) {
    page.put(0, `${label}: ${count ?? 0}\n`)
  }
  page.row(0, 'Pods Status', await podsText(around, set, selector))
  putPodTemplate(page, set.spec.template)
  await putEventsOf(page, set, around)
  return page.text()
}

export async function describeStatefulSet(set: StatefulSet, around: Surroundings): Promise<string> {
  const page = new Page()
  const { spec, status } = set
  const selector = asSelector(spec.selector)
  putName(page, set)
  page.row(0, 'CreationTimestamp', dateText(set.metadata.creationTimestamp))
  page.row(0, 'Selector', selectorText(selector))
  putLabelsAndAnnotations(page, set)
  page.row(0, 'Replicas', `${spec.replicas ?? 0} desired | ${status.replicas} total`)
  page.row(0, 'Update Strategy', spec.updateStrategy?.type ?? '')
  const rolling = spec.updateStrategy?.rollingUpdate
  if (rolling?.partition !== undefined) {
    page.row(1, 'Partition', rolling.partition)
    page.row(1, 'MaxUnavailable', rolling.maxUnavailable)
  }
  page.row(0, 'Pods Status', await podsText(around, set, selector))
  putPodTemplate(page, spec.template)
  putClaimTemplates(page, spec.volumeClaimTemplates)
  await putEventsOf(page, set, around)
  return page.text()
}

function putClaimTemplates(page: Page, templates: StatefulSet['spec']['volumeClaimTemplates'] = []): void {
  if (templates.length === 0) return page.row(0, 'Volume Claims', '<none>')
  page.put(0, 'Volume Claims:\n')
  for (const claim of templates) {
    page.row(1, 'Name', claim.metadata.name)
    page.row(1, 'StorageClass', storageClassOf(claim))
    putLabels(page, 'Labels', claim.metadata.labels, '  ')
    putLabels(page, 'Annotations', claim.metadata.annotations, '  ')
    page.row(1, 'Capacity', claim.spec.resources?.requests?.['storage'] ?? '<default>')
    page.row(1, 'Access Modes', listText(claim.spec.accessModes))
  }
}

export async function describeDeployment(deployment: Deployment, around: Surroundings): Promise<string> {
  const page = new Page()
  const { metadata, spec, status } = deployment
  putName(page, deployment)
  page.row(0, 'CreationTimestamp', dateText(metadata.creationTimestamp))
  putLabelsAndAnnotations(page, deployment)
  page.row(0, 'Selector', selectorText(asSelector(spec.selector)))
  const counts = [
    `${spec.replicas ?? 0} desired`,
    `${status.updatedReplicas ?? 0} updated`,
    `${status.replicas ?? 0} total`,
    `${status.availableReplicas ?? 0} available`,
    `${status.unavailableReplicas ?? 0} unavailable`,
  ]
  const rolling = spec.strategy?.rollingUpdate
  page.rows(0, [
    ['Replicas', counts.join(' | ')],
    ['StrategyType', spec.strategy?.type ?? ''],
    ['MinReadySeconds', spec.minReadySeconds ?? 0],
    [
      'RollingUpdateStrategy',
      rolling && `${rolling.maxUnavailable ?? 0} max unavailable, ${rolling.maxSurge ?? 0} max surge`,
    ],
  ])
  putPodTemplate(page, spec.template)
  putConditions(page, status.conditions)
  await putReplicaSets(page, deployment, around)
  await putEventsOf(page, deployment, around)
  return page.text()
}

async function putReplicaSets(page: Page, deployment: Deployment, around: Surroundings): Promise<void> {
  const { old, current } = await replicaSetsOf(deployment, around).catch(() => ({ old: [], current: undefined }))
  if (old.length === 0 && current === undefined) return
  page.row(0, 'OldReplicaSets', setsText(old))
  page.row(0, 'NewReplicaSet', setsText(current === undefined ? [] : [current]))
}

function setsText(sets: readonly ReplicaSet[]): string {
  const texts = sets.map(
    ({ metadata, spec, status }) => `${metadata.name} (${status.replicas}/${spec.replicas ?? 0} replicas created)`,
  )
  return texts.length === 0 ? '<none>' : texts.join(', ')
}

/** As people write it, and nothing for everything. */
function selectorLine(selector: LabelSelector | undefined): string {
  try {
    return selectorText(asSelector(selector))
  } catch (error) {
    return `Failed to get selector: ${(error as Error).message}`
  }
}

export async function describeJob(job: Job, around: Surroundings): Promise<string> {
  const page = new Page()
  const { spec, status } = job
  putName(page, job)
  page.row(0, 'Selector', selectorLine(spec.selector))
  putLabelsAndAnnotations(page, job)
  const { startTime, completionTime } = status
  const took =
    startTime === undefined || completionTime === undefined
      ? undefined
      : humanDuration(epochMsOf(completionTime) - epochMsOf(startTime))
  page.rows(0, [
    ['Controlled By', controllerText(job)],
    ['Parallelism', spec.parallelism],
    ['Completions', spec.completions ?? '<unset>'],
    ['Completion Mode', spec.completionMode],
    ['Suspend', spec.suspend],
    ['Backoff Limit', spec.backoffLimit],
    ['TTL Seconds After Finished', spec.ttlSecondsAfterFinished],
    ['Start Time', dateIfAny(startTime)],
    ['Completed At', dateIfAny(completionTime)],
    ['Duration', took],
    ['Active Deadline Seconds', spec.activeDeadlineSeconds && `${spec.activeDeadlineSeconds}s`],
    ['Pods Statuses', jobPodsText(status)],
    ['Completed Indexes', spec.completionMode === 'Indexed' ? indexesText(status.completedIndexes) : undefined],
  ])
  putPodTemplate(page, spec.template)
  await putEventsOf(page, job, around)
  return page.text()
}

function jobPodsText({ active = 0, succeeded = 0, failed = 0, ready }: Job['status']): string {
  const readyText = ready === undefined ? '' : ` (${ready} Ready)`
  return `${active} Active${readyText} / ${succeeded} Succeeded / ${failed} Failed`
}

/** No more than is read easily, up to a comma. */
const MAX_INDEXES = 50

function indexesText(indexes = ''): string {
  if (indexes === '') return '<none>'
  const end = indexes.indexOf(',', MAX_INDEXES)
  return end < 0 ? indexes : `${indexes.slice(0, end + 1)}...`
}

export async function describeCronJob(cronJob: CronJob, around: Surroundings): Promise<string> {
  const page = new Page()
  const { spec, status } = cronJob
  putHead(page, cronJob)
  const deadline = spec.startingDeadlineSeconds
  page.rows(0, [
    ['Schedule', spec.schedule],
    ['Concurrency Policy', spec.concurrencyPolicy ?? ''],
    ['Suspend', boolText(spec.suspend)],
    ['Time Zone', spec.timeZone ?? '<unset>'],
    ['Successful Job History Limit', spec.successfulJobsHistoryLimit ?? '<unset>'],
    ['Failed Job History Limit', spec.failedJobsHistoryLimit ?? '<unset>'],
    ['Starting Deadline Seconds', deadline === undefined ? '<unset>' : `${deadline}s`],
  ])
  putJobTemplate(page, spec.jobTemplate.spec)
  page.row(0, 'Last Schedule Time', dateIfAny(status.lastScheduleTime) ?? '<unset>')
  const jobs = (status.active ?? []).map(({ name }) => name ?? '')
  page.row(0, 'Active Jobs', jobs.length === 0 ? '<none>' : jobs.join(', '))
  await putEventsOf(page, cronJob, around)
  return page.text()
}

function putJobTemplate(page: Page, job: Job['spec'] | undefined): void {
  const { selector, parallelism = '<unset>', completions = '<unset>', activeDeadlineSeconds: active } = job ?? {}
  page.rows(0, [
    ['Selector', selector === undefined ? '<unset>' : selectorLine(selector)],
    ['Parallelism', parallelism],
    ['Completions', completions],
    ['Active Deadline Seconds', active === undefined ? undefined : `${active}s`],
  ])
  putPodTemplate(page, job?.template)
}
