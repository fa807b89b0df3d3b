/** The ReplicaSet resource: a number of interchangeable pods of one template. Usually created by a Deployment. */
import { type ReplicaSet, ReplicaSets, type ReplicaSetStatus } from '#apis/apps/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { labelSelectorText } from '#meta/label-selector.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { immutable } from '#meta/validation/rules.ts'
import { defaultPodTemplate } from '#model/pod-spec/defaults.ts'
import { dropDisabledTemplateFields } from '#model/pod-spec/gated-fields.ts'

import {
  containerColumns,
  podNameWarnings,
  scaleOf,
  templateWarnings,
  validateCounts,
  validateNotAbove,
} from '../workload.ts'
import { dropTerminatingReplicas, validateSelectedTemplate } from './replicas.ts'

export const replicaSet: Resource<ReplicaSet> = defineResource<ReplicaSet>({
  kind: ReplicaSets,
  generation: 'spec',
  applyDefaults({ spec }) {
    spec.replicas ??= 1
    defaultPodTemplate(spec.template)
  },
  prepareCreate: ({ spec }, context) => dropDisabledTemplateFields(spec.template, undefined, context),
  prepareUpdate: ({ spec }, old, context) => dropDisabledTemplateFields(spec.template, old.spec.template, context),
  validate: (object, context) => validateReplicaSet(object, undefined, context),
  validateUpdate: (next, old, context) => [
    ...validateReplicaSet(next, old, context),
    ...immutable(fieldPath('spec.selector'), next.spec.selector, old.spec.selector),
  ],
  warnings: (next, old) => [
    ...(old === undefined ? podNameWarnings(next.metadata) : []),
    ...templateWarnings(next, old),
  ],
  status: {
    keeps: ['spec'],
    prepareUpdate(next, old, context) {
      dropTerminatingReplicas(next.status, old.status, context)
    },
    validateUpdate: ({ status }) => validateStatus(status),
  },
  scale: scaleOf<ReplicaSet>(),
  columns: [
    nameColumn,
    { name: 'Desired', type: 'integer', value: ({ spec }) => spec.replicas ?? 0 },
    { name: 'Current', type: 'integer', value: ({ status }) => status?.replicas ?? 0 },
    { name: 'Ready', type: 'integer', value: ({ status }) => status?.readyReplicas ?? 0 },
    ageColumn,
    ...containerColumns<ReplicaSet>(({ spec }) => spec.template),
    { name: 'Selector', wide: true, value: ({ spec }) => labelSelectorText(spec.selector) },
  ],
})

function validateReplicaSet({ spec }: ReplicaSet, old: ReplicaSet | undefined, context: RuleContext): FieldError[] {
  return [
    ...validateCounts(fieldPath('spec'), spec, ['replicas', 'minReadySeconds']),
    ...validateSelectedTemplate(spec, old?.spec.template, context),
  ]
}

const counters = [
  'replicas',
  'fullyLabeledReplicas',
  'readyReplicas',
  'availableReplicas',
  'observedGeneration',
  'terminatingReplicas',
] as const

function validateStatus(status: ReplicaSetStatus): FieldError[] {
  return [
    ...validateCounts(fieldPath('status'), status, counters),
    ...validateNotAbove(status, ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'], 'replicas'),
    ...validateNotAbove(status, ['availableReplicas'], 'readyReplicas', 'readyReplicas'),
  ]
}
