/** Functions about the pods of a Job: failure, index, finish time and creation. Pure. */
import { type Job, Jobs } from '#apis/batch/v1.ts'
import type { Container, Pod, PodTemplateSpec } from '#apis/core/v1.ts'
import { findCondition } from '#meta/conditions.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'
import { conditionsOf, isReady } from '#model/pods.ts'

import { podFrom } from '../../pod-creation.ts'

export const TRACKING = 'batch.kubernetes.io/job-tracking'
const INDEX = 'batch.kubernetes.io/job-completion-index'
const FAILURES = 'batch.kubernetes.io/job-index-failure-count'
const IGNORED_FAILURES = 'batch.kubernetes.io/job-index-ignored-failure-count'
const INDEX_ENV = 'JOB_COMPLETION_INDEX'
/** A generated name must fit a DNS label. */
const MAX_BASE = 58

export function isIndexed({ spec }: Job): boolean {
  return spec.completionMode === 'Indexed'
}

/** Whether pods are replaced only once they are terminal, not while terminating. */
export function replacesFailedOnly({ spec }: Job): boolean {
  return spec.podReplacementPolicy === 'Failed' || spec.podFailurePolicy !== undefined
}

export function isFailed(job: Job, pod: Pod): boolean {
  const { phase } = pod.status
  if (phase === 'Failed') return true
  return !replacesFailedOnly(job) && isBeingDeleted(pod) && phase !== 'Succeeded'
}

/** Undefined without an index. */
export function indexOf({ metadata }: Pod): number | undefined {
  const text = metadata.annotations?.[INDEX] ?? ''
  return /^\d+$/.test(text) ? Number(text) : undefined
}

export function indexesOf(pods: readonly Pod[]): Set<number> {
  return new Set(pods.map(indexOf).filter((index) => index !== undefined))
}

/** An indexed Job has only pods with a valid index. */
export function isValid(job: Job, pod: Pod): boolean {
  return !isIndexed(job) || (indexOf(pod) ?? Infinity) < (job.spec.completions ?? 0)
}

function countIn({ metadata }: Pod, annotation: string): number {
  const text = metadata.annotations?.[annotation] ?? ''
  return /^\d+$/.test(text) && Number(text) < 2 ** 31 ? Number(text) : 0
}

/** The earlier failures of its index, without ignored ones. */
export function failuresBefore(pod: Pod): number {
  return countIn(pod, FAILURES)
}

export function allFailuresBefore(pod: Pod): number {
  return countIn(pod, FAILURES) + countIn(pod, IGNORED_FAILURES)
}

export function endedMs(pod: Pod): number {
  const { metadata, status, spec } = pod
  const sidecars = new Set((spec.initContainers ?? []).filter((one) => one.restartPolicy === 'Always').map(nameIn))
  const statuses = [
    ...(status.containerStatuses ?? []),
    ...(status.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name)),
  ]
  const ends = statuses.map(({ state }) => state?.terminated?.finishedAt)
  if (ends.length > 0 && ends.every((end) => typeof end === 'string')) return Math.max(...ends.map(epochMsOf))
  const ready = findCondition(conditionsOf(status.conditions), 'Ready')
  if (ready?.status === 'False' && ready.lastTransitionTime !== undefined) return epochMsOf(ready.lastTransitionTime)
  if (metadata.deletionTimestamp === undefined) return epochMsOf(metadata.creationTimestamp ?? '')
  return epochMsOf(metadata.deletionTimestamp) - (metadata.deletionGracePeriodSeconds ?? 0) * 1000
}

function nameIn({ name }: Container): string {
  return name
}

/** The failure counts that a new pod of an index gets as annotations. */
export interface FailureCounts {
  readonly counted: number
  readonly ignored: number
}

export function countsAfter(failed: Pod | undefined, isCounted: boolean): FailureCounts {
  if (failed === undefined) return { counted: 0, ignored: 0 }
  const [counted, ignored] = [countIn(failed, FAILURES), countIn(failed, IGNORED_FAILURES)]
  return isCounted ? { counted: counted + 1, ignored } : { counted, ignored: ignored + 1 }
}

export function podFor(job: Job, index?: number, failures?: FailureCounts): Pick<Pod, 'metadata' | 'spec'> {
  const template = index === undefined ? job.spec.template : indexedTemplate(job, index, failures)
  const { metadata, spec } = podFrom(template, job, Jobs)
  const suffix = index === undefined ? '-' : `-${index}-`
  const { name = '' } = job.metadata
  const finalizers = [...new Set([...(metadata.finalizers ?? []), TRACKING])]
  return {
    metadata: { ...metadata, generateName: name.slice(0, MAX_BASE - suffix.length) + suffix, finalizers },
    spec,
  }
}

function indexedTemplate(job: Job, index: number, failures: FailureCounts | undefined): PodTemplateSpec {
  const { metadata, spec } = job.spec.template
  const counts = {
    ...(failures !== undefined && { [FAILURES]: String(failures.counted) }),
    ...(failures !== undefined && failures.ignored > 0 && { [IGNORED_FAILURES]: String(failures.ignored) }),
  }
  return {
    metadata: {
      ...metadata,
      labels: { ...metadata?.labels, [INDEX]: String(index) },
      annotations: { ...metadata?.annotations, [INDEX]: String(index), ...counts },
    },
    spec: {
      ...spec,
      hostname: `${job.metadata.name}-${index}`,
      containers: (spec.containers ?? []).map(knowingIndex),
      ...(spec.initContainers !== undefined && { initContainers: spec.initContainers.map(knowingIndex) }),
    },
  }
}

function knowingIndex(container: Container): Container {
  const { env = [] } = container
  if (env.some(({ name }) => name === INDEX_ENV)) return container
  const fieldRef = { fieldPath: `metadata.labels['${INDEX}']` }
  return { ...container, env: [...env, { name: INDEX_ENV, valueFrom: { fieldRef } }] }
}

const PHASES: Readonly<Record<string, number>> = { Pending: 0, Unknown: 1, Running: 2 }

/** The active pods to delete first for `surplus`; duplicates of an index always go. */
export function podsToDeleteFirst(job: Job, active: readonly Pod[], surplus: number): Pod[] {
  const sorted = active.map((pod) => ({ pod, rank: rankOf(pod) })).sort((a, b) => compare(a.rank, b.rank))
  const pods = sorted.map(({ pod }) => pod)
  if (!isIndexed(job)) return pods.slice(0, surplus)
  const kept = new Map(pods.filter((pod) => isValid(job, pod)).map((pod) => [indexOf(pod), pod]))
  const left = pods.filter((pod) => kept.get(indexOf(pod)) === pod)
  const doubles = pods.filter((pod) => !left.includes(pod))
  return [...doubles, ...left.slice(0, Math.max(0, surplus - doubles.length))]
}

/** Lower ranks go first: unscheduled, not running, not ready, then the newest. */
function rankOf(pod: Pod): number[] {
  const { status, spec, metadata } = pod
  const since = findCondition(conditionsOf(status.conditions), 'Ready')?.lastTransitionTime
  const restarts = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])]
  const latest = (time: string | undefined): number => (time === undefined ? -Infinity : -epochMsOf(time))
  return [
    (spec.nodeName ?? '') === '' ? 0 : 1,
    PHASES[status.phase ?? ''] ?? 0,
    isReady(pod) ? 1 : 0,
    isReady(pod) ? latest(since) : 0,
    -Math.max(0, ...restarts.map(({ restartCount }) => restartCount)),
    latest(metadata.creationTimestamp),
  ]
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index])
  return at < 0 ? 0 : (a[at] ?? 0) < (b[at] ?? 0) ? -1 : 1
}
