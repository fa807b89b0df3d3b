/** Stabilization windows and scaling policies of an autoscaler. Pure: takes the history and returns the new one. */
import type { HorizontalPodAutoscalerBehavior, HPAScalingPolicy, HPAScalingRules } from '#apis/autoscaling/v2.ts'

import { MAX_INT32 } from './replica-count.ts'

/** A number of replicas with the time of its recommendation or change. */
export interface Sample {
  readonly replicas: number
  readonly atMs: number
}

/** The history of an autoscaler. */
export interface History {
  readonly recommended: readonly Sample[]
  readonly added: readonly Sample[]
  readonly removed: readonly Sample[]
}

export interface ScaleRequest {
  readonly current: number
  readonly desired: number
  readonly min: number
  readonly max: number
  readonly nowMs: number
  readonly behavior: HorizontalPodAutoscalerBehavior | undefined
  /** The downscale stabilization window without behavior. */
  readonly downWindowMs: number
}

export interface ScalingCondition {
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

export interface Decision {
  readonly replicas: number
  readonly ableToScale: ScalingCondition
  readonly scalingLimited: ScalingCondition
  readonly history: History
}

export function decide(history: History, request: ScaleRequest): Decision {
  const { desired, nowMs } = request
  const windows = windowsOf(request)
  const stable = stabilize(history.recommended, request, windows)
  const limit = request.behavior === undefined ? plainLimit(request, stable) : rateLimit(request, stable, history)
  const keptMs = Math.max(windows.upMs, windows.downMs)
  const recommended = [
    ...history.recommended.filter(({ atMs }) => atMs >= nowMs - keptMs),
    { replicas: desired, atMs: nowMs },
  ]
  return {
    replicas: limit.replicas,
    ableToScale: stable === desired ? READY : stabilized(request),
    scalingLimited: { status: limit.replicas === stable ? 'False' : 'True', ...limit.why },
    history: { ...history, recommended },
  }
}

/** Adds a change of size to the history for later policies. */
export function remember(
  history: History,
  { current, desired, nowMs, behavior }: Pick<ScaleRequest, 'current' | 'desired' | 'nowMs' | 'behavior'>,
): History {
  if (behavior === undefined) return history
  const isUp = desired > current
  const { policies = [] } = (isUp ? behavior.scaleUp : behavior.scaleDown) ?? {}
  const longestMs = Math.max(0, ...policies.map(({ periodSeconds }) => periodSeconds)) * 1000
  const recent = (isUp ? history.added : history.removed).filter(({ atMs }) => atMs >= nowMs - longestMs)
  const changes = [...recent, { replicas: Math.abs(desired - current), atMs: nowMs }]
  return isUp ? { ...history, added: changes } : { ...history, removed: changes }
}

interface Windows {
  readonly upMs: number
  readonly downMs: number
}

function windowsOf({ behavior, downWindowMs }: ScaleRequest): Windows {
  const { scaleUp, scaleDown } = behavior ?? {}
  const downSeconds = scaleDown?.stabilizationWindowSeconds ?? Math.trunc(downWindowMs / 1000)
  return {
    upMs: (scaleUp?.stabilizationWindowSeconds ?? 0) * 1000,
    downMs: behavior === undefined ? downWindowMs : downSeconds * 1000,
  }
}

/** At most the lowest and at least the highest recent recommendation. */
function stabilize(
  recommended: readonly Sample[],
  { current, desired, nowMs, behavior }: ScaleRequest,
  { upMs, downMs }: Windows,
): number {
  const since = (windowMs: number): number[] =>
    recommended.filter(({ atMs }) => atMs > nowMs - windowMs).map(({ replicas }) => replicas)
  // Without behavior, the window includes its edge, and there is none for scale-up.
  if (behavior === undefined)
    return Math.max(
      desired,
      ...recommended.filter(({ atMs }) => atMs >= nowMs - downMs).map(({ replicas }) => replicas),
    )
  const lowest = Math.min(desired, ...since(upMs))
  const highest = Math.max(desired, ...since(downMs))
  return Math.min(Math.max(current, lowest), highest)
}

const READY: ScalingCondition = {
  status: 'True',
  reason: 'ReadyForNewScale',
  message: 'recommended size matches current size',
}

function stabilized({ current, desired, behavior }: ScaleRequest): ScalingCondition {
  return behavior !== undefined && desired >= current
    ? {
        status: 'True',
        reason: 'ScaleUpStabilized',
        message: 'recent recommendations were lower than current one, applying the lowest recent recommendation',
      }
    : {
        status: 'True',
        reason: 'ScaleDownStabilized',
        message: 'recent recommendations were higher than current one, applying the highest recent recommendation',
      }
}

type LimitReason = Pick<ScalingCondition, 'reason' | 'message'>

const WITHIN: LimitReason = {
  reason: 'DesiredWithinRange',
  message: 'the desired count is within the acceptable range',
}
const TOO_MANY: LimitReason = {
  reason: 'TooManyReplicas',
  message: 'the desired replica count is more than the maximum replica count',
}
const TOO_FEW: LimitReason = {
  reason: 'TooFewReplicas',
  message: 'the desired replica count is less than the minimum replica count',
}
const TOO_FAST_UP: LimitReason = {
  reason: 'ScaleUpLimit',
  message: 'the desired replica count is increasing faster than the maximum scale rate',
}
const TOO_FAST_DOWN: LimitReason = {
  reason: 'ScaleDownLimit',
  message: 'the desired replica count is decreasing faster than the maximum scale rate',
}

interface LimitedReplicas {
  readonly replicas: number
  readonly why: LimitReason
}

/** Without behavior: at most double, or four. */
function plainLimit({ current, min, max }: ScaleRequest, desired: number): LimitedReplicas {
  const most = Math.max(2 * current, 4)
  if (desired < min) return { replicas: min, why: TOO_FEW }
  if (desired > Math.min(max, most))
    return max > most ? { replicas: most, why: TOO_FAST_UP } : { replicas: max, why: TOO_MANY }
  return { replicas: desired, why: WITHIN }
}

function rateLimit(
  { current, min, max, nowMs, behavior }: ScaleRequest,
  desired: number,
  history: History,
): LimitedReplicas {
  const before = (seconds: number): number => replicasBefore(history, current, nowMs - seconds * 1000)
  if (desired > current) {
    const most = Math.max(current, upLimit(behavior?.scaleUp, current, before))
    if (desired > Math.min(max, most))
      return max > most ? { replicas: most, why: TOO_FAST_UP } : { replicas: max, why: TOO_MANY }
  }
  if (desired < current) {
    const least = Math.min(current, downLimit(behavior?.scaleDown, current, before))
    if (desired < Math.max(min, least))
      return min < least ? { replicas: least, why: TOO_FAST_DOWN } : { replicas: min, why: TOO_FEW }
  }
  return { replicas: desired, why: WITHIN }
}

/** The replicas at a past time, as far as this autoscaler changed them. */
function replicasBefore({ added, removed }: History, current: number, sinceMs: number): number {
  const total = (samples: readonly Sample[]): number =>
    samples.reduce((all, { replicas, atMs }) => (atMs > sinceMs ? all + replicas : all), 0)
  return current - total(added) + total(removed)
}

type ReplicasAt = (seconds: number) => number

function upLimit(rules: HPAScalingRules = {}, current: number, before: ReplicasAt): number {
  // Rounded up, or a small target would never grow.
  return chosen(rules, current, ({ type, value, periodSeconds }) =>
    type === 'Pods' ? before(periodSeconds) + value : Math.ceil(before(periodSeconds) * (1 + value / 100)),
  )
}

function downLimit(rules: HPAScalingRules = {}, current: number, before: ReplicasAt): number {
  const { selectPolicy } = rules
  const turned = {
    ...rules,
    selectPolicy: selectPolicy === 'Min' ? 'Max' : selectPolicy === 'Disabled' ? selectPolicy : 'Min',
  }
  return chosen(turned, current, ({ type, value, periodSeconds }) =>
    type === 'Pods' ? before(periodSeconds) - value : Math.trunc(before(periodSeconds) * (1 - value / 100)),
  )
}

/** The minimum or maximum over the policies. */
function chosen(
  { selectPolicy, policies = [] }: HPAScalingRules,
  current: number,
  limitOf: (policy: HPAScalingPolicy) => number,
): number {
  if (selectPolicy === 'Disabled') return current
  const limits = policies.map(limitOf)
  return selectPolicy === 'Min' ? Math.min(MAX_INT32, ...limits) : Math.max(-MAX_INT32, ...limits)
}
