/** The rules of an autoscaler: its bounds, its target, its metrics, how fast it may go. */
import type {
  CrossVersionObjectReference,
  HorizontalPodAutoscalerSpec,
  HPAScalingPolicy,
  HPAScalingRules,
} from '#apis/autoscaling/v2.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import { asJson, child, type FieldError, index, invalid, notInSet, required } from '#meta/validation/field-error.ts'
import { validatePositive } from '#model/pod-spec/checks.ts'

import { apiVersionComplaint, validateMetrics, validateReference } from './metrics.ts'

const MAX_PERIOD_SECONDS = 1800
const MAX_WINDOW_SECONDS = 3600

const selectPolicies = ['Max', 'Min', 'Disabled']
const policyTypes = ['Pods', 'Percent']

export function validateAutoscaler(
  spec: HorizontalPodAutoscalerSpec,
  old: HorizontalPodAutoscalerSpec | undefined,
  { isEnabled }: RuleContext,
): FieldError[] {
  const least = isEnabled('HPAScaleToZero') || old?.minReplicas === 0 ? 0 : 1
  const had = (old?.metrics ?? []).flatMap(({ type, object }) => (type === 'Object' && object ? [object] : []))
  const badBefore = had.some(({ describedObject }) => apiVersionComplaint(describedObject, 'core') !== undefined)
  return [
    ...validateBounds(spec, least),
    ...validateReference('spec.scaleTargetRef', spec.scaleTargetRef, groupsFor(spec.scaleTargetRef, old)),
    ...validateMetrics('spec.metrics', spec, badBefore ? 'any' : 'core'),
    ...validateRules('spec.behavior.scaleUp', spec.behavior?.scaleUp),
    ...validateRules('spec.behavior.scaleDown', spec.behavior?.scaleDown),
  ]
}

function validateBounds({ minReplicas, maxReplicas }: HorizontalPodAutoscalerSpec, least: number): FieldError[] {
  const field = 'spec.maxReplicas'
  const errors: FieldError[] = []
  if (minReplicas !== undefined && minReplicas < least) {
    errors.push(invalid('spec.minReplicas', minReplicas, `must be greater than or equal to ${least}`, 'minimum'))
  }
  if (maxReplicas === 0) errors.push(required(field, 'must be set and greater than 0'))
  if (maxReplicas < 0) errors.push(invalid(field, maxReplicas, 'must be greater than or equal to 1', 'minimum'))
  if (minReplicas !== undefined && maxReplicas < minReplicas) {
    errors.push(invalid(field, maxReplicas, 'must be greater than or equal to `minReplicas`'))
  }
  return errors
}

/** Of the kinds in the core group only one can be scaled. What an object had before it may keep. */
function groupsFor(
  { apiVersion, kind }: CrossVersionObjectReference,
  old: HorizontalPodAutoscalerSpec | undefined,
): 'named' | 'core' | 'any' {
  const before = old?.scaleTargetRef
  if (before !== undefined && before.kind === kind && before.apiVersion === apiVersion) return 'any'
  return kind === 'ReplicationController' ? 'core' : 'named'
}

function validateRules(path: string, rules: HPAScalingRules | undefined): FieldError[] {
  if (rules === undefined) return []
  const { stabilizationWindowSeconds: seconds = 0, selectPolicy, policies = [], tolerance } = rules
  const field = child(path, 'stabilizationWindowSeconds')
  const errors: FieldError[] = []
  if (seconds < 0) errors.push(invalid(field, seconds, 'must be greater than or equal to zero'))
  if (seconds > MAX_WINDOW_SECONDS) {
    errors.push(invalid(field, seconds, `must be less than or equal to ${MAX_WINDOW_SECONDS}`))
  }
  if (selectPolicy !== undefined && !selectPolicies.includes(selectPolicy)) {
    errors.push(notInSet(child(path, 'selectPolicy'), asJson(selectPolicy), selectPolicies))
  }
  if (policies.length === 0) errors.push(required(child(path, 'policies'), 'must specify at least one Policy'))
  errors.push(...policies.flatMap((policy, at) => validatePolicy(index(child(path, 'policies'), at), policy)))
  if (tolerance !== undefined && quantitySign(parseQuantity(tolerance)) < 0) {
    errors.push(invalid(child(path, 'tolerance'), tolerance, 'must be greater than or equal to 0'))
  }
  return errors
}

function validatePolicy(path: string, { type, value, periodSeconds: seconds }: HPAScalingPolicy): FieldError[] {
  const field = child(path, 'periodSeconds')
  return [
    ...(policyTypes.includes(type) ? [] : [notInSet(child(path, 'type'), asJson(type), policyTypes)]),
    ...validatePositive(child(path, 'value'), value),
    ...validatePositive(field, seconds),
    ...(seconds > MAX_PERIOD_SECONDS
      ? [invalid(field, seconds, `must be less than or equal to ${MAX_PERIOD_SECONDS}`)]
      : []),
  ]
}
