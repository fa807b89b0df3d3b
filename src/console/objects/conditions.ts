/** Reads the conditions of any object, and whether each is a problem. */
import type { KubeObject } from '#meta/object.ts'

import type { Tone } from '../parts/tone.ts'

export interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly tone: Tone | undefined
}

/** Conditions that are a problem while they are true. */
const NEGATIVE =
  /Pressure$|Unavailable$|Failure$|^Failed$|^Stalled$|^Degraded$|FailureTarget$|DisruptionTarget$|ContentFailure$|Conflict$|^Dangling|NamesNotAccepted/
/** Conditions that are never a problem. */
const NEUTRAL =
  /^Progressing$|^ScalingLimited$|^Suspended$|^PodReadyToStartContainers$|Resizing$|^SuccessCriteriaMet$|^Terminating$/

export function conditionsOf(object: KubeObject): readonly Condition[] {
  const { status } = object as { status?: { conditions?: unknown } }
  if (!Array.isArray(status?.conditions)) return []
  return (status.conditions as (Partial<Condition> | null)[]).flatMap((condition) => {
    const { type = '', status: value = '', reason = '', message = '', lastTransitionTime = '' } = condition ?? {}
    return [{ type, status: value, reason, message, lastTransitionTime, tone: toneOfCondition(type, value) }]
  })
}

export function conditionOf(object: KubeObject, type: string): Condition | undefined {
  return conditionsOf(object).find((condition) => condition.type === type)
}

function toneOfCondition(type: string, status: string): Tone | undefined {
  if (status === 'Unknown') return 'busy'
  if (NEUTRAL.test(type)) return status === 'False' && type === 'Progressing' ? 'bad' : undefined
  const isGood = (status === 'True') !== NEGATIVE.test(type)
  if (isGood) return NEGATIVE.test(type) ? undefined : 'good'
  return 'bad'
}
