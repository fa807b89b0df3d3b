/** Deployment: pods of one template, replaced step by step when the template changes. */
import { type Deployment, Deployments, type DeploymentStatus, type DeploymentStrategy } from '#apis/apps/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { selectorText } from '#meta/labels.ts'
import { semanticEqual } from '#meta/object.ts'
import { child, type FieldError, forbidden, invalid, notSupported, required } from '#meta/validation/field-error.ts'
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

/** Where `kubectl rollout undo` of old put the revision to go back to. */
const ROLLBACK_TO = 'deprecated.deployment.rollback.to'

export const deployment: Resource<Deployment> = defineResource<Deployment>({
  kind: Deployments,
  // Annotations are copied to the ReplicaSets, so that a change of one is work too.
  generation: (next, old) =>
    !semanticEqual(next.spec, old.spec) || !semanticEqual(next.metadata.annotations, old.metadata.annotations),
  applyDefaults,
  prepareCreate: ({ spec }, context) => dropDisabledTemplateFields(spec.template, undefined, context),
  prepareUpdate: ({ spec }, old, context) => dropDisabledTemplateFields(spec.template, old.spec.template, context),
  validate: (object, context) => validateDeployment(object, undefined, context),
  validateUpdate: (next, old, context) => [
    ...validateDeployment(next, old, context),
    ...immutable('spec.selector', next.spec.selector, old.spec.selector),
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
  return [
    ...nonNegative('spec.replicas', replicas),
    ...validateSelectedTemplate(spec, old?.spec.template, context),
    ...validateStrategy('spec.strategy', strategy),
    ...nonNegative('spec.minReadySeconds', minReadySeconds),
    ...nonNegative('spec.revisionHistoryLimit', revisionHistoryLimit),
    ...nonNegative('spec.rollback.version', readIntegerAnnotation(object, ROLLBACK_TO)),
    ...nonNegative('spec.progressDeadlineSeconds', deadline),
    ...(deadline !== undefined && deadline <= minReadySeconds
      ? [invalid('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds')]
      : []),
  ]
}

const strategies = ['Recreate', 'RollingUpdate']

function validateStrategy(path: string, strategy: DeploymentStrategy): FieldError[] {
  const { type = '', rollingUpdate } = strategy
  const field = child(path, 'rollingUpdate')
  if (!strategies.includes(type)) return [notSupported(path, strategy, strategies)]
  if (type === 'Recreate') {
    if (rollingUpdate === undefined) return []
    return [forbidden(field, "may not be specified when strategy `type` is 'Recreate'")]
  }
  if (rollingUpdate === undefined) return [required(field, 'this should be defaulted and never be nil')]
  const { maxUnavailable = 0, maxSurge = 0 } = rollingUpdate
  const unavailable = child(field, 'maxUnavailable')
  return [
    ...validateIntOrPercent(unavailable, maxUnavailable),
    ...validateIntOrPercent(child(field, 'maxSurge'), maxSurge),
    ...(intOrPercentValue(maxUnavailable) === 0 && intOrPercentValue(maxSurge) === 0
      ? [invalid(unavailable, maxUnavailable, 'may not be 0 when `maxSurge` is 0')]
      : []),
    ...validateAtMostAll(unavailable, maxUnavailable),
  ]
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
    ...validateCounts('status', status, counters),
    ...validateNotAbove(status, ['updatedReplicas', 'readyReplicas', 'availableReplicas'], 'replicas'),
    ...validateNotAbove(status, ['availableReplicas'], 'readyReplicas', 'readyReplicas'),
  ]
}

function shownSelector({ spec }: Deployment): string {
  const selector = selectorOf(spec.selector)
  return selector === undefined ? '<invalid>' : selectorText(selector)
}
