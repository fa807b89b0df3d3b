/** The PodGroup resource: pods that are scheduled together, with a minimum count. */
import {
  type PodGroup,
  PodGroups,
  type PodGroupSpec,
  type PodGroupStatus,
  type PodGroupTemplateReference,
} from '#apis/scheduling/v1alpha2.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { findCondition, validateConditions } from '#meta/conditions.ts'
import { semanticEqual } from '#meta/object.ts'
import {
  fixedField,
  itemLimit,
  longName,
  oneMember,
  requiredName,
  shortName,
  uniqueItems,
} from '#meta/validation/declared.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'

import { dropGatedFields, validateGroup } from './pod-groups.ts'

const CLAIMS_GATE = 'DRAWorkloadResourceClaims'
const MAX_CLAIMS = 4

export const podGroup: Resource<PodGroup> = defineResource<PodGroup>({
  kind: PodGroups,
  applyDefaults({ spec }) {
    spec.disruptionMode ??= 'Pod'
  },
  prepareCreate: ({ spec }, context) => dropGatedFields(spec, undefined, context),
  prepareUpdate: ({ spec }, old, context) => dropGatedFields(spec, old.spec, context),
  validate: ({ spec }, context) => validateSpec(spec, undefined, context),
  validateUpdate: (next, old, context) => validateSpec(next.spec, old.spec, context),
  resets: [],
  status: {
    prepareUpdate(next, old, { isEnabled }) {
      const isUsed = (old.spec.resourceClaims ?? []).length > 0
      if (!isEnabled(CLAIMS_GATE) && !isUsed) delete next.status?.resourceClaimStatuses
    },
    validateUpdate: (next, old) => validateStatus(next, old.status),
  },
  columns: [
    nameColumn,
    { name: 'Policy', value: ({ spec }) => (spec.schedulingPolicy.gang === undefined ? 'Basic' : 'Gang') },
    { name: 'Workload', value: ({ spec }) => spec.podGroupTemplateRef?.workload?.workloadName ?? '<none>' },
    { name: 'Status', value: stateText },
    ageColumn,
  ],
})

function stateText({ status }: PodGroup): string {
  const disrupted = findCondition(status?.conditions, 'DisruptionTarget')
  if (disrupted !== undefined) return disrupted.reason
  const scheduled = findCondition(status?.conditions, 'PodGroupScheduled')
  if (scheduled === undefined) return 'Pending'
  return scheduled.status === 'True' ? 'Scheduled' : 'Unschedulable'
}

function validateSpec(next: PodGroupSpec, old: PodGroupSpec | undefined, { isEnabled }: RuleContext): FieldError[] {
  const reference = next.podGroupTemplateRef
  const field = fieldPath('spec.podGroupTemplateRef')
  const isMoved = old !== undefined && !semanticEqual(reference, old.podGroupTemplateRef)
  return collectErrors(
    isMoved && fixedField(field),
    old === undefined && (reference ?? null) !== null && validateReference(field, reference),
    validateGroup(fieldPath('spec'), next, old, { isEnabled, isFixed: true, needsDisruptionMode: true }),
  )
}

function validateReference(path: FieldPath, reference: PodGroupTemplateReference | null): FieldError[] {
  const { workload } = reference ?? { workload: null }
  const at = (name: string): FieldPath => path.child('workload').child(name)
  return collectErrors(
    oneMember(path, ['workload'], { workload }),
    workload !== null && [
      ...requiredName(at('workloadName'), workload.workloadName, longName),
      ...requiredName(at('podGroupTemplateName'), workload.podGroupTemplateName, shortName),
    ],
  )
}

function validateStatus({ spec, status }: PodGroup, old: PodGroupStatus | undefined): FieldError[] {
  const { conditions, resourceClaimStatuses: claims = [] } = status ?? {}
  const field = fieldPath('status.resourceClaimStatuses')
  const known = new Set((spec.resourceClaims ?? []).map(({ name }) => name))
  const detail = 'must match the name of an entry in `spec.resourceClaims`'
  const isSame = semanticEqual(claims, old?.resourceClaimStatuses)
  const tooMany = itemLimit(field, claims, MAX_CLAIMS)
  return collectErrors(
    validateConditions(fieldPath('status.conditions'), conditions as Parameters<typeof validateConditions>[1]),
    field.each(claims, (path, { name }) => !known.has(name) && path.child('name').invalid(name, detail)),
    !isSame && tooMany,
    !isSame &&
      tooMany.length === 0 && [
        ...uniqueItems(field, claims, ({ name }) => name),
        ...field.each(claims, (path, { resourceClaimName: claim }) =>
          claim === undefined ? [] : longName(path.child('resourceClaimName'), claim),
        ),
      ],
  )
}
