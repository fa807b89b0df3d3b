/**
 * How far and how fast an autoscaler may go: the window over which it looks back before it believes, and how much may change
 * in a period. Pure: what happened before goes in, and comes out with what is new.
 */
import type { HorizontalPodAutoscalerBehavior, HPAScalingPolicy, HPAScalingRules } from '#apis/autoscaling/v2.ts'

import { MAX_INT32 } from './replica-count.ts'

/** A number of replicas and when it was recommended, or added, or taken away. */
export interface Sample {
  readonly replicas: number
  readonly atMs: number
}

/** What an autoscaler remembers. */
export interface History {
  readonly recommended: readonly Sample[]
  readonly added: readonly Sample[]
  readonly removed: readonly Sample[]
}

export interface Wish {
  readonly current: number
  readonly desired: number
  readonly min: number
  readonly max: number
  readonly nowMs: number
  readonly behavior: HorizontalPodAutoscalerBehavior | undefined
  /** How long back the highest recommendation counts, where the behaviour does not say. */
  readonly downWindowMs: number
}

export interface Said {
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

export interface Decision {
  readonly replicas: number
  readonly ableToScale: Said
  readonly scalingLimited: Said
  readonly history: History
}

export function decide(history: History, wish: Wish): Decision {
  const { desired, nowMs } = wish
  const windows = windowsOf(wish)
  const stable = stabilize(history.recommended, wish, windows)
  const limit = wish.behavior === undefined ? plainLimit(wish, stable) : rateLimit(wish, stable, history)
  const keptMs = Math.max(windows.upMs, windows.downMs)
  const recommended = [
    ...history.recommended.filter(({ atMs }) => atMs >= nowMs - keptMs),
    { replicas: desired, atMs: nowMs },
  ]
  return {
    replicas: limit.replicas,
    ableToScale: stable === desired ? READY : stabilized(wish),
    scalingLimited: { status: limit.replicas === stable ? 'False' : 'True', ...limit.why },
    history: { ...history, recommended },
  }
}

/** What a change of size adds to the history, for the policies of later ones. */
export function remember(
  history: History,
  { current, desired, nowMs, behavior }: Pick<Wish, 'current' | 'desired' | 'nowMs' | 'behavior'>,
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

function windowsOf({ behavior, downWindowMs }: Wish): Windows {
  const { scaleUp, scaleDown } = behavior ?? {}
  const downSeconds = scaleDown?.stabilizationWindowSeconds ?? Math.trunc(downWindowMs / 1000)
  return {
    upMs: (scaleUp?.stabilizationWindowSeconds ?? 0) * 1000,
    downMs: behavior === undefined ? downWindowMs : downSeconds * 1000,
  }
}

/** Not more than the least and not less than the most of what was recommended of late. */
function stabilize(
  recommended: readonly Sample[],
  { current, desired, nowMs, behavior }: Wish,
  { upMs, downMs }: Windows,
): number {
  const since = (windowMs: number): number[] =>
    recommended.filter(({ atMs }) => atMs > nowMs - windowMs).map(({ replicas }) => replicas)
  // Without behaviour the edge of the window counts, and there is none upwards.
  if (behavior === undefined)
    return Math.max(
      desired,
      ...recommended.filter(({ atMs }) => atMs >= nowMs - downMs).map(({ replicas }) => replicas),
    )
  const lowest = Math.min(desired, ...since(upMs))
  const highest = Math.max(desired, ...since(downMs))
  return Math.min(Math.max(current, lowest), highest)
}

const READY: Said = { status: 'True', reason: 'ReadyForNewScale', message: 'recommended size matches current size' }

function stabilized({ current, desired, behavior }: Wish): Said {
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

type Why = Pick<Said, 'reason' | 'message'>

const WITHIN: Why = { reason: 'DesiredWithinRange', message: 'the desired count is within the acceptable range' }
const TOO_MANY: Why = {
  reason: 'TooManyReplicas',
  message: 'the desired replica count is more than the maximum replica count',
}
const TOO_FEW: Why = {
  reason: 'TooFewReplicas',
  message: 'the desired replica count is less than the minimum replica count',
}
const TOO_FAST_UP: Why = {
  reason: 'ScaleUpLimit',
  message: 'the desired replica count is increasing faster than the maximum scale rate',
}
const TOO_FAST_DOWN: Why = {
  reason: 'ScaleDownLimit',
  message: 'the desired replica count is decreasing faster than the maximum scale rate',
}

interface Limited {
  readonly replicas: number
  readonly why: Why
}

/** Without behaviour: twice as many at a time, or four. */
function plainLimit({ current, min, max }: Wish, desired: number): Limited {
  const most = Math.max(2 * current, 4)
  if (desired < min) return { replicas: min, why: TOO_FEW }
  if (desired > Math.min(max, most))
    return max > most ? { replicas: most, why: TOO_FAST_UP } : { replicas: max, why: TOO_MANY }
  return { replicas: desired, why: WITHIN }
}

function rateLimit({ current, min, max, nowMs, behavior }: Wish, desired: number, history: History): Limited {
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

/** How many there were, as far as this autoscaler changed that. */
function replicasBefore({ added, removed }: History, current: number, sinceMs: number): number {
  const total = (samples: readonly Sample[]): number =>
    samples.reduce((all, { replicas, atMs }) => (atMs > sinceMs ? all + replicas : all), 0)
  return current - total(added) + total(removed)
}

type Before = (seconds: number) => number

function upLimit(rules: HPAScalingRules = {}, current: number, before: Before): number {
  // Rounded up, or a small target would never grow.
  return chosen(rules, current, ({ type, value, periodSeconds }) =>
    type === 'Pods' ? before(periodSeconds) + value : Math.ceil(before(periodSeconds) * (1 + value / 100)),
  )
}

function downLimit(rules: HPAScalingRules = {}, current: number, before: Before): number {
  const { selectPolicy } = rules
  const turned = {
    ...rules,
    selectPolicy: selectPolicy === 'Min' ? 'Max' : selectPolicy === 'Disabled' ? selectPolicy : 'Min',
  }
  return chosen(turned, current, ({ type, value, periodSeconds }) =>
    type === 'Pods' ? before(periodSeconds) - value : Math.trunc(before(periodSeconds) * (1 - value / 100)),
  )
}

/** The least of what the policies allow, or the most of it. */
function chosen(
  { selectPolicy, policies = [] }: HPAScalingRules,
  current: number,
  limitOf: (policy: HPAScalingPolicy) => number,
): number {
  if (selectPolicy === 'Disabled') return current
  const limits = policies.map(limitOf)
  return selectPolicy === 'Min' ? Math.min(MAX_INT32, ...limits) : Math.max(-MAX_INT32, ...limits)
}
