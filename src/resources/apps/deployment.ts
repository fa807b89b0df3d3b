/** The Deployment resource: replicated pods with rolling updates of the template. */
import { type Deployment, Deployments, type DeploymentStatus, type DeploymentStrategy } from '#apis/apps/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { selectorText } from '#meta/labels.ts'
import { semanticEqual } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { immutable, nonNegative } from '#meta/validation/rules.ts'
import { intOrPercentValue, validateAtMostAll, validateIntOrPercent } from '#model/int-or-percent.ts'
import { defaultPodTemplate } from '#model/pod-spec/defaults.ts'
import { dropDisabledTemplateFields } from '#model/pod-spec/gated-fields.ts'

import {
  containerColumns,
  podNameWarnings,
  scaleOf,
  selectorOf,
  templateWarnings,
  validateCollisionCount,
  validateCounts,
  validateNotAbove,
} from '../workload.ts'
import { keepAnnotation, readIntegerAnnotation, settleIntegerAnnotation } from './integer-annotation.ts'
import { dropTerminatingReplicas, validateSelectedTemplate } from './replicas.ts'

/** The annotation with the target revision of an old `kubectl rollout undo`. */
const ROLLBACK_TO = 'deprecated.deployment.rollback.to'

export const deployment: Resource<Deployment> = defineResource<Deployment>({
  kind: Deployments,
  // Annotations are copied to ReplicaSets, so a change of them is a new generation.
  generation: (next, old) =>
    !semanticEqual(next.spec, old.spec) || !semanticEqual(next.metadata.annotations, old.metadata.annotations),
  applyDefaults,
  prepareCreate: ({ spec }, context) => dropDisabledTemplateFields(spec.template, undefined, context),
  prepareUpdate: ({ spec }, old, context) => dropDisabledTemplateFields(spec.template, old.spec.template, context),
  validate: (object, context) => validateDeployment(object, undefined, context),
  validateUpdate: (next, old, context) => [
    ...validateDeployment(next, old, context),
    ...immutable(fieldPath('spec.selector'), next.spec.selector, old.spec.selector),
  ],
  warnings: (next, old) => [
    ...(old === undefined ? podNameWarnings(next.metadata) : []),
    ...templateWarnings(next, old),
  ],
  status: {
    keeps: ['spec', 'metadata.labels'],
    prepareUpdate(next, old, context) {
      keepAnnotation(next, old, ROLLBACK_TO)
      dropTerminatingReplicas(next.status, old.status, context)
    },
    validateUpdate: ({ status }, old) => [...validateStatus(status), ...validateCollisionCount(status, old.status)],
  },
  scale: scaleOf<Deployment>(),
  columns: [
    nameColumn,
    { name: 'Ready', value: ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec.replicas ?? 0}` },
    { name: 'Up-to-date', value: ({ status }) => status?.updatedReplicas ?? 0 },
    { name: 'Available', value: ({ status }) => status?.availableReplicas ?? 0 },
    ageColumn,
    ...containerColumns<Deployment>(({ spec }) => spec.template),
    { name: 'Selector', wide: true, value: shownSelector },
  ],
})

function applyDefaults(object: Deployment): void {
  const { spec, metadata } = object
  if (metadata.annotations?.[ROLLBACK_TO] === '') delete metadata.annotations[ROLLBACK_TO]
  settleIntegerAnnotation(object, ROLLBACK_TO)
  spec.replicas ??= 1
  spec.strategy.type ||= 'RollingUpdate'
  if (spec.strategy.type === 'RollingUpdate') {
    spec.strategy.rollingUpdate ??= {}
    spec.strategy.rollingUpdate.maxUnavailable ??= '25%'
    spec.strategy.rollingUpdate.maxSurge ??= '25%'
  }
  spec.revisionHistoryLimit ??= 10
  spec.progressDeadlineSeconds ??= 600
  defaultPodTemplate(spec.template)
}

function validateDeployment(object: Deployment, old: Deployment | undefined, context: RuleContext): FieldError[] {
  const { spec } = object
  const { replicas, strategy, minReadySeconds = 0, revisionHistoryLimit, progressDeadlineSeconds: deadline } = spec
  return collectErrors(
    nonNegative(fieldPath('spec.replicas'), replicas),
    validateSelectedTemplate(spec, old?.spec.template, context),
    validateStrategy(fieldPath('spec.strategy'), strategy),
    nonNegative(fieldPath('spec.minReadySeconds'), minReadySeconds),
    nonNegative(fieldPath('spec.revisionHistoryLimit'), revisionHistoryLimit),
    nonNegative(fieldPath('spec.rollback.version'), readIntegerAnnotation(object, ROLLBACK_TO)),
    nonNegative(fieldPath('spec.progressDeadlineSeconds'), deadline),
    deadline !== undefined &&
      deadline <= minReadySeconds &&
      fieldPath('spec.progressDeadlineSeconds').invalid(deadline, 'must be greater than minReadySeconds'),
  )
}

const strategies = ['Recreate', 'RollingUpdate']

function validateStrategy(path: FieldPath, strategy: DeploymentStrategy): FieldError[] {
  const { type = '', rollingUpdate } = strategy
  const field = path.child('rollingUpdate')
  if (!strategies.includes(type)) return [path.notSupported(strategy, strategies)]
  if (type === 'Recreate') {
    if (rollingUpdate === undefined) return []
    return [field.forbidden("may not be specified when strategy `type` is 'Recreate'")]
  }
  if (rollingUpdate === undefined) return [field.required('this should be defaulted and never be nil')]
  const { maxUnavailable = 0, maxSurge = 0 } = rollingUpdate
  const unavailable = field.child('maxUnavailable')
  return collectErrors(
    validateIntOrPercent(unavailable, maxUnavailable),
    validateIntOrPercent(field.child('maxSurge'), maxSurge),
    intOrPercentValue(maxUnavailable) === 0 &&
      intOrPercentValue(maxSurge) === 0 &&
      unavailable.invalid(maxUnavailable, 'may not be 0 when `maxSurge` is 0'),
    validateAtMostAll(unavailable, maxUnavailable),
  )
}

const counters = [
  'observedGeneration',
  'replicas',
  'updatedReplicas',
  'readyReplicas',
  'availableReplicas',
  'unavailableReplicas',
  'terminatingReplicas',
  'collisionCount',
] as const

function validateStatus(status: DeploymentStatus): FieldError[] {
  return [
    ...validateCounts(fieldPath('status'), status, counters),
    ...validateNotAbove(status, ['updatedReplicas', 'readyReplicas', 'availableReplicas'], 'replicas'),
    ...validateNotAbove(status, ['availableReplicas'], 'readyReplicas', 'readyReplicas'),
  ]
}

function shownSelector({ spec }: Deployment): string {
  const selector = selectorOf(spec.selector)
  return selector === undefined ? '<invalid>' : selectorText(selector)
}
