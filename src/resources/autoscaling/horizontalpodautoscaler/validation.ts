/** Validates an autoscaler: bounds, target, metrics and behavior. */
import type {
  CrossVersionObjectReference,
  HorizontalPodAutoscalerSpec,
  HPAScalingPolicy,
  HPAScalingRules,
} from '#apis/autoscaling/v2.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { oneOfSet, validatePositive } from '#meta/validation/rules.ts'

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
    ...validateReference(fieldPath('spec.scaleTargetRef'), spec.scaleTargetRef, groupsFor(spec.scaleTargetRef, old)),
    ...validateMetrics(fieldPath('spec.metrics'), spec, badBefore ? 'any' : 'core'),
    ...validateRules(fieldPath('spec.behavior.scaleUp'), spec.behavior?.scaleUp),
    ...validateRules(fieldPath('spec.behavior.scaleDown'), spec.behavior?.scaleDown),
  ]
}

function validateBounds({ minReplicas, maxReplicas }: HorizontalPodAutoscalerSpec, least: number): FieldError[] {
  const field = fieldPath('spec.maxReplicas')
  return collectErrors(
    minReplicas !== undefined &&
      minReplicas < least &&
      fieldPath('spec.minReplicas').invalid(minReplicas, `must be greater than or equal to ${least}`, 'minimum'),
    maxReplicas === 0 && field.required('must be set and greater than 0'),
    maxReplicas < 0 && field.invalid(maxReplicas, 'must be greater than or equal to 1', 'minimum'),
    minReplicas !== undefined &&
      maxReplicas < minReplicas &&
      field.invalid(maxReplicas, 'must be greater than or equal to `minReplicas`'),
  )
}

/** Only one kind of the core group can be scaled. An update may keep an old invalid target. */
function groupsFor(
  { apiVersion, kind }: CrossVersionObjectReference,
  old: HorizontalPodAutoscalerSpec | undefined,
): 'named' | 'core' | 'any' {
  const before = old?.scaleTargetRef
  if (before !== undefined && before.kind === kind && before.apiVersion === apiVersion) return 'any'
  return kind === 'ReplicationController' ? 'core' : 'named'
}

function validateRules(path: FieldPath, rules: HPAScalingRules | undefined): FieldError[] {
  if (rules === undefined) return []
  const { stabilizationWindowSeconds: seconds = 0, selectPolicy, policies = [], tolerance } = rules
  const field = path.child('stabilizationWindowSeconds')
  return collectErrors(
    seconds < 0 && field.invalid(seconds, 'must be greater than or equal to zero'),
    seconds > MAX_WINDOW_SECONDS && field.invalid(seconds, `must be less than or equal to ${MAX_WINDOW_SECONDS}`),
    selectPolicy !== undefined &&
      !selectPolicies.includes(selectPolicy) &&
      path.child('selectPolicy').notInSet(asJson(selectPolicy), selectPolicies),
    policies.length === 0 && path.child('policies').required('must specify at least one Policy'),
    path.child('policies').each(policies, validatePolicy),
    tolerance !== undefined &&
      quantitySign(parseQuantity(tolerance)) < 0 &&
      path.child('tolerance').invalid(tolerance, 'must be greater than or equal to 0'),
  )
}

function validatePolicy(path: FieldPath, { type, value, periodSeconds: seconds }: HPAScalingPolicy): FieldError[] {
  const field = path.child('periodSeconds')
  return collectErrors(
    oneOfSet(path.child('type'), type, policyTypes),
    validatePositive(path.child('value'), value),
    validatePositive(field, seconds),
    seconds > MAX_PERIOD_SECONDS && field.invalid(seconds, `must be less than or equal to ${MAX_PERIOD_SECONDS}`),
  )
}
