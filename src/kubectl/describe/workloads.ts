/** Describes workloads: deployments, sets and jobs. */
import type { DaemonSet, Deployment, ReplicaSet, StatefulSet } from '#apis/apps/v1.ts'
import type { CronJob, Job } from '#apis/batch/v1.ts'
import type { PersistentVolumeClaim, Pod, ReplicationController } from '#apis/core/v1.ts'
import { humanDuration } from '#meta/duration.ts'
import { asSelector, type LabelSelector, labelSelectorText } from '#meta/label-selector.ts'
import { labelsText, type Selector, selectorFromLabels, selectorText } from '#meta/labels.ts'
import type { KubeObject } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'

import { storageClassOf } from './claim.ts'
import { replicaSetsOf } from './deployment-sets.ts'
import { type DescribedKinds, describes } from './describer.ts'
import { podTemplateRow } from './pods.ts'
import type { RelatedObjects } from './related.ts'
import { nested, type Part, type Row, unlessEmpty } from './rows.ts'
import {
  boolText,
  conditionRow,
  controllerText,
  head,
  labelRow,
  labelRows,
  listText,
  nameRows,
  orNone,
} from './sections.ts'
import { dateIfAny, dateText } from './times.ts'

export const WORKLOAD_KINDS: DescribedKinds = {
  ReplicationController: describes('v1/replicationcontrollers', controllerRows),
  'Job.batch': describes('batch/v1/jobs', jobRows),
  'CronJob.batch': describes('batch/v1/cronjobs', cronJobRows),
  'StatefulSet.apps': describes('apps/v1/statefulsets', statefulSetRows),
  'Deployment.apps': describes('apps/v1/deployments', deploymentRows),
  'DaemonSet.apps': describes('apps/v1/daemonsets', daemonSetRows),
  'ReplicaSet.apps': describes('apps/v1/replicasets', replicaSetRows),
}

/** `2 Running / 0 Waiting / 0 Succeeded / 0 Failed` for the pods of a controller. */
async function podsText(around: RelatedObjects, owner: KubeObject, selector: Selector): Promise<string> {
  const labels = selectorText(selector)
  const pods = await around.list<Pod>('v1/pods', owner.metadata.namespace ?? '', { labels })
  const own = pods.filter(({ metadata }) =>
    metadata.ownerReferences?.some(({ controller, uid }) => controller === true && uid === owner.metadata.uid),
  )
  const count = (phase: string): number => own.filter(({ status }) => status.phase === phase).length
  const [running, waiting, succeeded, failed] = ['Running', 'Pending', 'Succeeded', 'Failed'].map(count)
  return `${running} Running / ${waiting} Waiting / ${succeeded} Succeeded / ${failed} Failed`
}

const countRow = ({ status, spec }: ReplicationController | ReplicaSet): Row => [
  'Replicas',
  `${status.replicas} current / ${spec.replicas ?? 0} desired`,
]

async function controllerRows(rc: ReplicationController, around: RelatedObjects): Promise<Part[]> {
  return [
    ...nameRows(rc),
    ['Selector', labelsText(rc.spec.selector)],
    ...labelRows(rc),
    countRow(rc),
    ['Pods Status', await podsText(around, rc, selectorFromLabels(rc.spec.selector))],
    podTemplateRow(rc.spec.template),
    conditionRow(rc.status.conditions),
  ]
}

async function replicaSetRows(rs: ReplicaSet, around: RelatedObjects): Promise<Part[]> {
  const pods = await podsText(around, rs, asSelector(rs.spec.selector)).catch(
    (error: unknown) => `error in fetching pods: ${(error as Error).message}`,
  )
  return [
    ...nameRows(rs),
    ['Selector', labelSelectorText(rs.spec.selector)],
    ...labelRows(rs),
    ['Controlled By', controllerText(rs)],
    countRow(rs),
    ['Pods Status', pods],
    podTemplateRow(rs.spec.template),
    conditionRow(rs.status.conditions),
  ]
}

async function daemonSetRows(set: DaemonSet, around: RelatedObjects): Promise<Part[]> {
  const { spec, status } = set
  const selector = asSelector(spec.selector)
  return [
    ...nameRows(set),
    ['Selector', selectorText(selector)],
    ['Node-Selector', labelsText(spec.template.spec?.nodeSelector)],
    ...labelRows(set),
    `Desired Number of Nodes Scheduled: ${status.desiredNumberScheduled ?? 0}`,
    `Current Number of Nodes Scheduled: ${status.currentNumberScheduled ?? 0}`,
    `Number of Nodes Scheduled with Up-to-date Pods: ${status.updatedNumberScheduled ?? 0}`,
    `Number of Nodes Scheduled with Available Pods: ${status.numberAvailable ?? 0}`,
    `Number of Nodes Misscheduled: ${status.numberMisscheduled ?? 0}`,
    ['Pods Status', await podsText(around, set, selector)],
    podTemplateRow(spec.template),
  ]
}

async function statefulSetRows(set: StatefulSet, around: RelatedObjects): Promise<Part[]> {
  const { spec, status } = set
  const selector = asSelector(spec.selector)
  const { partition, maxUnavailable } = spec.updateStrategy?.rollingUpdate ?? {}
  return [
    ...nameRows(set),
    ['CreationTimestamp', dateText(set.metadata.creationTimestamp)],
    ['Selector', selectorText(selector)],
    ...labelRows(set),
    ['Replicas', `${spec.replicas ?? 0} desired | ${status.replicas} total`],
    ['Update Strategy', spec.updateStrategy?.type ?? ''],
    nested(['Partition', partition], ['MaxUnavailable', partition === undefined ? undefined : maxUnavailable]),
    ['Pods Status', await podsText(around, set, selector)],
    podTemplateRow(spec.template),
    ['Volume Claims', unlessEmpty((spec.volumeClaimTemplates ?? []).flatMap(claimTemplateRows)) ?? '<none>'],
  ]
}

function claimTemplateRows(claim: PersistentVolumeClaim): Part[] {
  return [
    ['Name', claim.metadata.name],
    ['StorageClass', storageClassOf(claim)],
    labelRow('Labels', claim.metadata.labels),
    labelRow('Annotations', claim.metadata.annotations),
    ['Capacity', claim.spec.resources?.requests?.['storage'] ?? '<default>'],
    ['Access Modes', listText(claim.spec.accessModes)],
  ]
}

async function deploymentRows(deployment: Deployment, around: RelatedObjects): Promise<Part[]> {
  const { metadata, spec, status } = deployment
  const counts = [
    `${spec.replicas ?? 0} desired`,
    `${status.updatedReplicas ?? 0} updated`,
    `${status.replicas ?? 0} total`,
    `${status.availableReplicas ?? 0} available`,
    `${status.unavailableReplicas ?? 0} unavailable`,
  ]
  const { type = '', rollingUpdate: rolling } = spec.strategy ?? {}
  const limits = rolling && `${rolling.maxUnavailable ?? 0} max unavailable, ${rolling.maxSurge ?? 0} max surge`
  return [
    ...nameRows(deployment),
    ['CreationTimestamp', dateText(metadata.creationTimestamp)],
    ...labelRows(deployment),
    ['Selector', selectorText(asSelector(spec.selector))],
    ['Replicas', counts.join(' | ')],
    ['StrategyType', type],
    ['MinReadySeconds', spec.minReadySeconds ?? 0],
    ['RollingUpdateStrategy', limits],
    podTemplateRow(spec.template),
    conditionRow(status.conditions),
    ...(await setRows(deployment, around)),
  ]
}

async function setRows(deployment: Deployment, around: RelatedObjects): Promise<Part[]> {
  const { old, current } = await replicaSetsOf(deployment, around).catch(() => ({ old: [], current: undefined }))
  if (old.length === 0 && current === undefined) return []
  return [
    ['OldReplicaSets', setsText(old)],
    ['NewReplicaSet', setsText(current === undefined ? [] : [current])],
  ]
}

function setsText(sets: readonly ReplicaSet[]): string {
  const texts = sets.map(
    ({ metadata, spec, status }) => `${metadata.name} (${status.replicas}/${spec.replicas ?? 0} replicas created)`,
  )
  return orNone(texts, ', ')
}

/** The readable form of a selector; empty if it selects everything. */
function selectorLine(selector: LabelSelector | undefined): string {
  try {
    return selectorText(asSelector(selector))
  } catch (error) {
    return `Failed to get selector: ${(error as Error).message}`
  }
}

function jobRows(job: Job): Part[] {
  const { spec, status } = job
  const { startTime, completionTime } = status
  const took =
    startTime === undefined || completionTime === undefined
      ? undefined
      : humanDuration(epochMsOf(completionTime) - epochMsOf(startTime))
  return [
    ...nameRows(job),
    ['Selector', selectorLine(spec.selector)],
    ...labelRows(job),
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
    podTemplateRow(spec.template),
  ]
}

function jobPodsText({ active = 0, succeeded = 0, failed = 0, ready }: Job['status']): string {
  const readyText = ready === undefined ? '' : ` (${ready} Ready)`
  return `${active} Active${readyText} / ${succeeded} Succeeded / ${failed} Failed`
}

/** Truncated at a comma to a readable length. */
const MAX_INDEXES = 50

function indexesText(indexes = ''): string {
  if (indexes === '') return '<none>'
  const end = indexes.indexOf(',', MAX_INDEXES)
  return end < 0 ? indexes : `${indexes.slice(0, end + 1)}...`
}

function cronJobRows(cronJob: CronJob): Part[] {
  const { spec, status } = cronJob
  const { startingDeadlineSeconds: deadline } = spec
  const job: Partial<Job['spec']> = spec.jobTemplate.spec ?? {}
  const { selector, parallelism = '<unset>', completions = '<unset>', activeDeadlineSeconds: active } = job
  return [
    ...head(cronJob),
    ['Schedule', spec.schedule],
    ['Concurrency Policy', spec.concurrencyPolicy ?? ''],
    ['Suspend', boolText(spec.suspend)],
    ['Time Zone', spec.timeZone ?? '<unset>'],
    ['Successful Job History Limit', spec.successfulJobsHistoryLimit ?? '<unset>'],
    ['Failed Job History Limit', spec.failedJobsHistoryLimit ?? '<unset>'],
    ['Starting Deadline Seconds', deadline === undefined ? '<unset>' : `${deadline}s`],
    ['Selector', selector === undefined ? '<unset>' : selectorLine(selector)],
    ['Parallelism', parallelism],
    ['Completions', completions],
    ['Active Deadline Seconds', active === undefined ? undefined : `${active}s`],
    podTemplateRow(job.template),
    ['Last Schedule Time', dateIfAny(status.lastScheduleTime) ?? '<unset>'],
    [
      'Active Jobs',
      orNone(
        (status.active ?? []).map(({ name }) => name ?? ''),
        ', ',
      ),
    ],
  ]
}
