/** The StatefulSet resource: pods with stable names and volumes, created and replaced in order. */
import {
  type StatefulSet,
  StatefulSets,
  type StatefulSetSpec,
  type StatefulSetStatus,
  type StatefulSetUpdateStrategy,
} from '#apis/apps/v1.ts'
import type { PersistentVolumeClaim, PodTemplateSpec } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { goQuote } from '#lib/go/text.ts'
import { semanticEqual } from '#meta/object.ts'
import { parseQuantity, quantityMilliValue } from '#meta/quantity.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { nameIsLabel } from '#meta/validation/names.ts'
import { nonNegative, oneOf, validateAnnotations, validateDnsLabel, validateLabels } from '#meta/validation/rules.ts'
import { intOrPercentValue, validateAtMostAll, validateIntOrPercent } from '#model/int-or-percent.ts'
import { validatePodAnnotations } from '#model/pod-spec/annotations.ts'
import { defaultPodTemplate, roundAmounts } from '#model/pod-spec/defaults.ts'
import { dropDisabledTemplateFields } from '#model/pod-spec/gated-fields.ts'
import { podTemplateOptions } from '#model/pod-spec/options.ts'
import { validatePodTemplate, validateTemplateLabels } from '#model/pod-spec/pod-template.ts'
import type { PodOptions } from '#model/pod-spec/rules.ts'
import { validateClaimSpec } from '#model/pod-spec/volumes/claim-spec.ts'
import { amountOf } from '#model/resource-lists.ts'

import {
  containerColumns,
  scaleOf,
  selectorOf,
  templateWarnings,
  validateCollisionCount,
  validateCounts,
  validateNotAbove,
} from '../workload.ts'
import { validateSelector } from './replicas.ts'

const GATE = 'MaxUnavailableStatefulSet'

export const statefulSet: Resource<StatefulSet> = defineResource<StatefulSet>({
  kind: StatefulSets,
  nameRule: nameIsLabel,
  generation: 'spec',
  applyDefaults: ({ spec }, context) => applyDefaults(spec, context),
  prepareCreate({ spec }, context) {
    dropMaxUnavailable(spec, undefined, context)
    dropDisabledTemplateFields(spec.template, undefined, context)
  },
  prepareUpdate({ spec }, old, context) {
    dropMaxUnavailable(spec, old.spec, context)
    dropDisabledTemplateFields(spec.template, old.spec.template, context)
  },
  validate: ({ spec }, context) =>
    validateSpec(spec, podTemplateOptions(context), { claims: true, serviceName: true, template: true }),
  validateUpdate: ({ spec }, old, context) => validateSpecUpdate(spec, old.spec, context),
  warnings: (next, old) => [
    ...templateWarnings(next, old),
    ...claimWarnings(next.spec, old === undefined),
    ...((next.spec.revisionHistoryLimit ?? 0) < 0
      ? ['spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended']
      : []),
  ],
  status: {
    keeps: ['spec'],
    validateUpdate: ({ status }, old) => [...validateStatus(status), ...validateCollisionCount(status, old.status)],
  },
  scale: scaleOf<StatefulSet>(),
  columns: [
    nameColumn,
    { name: 'Ready', value: ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec.replicas ?? 0}` },
    ageColumn,
    ...containerColumns<StatefulSet>(({ spec }) => spec.template),
  ],
})

function applyDefaults(spec: StatefulSetSpec, context: RuleContext): void {
  spec.podManagementPolicy ||= 'OrderedReady'
  spec.updateStrategy ??= {}
  defaultStrategy(spec.updateStrategy, context)
  const retention = (spec.persistentVolumeClaimRetentionPolicy ??= {})
  retention.whenDeleted ||= 'Retain'
  retention.whenScaled ||= 'Retain'
  spec.replicas ??= 1
  spec.revisionHistoryLimit ??= 10
  defaultPodTemplate(spec.template)
  for (const claim of spec.volumeClaimTemplates ?? []) defaultClaim(claim)
}

/** A strategy with a type gets no default rollingUpdate. */
function defaultStrategy(strategy: StatefulSetUpdateStrategy, { isEnabled }: RuleContext): void {
  if ((strategy.type ?? '') === '') {
    strategy.type = 'RollingUpdate'
    strategy.rollingUpdate ??= {}
  }
  if (strategy.type === 'RollingUpdate' && strategy.rollingUpdate !== undefined) {
    strategy.rollingUpdate.partition ??= 0
    if (isEnabled(GATE)) strategy.rollingUpdate.maxUnavailable ??= 1
  }
}

/** Claim templates are written as complete objects with their kind. */
function defaultClaim(claim: PersistentVolumeClaim): void {
  claim.kind = 'PersistentVolumeClaim'
  claim.apiVersion = 'v1'
  claim.status ??= {}
  claim.status.phase ||= 'Pending'
  claim.spec.volumeMode ??= 'Filesystem'
  const { spec, status } = claim
  for (const list of [spec.resources?.limits, spec.resources?.requests]) roundAmounts(list)
  for (const list of [status.capacity, status.allocatedResources]) roundAmounts(list)
}

function dropMaxUnavailable(
  { updateStrategy }: StatefulSetSpec,
  old: StatefulSetSpec | undefined,
  { isEnabled }: RuleContext,
): void {
  if (isEnabled(GATE) || old?.updateStrategy.rollingUpdate?.maxUnavailable !== undefined) return
  delete updateStrategy.rollingUpdate?.maxUnavailable
}

/** The validated parts: an update skips immutable parts and parts that were invalid before. */
interface Scope {
  readonly claims: boolean
  readonly serviceName: boolean
  readonly template: boolean
}

function validateSpec(spec: StatefulSetSpec, options: PodOptions, scope: Scope): FieldError[] {
  const { podManagementPolicy: policy = '', persistentVolumeClaimRetentionPolicy: retention } = spec
  const field = fieldPath('spec.persistentVolumeClaimRetentionPolicy')
  return collectErrors(
    validateManagementPolicy(policy),
    validateUpdateStrategy(fieldPath('spec.updateStrategy'), spec.updateStrategy),
    oneOf(field.child('whenDeleted'), retention && (retention.whenDeleted ?? ''), ['Retain', 'Delete']),
    oneOf(field.child('whenScaled'), retention && (retention.whenScaled ?? ''), ['Retain', 'Delete']),
    scope.claims &&
      fieldPath('spec.volumeClaimTemplates').each(spec.volumeClaimTemplates, (path, claim) =>
        validateClaimSpec(path.child('spec'), claim.spec),
      ),
    validateCounts(fieldPath('spec'), spec, ['replicas', 'minReadySeconds']),
    nonNegative(fieldPath('spec.ordinals.start'), spec.ordinals?.start),
    scope.serviceName && spec.serviceName !== '' && validateDnsLabel(fieldPath('spec.serviceName'), spec.serviceName),
    validateSelector(spec.selector, 'statefulset'),
    validateTemplate(spec, options, scope),
  )
}

function validateManagementPolicy(policy: string): FieldError[] {
  if (policy === '') return [fieldPath('spec.podManagementPolicy').required()]
  if (policy === 'OrderedReady' || policy === 'Parallel') return []
  return [fieldPath('spec.podManagementPolicy').invalid(asJson(policy), "must be 'OrderedReady' or 'Parallel'")]
}

function validateUpdateStrategy(path: FieldPath, strategy: StatefulSetUpdateStrategy): FieldError[] {
  const { type = '', rollingUpdate } = strategy
  const field = path.child('rollingUpdate')
  switch (type) {
    case '':
      return [path.required()]
    case 'OnDelete':
      if (rollingUpdate === undefined) return []
      return [field.invalid(rollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")]
    case 'RollingUpdate':
      return [
        ...nonNegative(field.child('partition'), rollingUpdate?.partition),
        ...validateMaxUnavailable(field.child('maxUnavailable'), rollingUpdate?.maxUnavailable),
      ]
    default:
      return [path.invalid(strategy, "must be 'RollingUpdate' or 'OnDelete'")]
  }
}

function validateMaxUnavailable(path: FieldPath, value: number | string | undefined): FieldError[] {
  if (value === undefined) return []
  return collectErrors(
    validateIntOrPercent(path, value),
    intOrPercentValue(value) === 0 && path.invalid(value, 'cannot be 0'),
    validateAtMostAll(path, value),
  )
}

function validateTemplate(spec: StatefulSetSpec, options: PodOptions, scope: Scope): FieldError[] {
  const path = fieldPath('spec.template')
  const { metadata, spec: pod } = spec.template
  const selector = selectorOf(spec.selector)
  const errors: FieldError[] = []
  if (selector === undefined) errors.push(fieldPath('spec.selector').invalid(spec.selector, ''))
  else {
    const template = templateAsRun(spec)
    errors.push(...validateTemplateLabels(template, selector, path))
    if (scope.template) errors.push(...validatePodTemplate(template, path, options))
    errors.push(
      ...validateLabels(path.child('labels'), metadata.labels),
      ...validateAnnotations(path.child('annotations'), metadata.annotations),
      ...validatePodAnnotations(path.child('annotations'), template, options),
    )
  }
  const { restartPolicy = '', activeDeadlineSeconds } = pod
  if (restartPolicy !== 'Always') {
    errors.push(path.child('spec.restartPolicy').notSupported(asJson(restartPolicy), ['Always']))
  }
  if (activeDeadlineSeconds !== undefined) {
    const rule = 'activeDeadlineSeconds in StatefulSet is not Supported'
    errors.push(path.child('spec.activeDeadlineSeconds').forbidden(rule))
  }
  return errors
}

/** The template as the controller uses it: with pod names, and the claims as first volumes. */
function templateAsRun({ template, volumeClaimTemplates: claims = [] }: StatefulSetSpec): PodTemplateSpec {
  const { subdomain: _, hostname: __, ...spec } = template.spec
  if (claims.length === 0) return { ...template, spec }
  const names = new Set(claims.map(({ metadata }) => metadata.name ?? ''))
  const own = [...names].map((name) => ({ name, persistentVolumeClaim: { claimName: name } }))
  const others = (spec.volumes ?? []).filter(({ name }) => !names.has(name))
  return { ...template, spec: { ...spec, volumes: [...own, ...others] } }
}

const changeable = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
] as const

function validateSpecUpdate(next: StatefulSetSpec, old: StatefulSetSpec, context: RuleContext): FieldError[] {
  const options = podTemplateOptions(context, old.template)
  const scope = { claims: false, serviceName: false, template: true }
  const template = validateSpec(old, options, scope).length === 0
  const errors = validateSpec(next, options, { ...scope, template })
  if (semanticEqual(unchangeable(next), unchangeable(old))) return errors
  const names = changeable.map((name) => `'${name}'`)
  const list = `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
  return [
    ...errors,
    fieldPath('spec').forbidden(`updates to statefulset spec for fields other than ${list} are forbidden`),
  ]
}

function unchangeable(spec: StatefulSetSpec): Partial<StatefulSetSpec> {
  const rest: Partial<StatefulSetSpec> = { ...spec }
  for (const name of changeable) delete rest[name]
  return rest
}

/** Upstream's path has one segment less for a new set. */
function claimWarnings({ volumeClaimTemplates = [] }: StatefulSetSpec, isNew: boolean): string[] {
  return volumeClaimTemplates.flatMap(({ spec }, at) => {
    const path = fieldPath('spec.volumeClaimTemplates')
      .index(at)
      .child(isNew ? 'resources' : 'Spec.resources')
    return (['requests', 'limits'] as const).flatMap((list) => {
      const amount = amountOf(spec.resources?.[list], 'storage')
      if (amount === undefined || quantityMilliValue(parseQuantity(amount)) % 1000 === 0) return []
      const complaint = `fractional byte value ${goQuote(amount)} is invalid, must be an integer`
      return [`${path.child(list).key('storage')}: ${complaint}`]
    })
  })
}

const counters = [
  'replicas',
  'readyReplicas',
  'currentReplicas',
  'updatedReplicas',
  'availableReplicas',
  'observedGeneration',
  'collisionCount',
] as const

function validateStatus(status: StatefulSetStatus): FieldError[] {
  const parts = ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'] as const
  return [
    ...validateCounts(fieldPath('status'), status, counters),
    ...validateNotAbove(status, parts, 'replicas'),
    ...validateNotAbove(status, ['availableReplicas'], 'readyReplicas'),
  ]
}
