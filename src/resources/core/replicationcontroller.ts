/** The ReplicationController resource: the predecessor of ReplicaSet, with a plain map as selector. */
import { type ReplicationController, ReplicationControllers, type ReplicationControllerStatus } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { labelsText, selectorFromLabels, selectorText } from '#meta/labels.ts'
import { addFinalizer, hasFinalizer, semanticEqual } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { nameIsSubdomain } from '#meta/validation/names.ts'
import { nonNegative } from '#meta/validation/rules.ts'
import { defaultPodTemplate } from '#model/pod-spec/defaults.ts'
import { dropDisabledTemplateFields } from '#model/pod-spec/gated-fields.ts'
import { podTemplateOptions } from '#model/pod-spec/options.ts'
import { validatePodTemplateForSelector } from '#model/pod-spec/pod-template.ts'
import { podWarnings } from '#model/pod-spec/warnings/warnings.ts'

import { podNameWarnings, validateCounts, validateNotAbove } from '../workload.ts'

export const replicationController: Resource<ReplicationController> = defineResource<ReplicationController>({
  kind: ReplicationControllers,
  storagePrefix: 'controllers',
  // Upstream validates the generated name, not its prefix.
  nameRule: (name, prefix) => (prefix ? [] : nameIsSubdomain(name, false)),
  generation: 'spec',
  applyDefaults,
  prepareCreate: ({ spec }, context) => dropDisabledTemplateFields(spec?.template, undefined, context),
  prepareUpdate: (next, old, context) => dropDisabledTemplateFields(next.spec?.template, old.spec?.template, context),
  validate: (object, context) => validateSpec(object, undefined, context),
  validateUpdate: (next, old, context) => [...validateSpec(next, old, context), ...validateConvertible(next, old)],
  warnings,
  // Its pods outlive it unless the client decides otherwise; later kinds have another default.
  deletion(object, { propagationPolicy, orphanDependents }) {
    const decided = propagationPolicy !== undefined || orphanDependents !== undefined
    const known = hasFinalizer(object, 'orphan') || hasFinalizer(object, 'foregroundDeletion')
    if (!decided && !known && object.metadata.deletionTimestamp === undefined) addFinalizer(object, 'orphan')
  },
  status: {
    keeps: ['spec'],
    validateUpdate: ({ status }) => validateStatus(status),
  },
  scale: {
    replicas: ({ spec }) => spec?.replicas ?? 0,
    setReplicas(object, replicas) {
      object.spec = { ...object.spec, replicas }
    },
    statusReplicas: ({ status }) => status?.replicas ?? 0,
    selector: ({ spec }) => selectorText(selectorFromLabels(spec?.selector)),
  },
  fieldSelectors: { 'status.replicas': ({ status }) => String(status?.replicas ?? 0) },
  unknownField: (label) => `field label not supported: ${label}`,
  columns: [
    nameColumn,
    { name: 'Desired', type: 'integer', value: ({ spec }) => spec?.replicas ?? 0 },
    { name: 'Current', type: 'integer', value: ({ status }) => status?.replicas ?? 0 },
    { name: 'Ready', type: 'integer', value: ({ status }) => status?.readyReplicas ?? 0 },
    ageColumn,
    {
      name: 'Containers',
      wide: true,
      value: (object) =>
        containers(object)
          .map(({ name }) => name)
          .join(','),
    },
    {
      name: 'Images',
      wide: true,
      value: (object) =>
        containers(object)
          .map(({ image = '' }) => image)
          .join(','),
    },
    { name: 'Selector', wide: true, value: ({ spec }) => labelsText(spec?.selector) },
  ],
})

function applyDefaults({ metadata, spec }: ReplicationController): void {
  if (spec === undefined) return
  spec.replicas ??= 1
  const labels = spec.template?.metadata?.labels
  if (labels !== undefined) {
    if (isEmpty(spec.selector)) spec.selector = { ...labels }
    if (isEmpty(metadata.labels)) metadata.labels = { ...labels }
  }
  defaultPodTemplate(spec.template)
}

function isEmpty(map: Readonly<Record<string, string>> | undefined): boolean {
  return Object.keys(map ?? {}).length === 0
}

function containers({ spec }: ReplicationController): readonly { name: string; image?: string }[] {
  return spec?.template?.spec?.containers ?? []
}

function validateSpec(
  { spec }: ReplicationController,
  old: ReplicationController | undefined,
  context: RuleContext,
): FieldError[] {
  const { minReadySeconds, selector, replicas, template } = spec ?? {}
  const options = podTemplateOptions(context, old?.spec?.template)
  const owner = { selector: selectorFromLabels(selector), kind: 'ReplicationController' as const, options }
  return collectErrors(
    nonNegative(fieldPath('spec.minReadySeconds'), minReadySeconds),
    isEmpty(selector) && fieldPath('spec.selector').required(),
    replicas === undefined ? fieldPath('spec.replicas').required() : nonNegative(fieldPath('spec.replicas'), replicas),
    validatePodTemplateForSelector(template, fieldPath('spec.template'), owner),
  )
}

const NON_CONVERTIBLE = 'non-convertible.kubernetes.io'

/** Fields that could not be converted when the object was written as a ReplicaSet. */
function validateConvertible(next: ReplicationController, old: ReplicationController): FieldError[] {
  return Object.entries(old.metadata.annotations ?? {}).flatMap(([name, value]) => {
    const parts = name.split('/')
    const field = parts[1] ?? ''
    if (!name.startsWith(NON_CONVERTIBLE) || parts.length !== 2) return []
    if (!field.includes('selector'))
      return [{ ...fieldPath(field).notFound(value), detail: 'unknown non-convertible field' }]
    if (semanticEqual(next.spec?.selector, old.spec?.selector)) return []
    return [fieldPath('spec.selector').invalid(next.spec?.selector, 'cannot update non-convertible selector')]
  })
}

function validateStatus(status: ReplicationControllerStatus): FieldError[] {
  const parts = ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'] as const
  return [
    ...validateCounts(fieldPath('status'), status, ['replicas', ...parts, 'observedGeneration']),
    ...validateNotAbove(status, parts, 'replicas'),
    ...validateNotAbove(status, ['availableReplicas'], 'readyReplicas', 'readyReplicas'),
  ]
}

function warnings(next: ReplicationController, old: ReplicationController | undefined): string[] {
  const { template } = next.spec ?? {}
  const ofTemplate = template === undefined ? [] : podWarnings(fieldPath('spec.template'), template)
  if (old !== undefined) return next.metadata.generation === old.metadata.generation ? [] : ofTemplate
  return [...podNameWarnings(next.metadata), ...ofTemplate]
}
