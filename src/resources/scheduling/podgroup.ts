/** PodGroup: pods that are scheduled together, all of them or at least so many, or none. */
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
import { child, type FieldError, index, invalid } from '#meta/validation/field-error.ts'

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
  const field = 'spec.podGroupTemplateRef'
  const isMoved = old !== undefined && !semanticEqual(reference, old.podGroupTemplateRef)
  return [
    ...(isMoved ? fixedField(field) : []),
    ...(old !== undefined || (reference ?? null) === null ? [] : validateReference(field, reference)),
    ...validateGroup('spec', next, old, { isEnabled, isFixed: true, needsDisruptionMode: true }),
  ]
}

function validateReference(path: string, reference: PodGroupTemplateReference | null): FieldError[] {
  const { workload } = reference ?? { workload: null }
  const at = (name: string): string => child(path, 'workload', name)
  return [
    ...oneMember(path, ['workload'], { workload }),
    ...(workload === null
      ? []
      : [
          ...requiredName(at('workloadName'), workload.workloadName, longName),
          ...requiredName(at('podGroupTemplateName'), workload.podGroupTemplateName, shortName),
        ]),
  ]
}

function validateStatus({ spec, status }: PodGroup, old: PodGroupStatus | undefined): FieldError[] {
  const { conditions, resourceClaimStatuses: claims = [] } = status ?? {}
  const field = 'status.resourceClaimStatuses'
  const known = new Set((spec.resourceClaims ?? []).map(({ name }) => name))
  const detail = 'must match the name of an entry in `spec.resourceClaims`'
  const isSame = semanticEqual(claims, old?.resourceClaimStatuses)
  const tooMany = itemLimit(field, claims, MAX_CLAIMS)
  return [
    ...validateConditions('status.conditions', conditions as Parameters<typeof validateConditions>[1]),
    ...claims.flatMap(({ name }, at) =>
      known.has(name) ? [] : [invalid(child(index(field, at), 'name'), name, detail)],
    ),
    ...(isSame ? [] : tooMany),
    ...(isSame || tooMany.length > 0
      ? []
      : [
          ...uniqueItems(field, claims, ({ name }) => name),
          ...claims.flatMap(({ resourceClaimName: claim }, at) =>
            claim === undefined ? [] : longName(child(index(field, at), 'resourceClaimName'), claim),
          ),
        ]),
  ]
}
