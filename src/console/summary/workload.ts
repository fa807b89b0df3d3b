/** Summaries of the kinds that make pods. */
import type { DaemonSet, Deployment, ReplicaSet, StatefulSet } from '#apis/apps/v1.ts'
import type { CronJob, Job } from '#apis/batch/v1.ts'
import type { PodTemplateSpec } from '#apis/core/v1.ts'

import { selectorQuery } from '../objects/selector.ts'
import type { Tone } from '../parts/tone.ts'
import { containerSections } from './containers.ts'
import { volumeTable } from './pod.ts'
import { type Cell, fields, link, type Section, since, type Value } from './section.ts'

export const REVISION = 'deployment.kubernetes.io/revision'

export function deploymentSections({ spec, status, metadata }: Deployment): readonly Section[] {
  const wanted = spec.replicas ?? 1
  const { rollingUpdate = {}, type = 'RollingUpdate' } = spec.strategy ?? {}
  const { maxSurge = '25%', maxUnavailable = '25%' } = rollingUpdate
  return [
    fields('Replicas', [
      ['Ready', count(status.readyReplicas, wanted)],
      ['Updated', count(status.updatedReplicas, wanted)],
      ['Available', count(status.availableReplicas, wanted)],
      ['Unavailable', status.unavailableReplicas],
      [
        'Rollout',
        spec.paused === true ? { text: 'Paused', tone: 'busy' } : rollout(status, wanted, metadata.generation),
      ],
      ['Strategy', type === 'Recreate' ? type : `${type}, ${maxSurge} more and ${maxUnavailable} fewer while it rolls`],
      ['Revision', metadata.annotations?.[REVISION]],
      ['Selector', selectorQuery(spec.selector)],
    ]),
    ...templateSections(spec.template, metadata.namespace),
  ]
}

interface Rolling {
  readonly observedGeneration?: number
  readonly replicas?: number
  readonly updatedReplicas?: number
  readonly availableReplicas?: number
}

/** How far a rollout is, as `kubectl rollout status` says it. */
export function rollout(
  { observedGeneration = 0, replicas = 0, updatedReplicas = 0, availableReplicas = 0 }: Rolling,
  wanted: number,
  generation = 0,
): Value {
  if (observedGeneration < generation) return { text: 'Waiting for the controller to see the change', tone: 'busy' }
  if (updatedReplicas < wanted) return { text: `${updatedReplicas} of ${wanted} replicas are updated`, tone: 'busy' }
  if (replicas > updatedReplicas)
    return { text: `${replicas - updatedReplicas} old replicas are still there`, tone: 'busy' }
  if (availableReplicas < updatedReplicas)
    return { text: `${availableReplicas} of ${updatedReplicas} updated replicas are available`, tone: 'busy' }
  return { text: 'Complete', tone: 'good' }
}

function count(value = 0, wanted = 0): Value {
  return { text: `${value} of ${wanted}`, tone: value >= wanted ? undefined : 'busy' }
}

export function statefulSetSections({ spec, status, metadata }: StatefulSet): readonly Section[] {
  const wanted = spec.replicas ?? 1
  const { currentRevision = '', updateRevision = '' } = status
  return [
    fields('Replicas', [
      ['Ready', count(status.readyReplicas, wanted)],
      ['Updated', currentRevision === updateRevision ? undefined : count(status.updatedReplicas, wanted)],
      ['Available', count(status.availableReplicas, wanted)],
      [
        'Service',
        spec.serviceName === undefined || spec.serviceName === ''
          ? undefined
          : link('v1', 'Service', spec.serviceName, metadata.namespace),
      ],
      ['Pod management', spec.podManagementPolicy],
      ['Update strategy', spec.updateStrategy?.type],
      ['Claims', (spec.volumeClaimTemplates ?? []).map((claim) => claim.metadata?.name ?? '')],
      ['Selector', selectorQuery(spec.selector)],
    ]),
    ...templateSections(spec.template, metadata.namespace),
  ]
}

export function daemonSetSections({ spec, status, metadata }: DaemonSet): readonly Section[] {
  const wanted = status.desiredNumberScheduled
  return [
    fields('Nodes', [
      ['Ready', count(status.numberReady, wanted)],
      ['Updated', count(status.updatedNumberScheduled, wanted)],
      ['Available', count(status.numberAvailable, wanted)],
      ['On wrong nodes', status.numberMisscheduled === 0 ? undefined : status.numberMisscheduled],
      ['Update strategy', spec.updateStrategy?.type],
      ['Selector', selectorQuery(spec.selector)],
    ]),
    ...templateSections(spec.template, metadata.namespace),
  ]
}

export function replicaSetSections({ spec, status, metadata }: ReplicaSet): readonly Section[] {
  const wanted = spec.replicas ?? 1
  return [
    fields('Replicas', [
      ['Ready', count(status.readyReplicas, wanted)],
      ['Available', count(status.availableReplicas, wanted)],
      ['Revision', metadata.annotations?.[REVISION]],
      ['Selector', selectorQuery(spec.selector)],
    ]),
    ...templateSections(spec.template, metadata.namespace),
  ]
}

export function jobSections({ spec, status, metadata }: Job): readonly Section[] {
  return [
    fields('Job', [
      ['Completions', `${status.succeeded ?? 0} of ${spec.completions ?? 1}`],
      ['Active pods', status.active],
      ['Failed pods', bad(status.failed)],
      ['Parallelism', spec.parallelism],
      ['Retries', spec.backoffLimit],
      ['Suspended', suspended(spec.suspend)],
      ['Started', since(status.startTime)],
      ['Completed', since(status.completionTime)],
      ['Selector', selectorQuery(spec.selector)],
    ]),
    ...templateSections(spec.template, metadata.namespace),
  ]
}

export function cronJobSections({ spec, status, metadata }: CronJob): readonly Section[] {
  return [
    fields('CronJob', [
      ['Schedule', `${spec.schedule}${spec.timeZone === undefined ? '' : ` ${spec.timeZone}`}`],
      ['Suspended', suspended(spec.suspend)],
      ['Concurrency', spec.concurrencyPolicy],
      ['Last scheduled', since(status.lastScheduleTime)],
      ['Last success', since(status.lastSuccessfulTime)],
      ['Active jobs', (status.active ?? []).map(({ name = '' }) => link('batch/v1', 'Job', name, metadata.namespace))],
    ]),
    ...templateSections(spec.jobTemplate.spec?.template, metadata.namespace),
  ]
}

function bad(value: number | undefined): Cell {
  const tone: Tone = 'bad'
  return value === undefined || value === 0 ? undefined : { text: String(value), tone }
}

function suspended(value: boolean | undefined): Cell {
  return value === true ? { text: 'Yes', tone: 'busy' } : undefined
}

function templateSections(template: PodTemplateSpec | undefined, namespace = ''): readonly Section[] {
  const spec = template?.spec
  return spec === undefined ? [] : [...containerSections(spec, namespace), ...volumeTable(spec, namespace)]
}
