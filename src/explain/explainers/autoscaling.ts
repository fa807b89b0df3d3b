/** Explains what a HorizontalPodAutoscaler does, from its conditions and the metrics that it last read. */
import {
  type HorizontalPodAutoscaler,
  type HorizontalPodAutoscalerCondition,
  HorizontalPodAutoscalers,
} from '#apis/autoscaling/v2.ts'

import { type Explainer, isOf } from '../explainer.ts'
import { type Finding, nameOf, notKnown, type Step } from '../explanation.ts'
import type { Reader } from '../reader.ts'

/** The condition that explains most comes first. */
const CONDITIONS = ['AbleToScale', 'ScalingActive', 'ScalingLimited'] as const

export const autoscaling: Explainer = {
  name: 'autoscaling',
  applies: (target) => isOf(target, HorizontalPodAutoscalers) && target.kind.version === 'v2',
  explain: ({ object }, reader) => Promise.resolve(whySize(object as HorizontalPodAutoscaler, reader)),
}

function whySize(autoscaler: HorizontalPodAutoscaler, reader: Reader): Finding {
  const { spec, status } = autoscaler
  const named = `HorizontalPodAutoscaler ${nameOf(autoscaler)}`
  const conditions = CONDITIONS.flatMap((type) => status?.conditions?.find((one) => one.type === type) ?? [])
  if (conditions.length === 0) return notKnown(`the controller has not reported on ${named}`)
  const usage = usageStep(autoscaler, reader)
  const steps = [
    ...(usage === undefined ? [] : [usage]),
    ...conditions.map((one) => conditionStep(autoscaler, one, reader)),
  ]
  const target = `${spec.scaleTargetRef.kind} ${spec.scaleTargetRef.name}`
  const desired = status?.desiredReplicas ?? 0
  const failed = conditions.find((one) => one.type !== 'ScalingLimited' && one.status === 'False')
  if (failed !== undefined)
    return { verdict: `${named} does not scale ${target} because ${failed.message ?? ''}`, steps, wouldHelp: [] }
  const limited = conditions.find((one) => one.type === 'ScalingLimited' && one.status === 'True')
  const stabilized = conditions.find(({ reason }) => reason === 'ScaleDownStabilized' || reason === 'ScaleUpStabilized')
  const deciding = limited ?? stabilized
  if (deciding !== undefined) {
    const verdict = `${named} wants ${desired} replicas of ${target} because ${deciding.message ?? ''}`
    return { verdict, steps, wouldHelp: deciding.reason === 'TooManyReplicas' ? ['a larger spec.maxReplicas'] : [] }
  }
  return usage === undefined
    ? notKnown(`no explainer finds anything wrong with ${named}`, steps)
    : { verdict: `${named} wants ${desired} replicas of ${target}: ${usage.did}`, steps, wouldHelp: [] }
}

function conditionStep(
  autoscaler: HorizontalPodAutoscaler,
  { type, status, reason = '', message = '', lastTransitionTime }: HorizontalPodAutoscalerCondition,
  reader: Reader,
): Step {
  const path = `status.conditions[${type}]`
  return {
    ...(lastTransitionTime != null && { at: lastTransitionTime }),
    ...stepOf(autoscaler, `reported ${type}=${status}: ${reason}: ${message}`),
    evidence: reader.cite(HorizontalPodAutoscalers, autoscaler, `${path}.status`, `${path}.message`),
  }
}

function stepOf(autoscaler: HorizontalPodAutoscaler, did: string): Step {
  return {
    revision: autoscaler.metadata.resourceVersion ?? '',
    actor: 'horizontal-pod-autoscaler',
    did,
    object: `horizontalpodautoscalers.autoscaling/${nameOf(autoscaler)}`,
    because: [],
    evidence: [],
    certainty: 'reported',
  }
}

/** Of an autoscaler by the utilization of one resource: the usage that the controller last read, and the target. */
function usageStep(autoscaler: HorizontalPodAutoscaler, reader: Reader): Step | undefined {
  const { metrics = [] } = autoscaler.spec
  const { currentMetrics } = autoscaler.status ?? {}
  const [wanted] = metrics
  const goal = wanted?.resource?.target.averageUtilization
  const used = currentMetrics?.[0]?.resource?.current.averageUtilization
  if (metrics.length !== 1 || goal === undefined || used === undefined) return undefined
  const path = 'status.currentMetrics[0].resource.current.averageUtilization'
  const did = `found that the pods use ${used} % of the ${wanted?.resource?.name} that they request; the target is ${goal} %`
  return {
    ...stepOf(autoscaler, did),
    evidence: reader.cite(HorizontalPodAutoscalers, autoscaler, 'spec.metrics', path),
  }
}
