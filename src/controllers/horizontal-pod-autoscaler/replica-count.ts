/**
 * How many replicas a metric asks for. Pure: pods, what they use and what is wanted go in, a number comes out. The numbers
 * are upstream's, to the rounding: what was measured is in thousandths and divided as integers. What cannot be counted is
 * thrown, in upstream's words.
 */
import type { Container, Pod } from '#apis/core/v1.ts'
import { findCondition } from '#meta/conditions.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { parseQuantity, quantityMilliValue } from '#meta/quantity.ts'
import { epochMsOf } from '#meta/time.ts'
import { podRequests } from '#model/pod-resources.ts'
import { conditionsOf, isReady } from '#model/pods.ts'

/** What was measured of one pod. */
export interface PodMetric {
  /** In thousandths. */
  readonly value: number
  readonly atMs: number
  /** Over how long it was measured. */
  readonly windowMs: number
}

/** By the name of the pod. */
export type PodMetrics = ReadonlyMap<string, PodMetric>

/** How far the ratio of use and target may be from 1 before anything changes. */
export interface Tolerance {
  readonly down: number
  readonly up: number
}

/** The pods of a target, and how a new one is told from one that has its CPU to itself. */
export interface Population {
  readonly pods: readonly Pod[]
  readonly nowMs: number
  readonly cpuInitializationMs: number
  readonly initialReadinessMs: number
}

export interface Count {
  readonly replicas: number
  /** The average, in thousandths. */
  readonly usage: number
}

export interface UtilizationCount extends Count {
  /** In percent of what is requested. */
  readonly utilization: number
}

export const MAX_INT32: number = 2 ** 31 - 1

export function isTolerated({ down, up }: Tolerance, ratio: number): boolean {
  return 1 - down <= ratio && ratio <= 1 + up
}

interface Utilization {
  readonly current: number
  /** Percent of the requests. */
  readonly target: number
  readonly resource: string
  /** Empty: all of them together. */
  readonly container: string
  readonly tolerance: Tolerance
  /** Whether what pods request as a whole counts. */
  readonly podLevel: boolean
}

/** For a share of what the pods request. */
export function countByUtilization(
  metrics: PodMetrics,
  population: Population,
  { current, target, resource, container, tolerance, podLevel }: Utilization,
): UtilizationCount {
  const groups = groupPods(population, metrics, resource === 'cpu')
  const requests = new Map(
    population.pods.map((pod) => [pod.metadata.name ?? '', requestOf(pod, { resource, container, podLevel })]),
  )
  const measure = (all: ReadonlyMap<string, number>): Measured & { readonly utilization: number } => {
    const known = [...all].filter(([name]) => requests.has(name))
    const used = sum(known.map(([, value]) => value))
    const requested = sum(known.map(([name]) => requests.get(name) ?? 0))
    if (requested === 0n) throw new Error('no metrics returned matched known pods')
    const utilization = Number((used * 100n) / requested)
    return { ratio: utilization / target, usage: Number(used / BigInt(known.length)), utilization }
  }
  const standIn = (name: string): number => Math.trunc(((requests.get(name) ?? 0) * Math.max(100, target)) / 100)
  const { measured, replicas } = settle(groups, { current, tolerance, measure, standIn })
  return { replicas, usage: measured.usage, utilization: measured.utilization }
}

interface Average {
  readonly current: number
  /** In thousandths. */
  readonly target: number
  /** `cpu`: pods that start do not count. */
  readonly resource: string
  readonly tolerance: Tolerance
}

/** For an average over the pods. */
export function countByAverage(
  metrics: PodMetrics,
  population: Population,
  { current, target, resource, tolerance }: Average,
): Count {
  const groups = groupPods(population, metrics, resource === 'cpu')
  const measure = (all: ReadonlyMap<string, number>): Measured => {
    const usage = Number(sum([...all.values()]) / BigInt(all.size))
    return { ratio: usage / target, usage }
  }
  const { measured, replicas } = settle(groups, { current, tolerance, measure, standIn: () => target })
  return { replicas, usage: measured.usage }
}

/** For something that is measured once for all pods. */
export function countByRatio(
  ratio: number,
  pods: readonly Pod[],
  { current, tolerance }: { readonly current: number; readonly tolerance: Tolerance },
): number {
  if (current === 0) return ceil(ratio)
  if (isTolerated(tolerance, ratio)) return current
  if (pods.length === 0) throw new Error(`unable to calculate ready pods: ${NO_PODS}`)
  const ready = pods.filter((pod) => pod.status.phase === 'Running' && isReady(pod)).length
  return ceil(ratio * ready)
}

/** For a share of the whole for each pod. */
export function countPerPod(
  usage: number,
  target: number,
  { current, tolerance }: { readonly current: number; readonly tolerance: Tolerance },
): Count {
  const isEnough = isTolerated(tolerance, usage / (target * current))
  // Nothing for nobody, and all for nobody, are beyond what an integer can say.
  const average = usage >= MAX_INT64 ? MAX_INT64 : Math.ceil(usage / current)
  return { replicas: isEnough ? current : ceil(usage / target), usage: Number.isFinite(average) ? average : 0 }
}

/** As an int64 ends. */
export const MAX_INT64: number = 2 ** 63

const NO_PODS = 'no pods returned by selector while calculating replica count'

function ceil(count: number): number {
  return Math.min(MAX_INT32, Math.ceil(count))
}

function sum(values: readonly number[]): bigint {
  return values.reduce((total, value) => total + BigInt(value), 0n)
}

interface Groups {
  readonly ready: number
  /** Too young, or not ready: they count as idle when there are to be more, and not at all else. */
  readonly unready: readonly string[]
  /** Nothing was measured of them. */
  readonly missing: readonly string[]
  /** What was measured of the rest, and of whoever is not known here. */
  readonly measured: ReadonlyMap<string, number>
}

function groupPods(population: Population, metrics: PodMetrics, isCpu: boolean): Groups {
  const { pods } = population
  if (pods.length === 0) throw new Error(NO_PODS)
  const groups = { ready: 0, unready: [] as string[], missing: [] as string[] }
  const measured = new Map(Array.from(metrics, ([name, { value }]) => [name, value]))
  for (const pod of pods) {
    const name = pod.metadata.name ?? ''
    const metric = metrics.get(name)
    const { phase } = pod.status
    if (isBeingDeleted(pod) || phase === 'Failed') measured.delete(name)
    else if (phase !== 'Pending' && metric === undefined) groups.missing.push(name)
    else if (metric !== undefined && phase !== 'Pending' && !(isCpu && isYoung(pod, metric, population))) groups.ready++
    else {
      groups.unready.push(name)
      measured.delete(name)
    }
  }
  if (measured.size === 0) throw new Error('did not receive metrics for targeted pods (pods might be unready)')
  return { ...groups, measured }
}

/** Whether the CPU it used may be that of its start. */
function isYoung(
  { status }: Pod,
  { atMs, windowMs }: PodMetric,
  { nowMs, cpuInitializationMs, initialReadinessMs }: Population,
): boolean {
  const ready = findCondition(conditionsOf(status.conditions), 'Ready')
  if (ready === undefined || status.startTime === undefined) return true
  const startMs = epochMsOf(status.startTime)
  const sinceMs = epochMsOf(ready.lastTransitionTime ?? '0001-01-01T00:00:00Z')
  const isDown = ready.status === 'False'
  if (startMs + cpuInitializationMs > nowMs) return isDown || atMs < sinceMs + windowMs
  // It has never been ready.
  return isDown && startMs + initialReadinessMs > sinceMs
}

interface Measured {
  /** Of what is used to what is wanted. */
  readonly ratio: number
  readonly usage: number
}

interface Rule<M extends Measured> {
  readonly current: number
  readonly tolerance: Tolerance
  readonly measure: (values: ReadonlyMap<string, number>) => M
  /** What a pod that nothing is known of is taken to use, when there are to be fewer. */
  readonly standIn: (name: string) => number
}

/** What nobody measured speaks against any change: it is idle when there are to be more, and busy when fewer. */
function settle<M extends Measured>(
  { ready, unready, missing, measured }: Groups,
  { current, tolerance, measure, standIn }: Rule<M>,
): { readonly measured: M; readonly replicas: number } {
  const first = measure(measured)
  const { ratio } = first
  const idle = ratio > 1 ? unready : []
  if (idle.length === 0 && missing.length === 0) {
    return { measured: first, replicas: isTolerated(tolerance, ratio) ? current : ceil(ratio * ready) }
  }
  const all = new Map(measured)
  if (ratio !== 1) for (const name of missing) all.set(name, ratio < 1 ? standIn(name) : 0)
  for (const name of idle) all.set(name, 0)
  const { ratio: corrected } = measure(all)
  const replicas = ceil(corrected * all.size)
  const isTurned = Math.sign(ratio - 1) * Math.sign(corrected - 1) < 0
  const isBackwards = (corrected - 1) * (replicas - current) < 0
  const isKept = isTolerated(tolerance, corrected) || isTurned || isBackwards
  return { measured: first, replicas: isKept ? current : replicas }
}

interface Requested {
  readonly resource: string
  readonly container: string
  readonly podLevel: boolean
}

/** In thousandths. */
function requestOf(pod: Pod, { resource, container, podLevel }: Requested): number {
  const name = pod.metadata.name ?? ''
  if (podLevel && container === '' && hasPodLevelRequests(pod)) {
    const whole = podRequests(pod).get(resource)
    if (whole === undefined) throw new Error(`missing pod-level request for ${resource} in Pod ${name}`)
    return quantityMilliValue(whole)
  }
  const { containers, initContainers = [] } = pod.spec
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always')
  const asked = [...(containers ?? []), ...sidecars].filter((one) => container === '' || one.name === container)
  if (container !== '' && asked.length === 0) throw new Error(`container ${container} not found in Pod ${name}`)
  const milli = ({ name: of, resources }: Container): number => {
    const amount = resources?.requests?.[resource]
    if (amount === undefined) throw new Error(`missing request for ${resource} in container ${of} of Pod ${name}`)
    return quantityMilliValue(parseQuantity(amount))
  }
  return asked.reduce((total, one) => total + milli(one), 0)
}

function hasPodLevelRequests({ spec: { resources } }: Pod): boolean {
  return Object.keys(resources?.requests ?? {}).some((name) => /^(?:cpu$|memory$|hugepages-)/.test(name))
}
