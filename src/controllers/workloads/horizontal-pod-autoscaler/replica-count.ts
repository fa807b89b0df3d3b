/**
 * Computes the desired replicas from a metric. Pure. Arithmetic and rounding are upstream's: values in thousandths,
 * integer division. Throws upstream's errors.
 */
import type { Container, Pod } from '#apis/core/v1.ts'
import { findCondition } from '#meta/conditions.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { parseQuantity, quantityMilliValue } from '#meta/quantity.ts'
import { epochMsOf } from '#meta/time.ts'
import { podRequests } from '#model/pod-resources.ts'
import { conditionsOf, isReady } from '#model/pods.ts'

/** The measured value of one pod. */
export interface PodMetric {
  /** In thousandths. */
  readonly value: number
  readonly atMs: number
  /** The measurement window. */
  readonly windowMs: number
}

/** By pod name. */
export type PodMetrics = ReadonlyMap<string, PodMetric>

/** The deviation of the usage ratio from 1 without a change. */
export interface Tolerance {
  readonly down: number
  readonly up: number
}

/** The pods of a target, and the settings for starting pods. */
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
  /** In percent of the requests. */
  readonly utilization: number
}

export const MAX_INT32: number = 2 ** 31 - 1

export function isTolerated({ down, up }: Tolerance, ratio: number): boolean {
  return 1 - down <= ratio && ratio <= 1 + up
}

interface Utilization {
  readonly current: number
  /** In percent of the requests. */
  readonly target: number
  readonly resource: string
  /** Empty: all containers together. */
  readonly container: string
  readonly tolerance: Tolerance
  /** Whether to use pod-level requests. */
  readonly podLevel: boolean
}

/** For a percentage of the pods' requests. */
export function countByUtilization(
  metrics: PodMetrics,
  population: Population,
  { current, target, resource, container, tolerance, podLevel }: Utilization,
): UtilizationCount {
  const groups = groupPods(population, metrics, resource === 'cpu')
  const requests = new Map(
    population.pods.map((pod) => [pod.metadata.name ?? '', requestOf(pod, { resource, container, podLevel })]),
  )
  const measure = (all: ReadonlyMap<string, number>): MeasuredUsage & { readonly utilization: number } => {
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
  /** `cpu`: starting pods do not count. */
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
  const measure = (all: ReadonlyMap<string, number>): MeasuredUsage => {
    const usage = Number(sum([...all.values()]) / BigInt(all.size))
    return { ratio: usage / target, usage }
  }
  const { measured, replicas } = settle(groups, { current, tolerance, measure, standIn: () => target })
  return { replicas, usage: measured.usage }
}

/** For one value for all pods. */
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

/** For an average value per pod. */
export function countPerPod(
  usage: number,
  target: number,
  { current, tolerance }: { readonly current: number; readonly tolerance: Tolerance },
): Count {
  const isEnough = isTolerated(tolerance, usage / (target * current))
  // Division by zero, as upstream's int64 conversion.
  const average = usage >= MAX_INT64 ? MAX_INT64 : Math.ceil(usage / current)
  return { replicas: isEnough ? current : ceil(usage / target), usage: Number.isFinite(average) ? average : 0 }
}

/** The limit of int64. */
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
  /** Starting or not ready: they count as idle on scale-up, and not at all otherwise. */
  readonly unready: readonly string[]
  /** Pods without a measurement. */
  readonly missing: readonly string[]
  /** Measured values of the others, including unknown pods. */
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

/** Whether its CPU usage may come from its start. */
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

interface MeasuredUsage {
  /** Usage divided by target. */
  readonly ratio: number
  readonly usage: number
}

interface Rule<M extends MeasuredUsage> {
  readonly current: number
  readonly tolerance: Tolerance
  readonly measure: (values: ReadonlyMap<string, number>) => M
  /** The assumed usage of a pod without a measurement on scale-down. */
  readonly standIn: (name: string) => number
}

/** Pods without a measurement damp the change: idle on scale-up, busy on scale-down. */
function settle<M extends MeasuredUsage>(
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

interface RequestedResource {
  readonly resource: string
  readonly container: string
  readonly podLevel: boolean
}

/** In thousandths. */
function requestOf(pod: Pod, { resource, container, podLevel }: RequestedResource): number {
  const name = pod.metadata.name ?? ''
  if (podLevel && container === '' && hasPodLevelRequests(pod)) {
    const whole = podRequests(pod).get(resource)
    if (whole === undefined) throw new Error(`missing pod-level request for ${resource} in Pod ${name}`)
    return quantityMilliValue(whole)
  }
  const { containers, initContainers = [] } = pod.spec
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always')
  const counted = [...(containers ?? []), ...sidecars].filter((one) => container === '' || one.name === container)
  if (container !== '' && counted.length === 0) throw new Error(`container ${container} not found in Pod ${name}`)
  const milli = ({ name: of, resources }: Container): number => {
    const amount = resources?.requests?.[resource]
    if (amount === undefined) throw new Error(`missing request for ${resource} in container ${of} of Pod ${name}`)
    return quantityMilliValue(parseQuantity(amount))
  }
  return counted.reduce((total, one) => total + milli(one), 0)
}

function hasPodLevelRequests({ spec: { resources } }: Pod): boolean {
  return Object.keys(resources?.requests ?? {}).some((name) => /^(?:cpu$|memory$|hugepages-)/.test(name))
}
