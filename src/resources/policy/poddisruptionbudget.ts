/** The PodDisruptionBudget resource: limits how many pods of a workload are evicted at a time. */
import { type PodDisruptionBudget, PodDisruptionBudgets } from '#apis/policy/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { type Condition, validateConditions } from '#meta/conditions.ts'
import { validateLabelSelector } from '#meta/label-selector.ts'
import { asJson, collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { nameIsPathSegment } from '#meta/validation/names.ts'
import { validateAtMostAll, validateIntOrPercent } from '#model/int-or-percent.ts'

import { validateCounts } from '../workload.ts'

export const podDisruptionBudget: Resource<PodDisruptionBudget> = defineResource<PodDisruptionBudget>({
  kind: PodDisruptionBudgets,
  metadataRules: { update: [], part: [], plainFinalizers: true },
  nameRule: nameIsPathSegment,
  generation: 'spec',
  validate: (budget) => validateBudget(budget, false),
  validateUpdate: (next, old) =>
    validateBudget(next, validateLabelSelector(fieldPath(''), old.spec.selector).length > 0),
  status: {
    keeps: ['spec'],
    validateUpdate: ({ status }) => [
      ...validateConditions(fieldPath('status.conditions'), status.conditions as Condition[] | undefined),
      ...validateCounts(fieldPath('status'), status, [
        'disruptionsAllowed',
        'currentHealthy',
        'desiredHealthy',
        'expectedPods',
      ]),
    ],
  },
  columns: [
    nameColumn,
    { name: 'Min Available', value: ({ spec }) => String(spec.minAvailable ?? 'N/A') },
    { name: 'Max Unavailable', value: ({ spec }) => String(spec.maxUnavailable ?? 'N/A') },
    { name: 'Allowed Disruptions', type: 'integer', value: ({ status }) => status?.disruptionsAllowed ?? 0 },
    ageColumn,
  ],
  putNeedsVersion: true,
})

const policies = ['IfHealthyBudget', 'AlwaysAllow']

/** `invalidValues`: the selector may have some, because the old one has. */
function validateBudget({ spec }: PodDisruptionBudget, invalidValues: boolean): FieldError[] {
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy: policy } = spec
  return collectErrors(
    minAvailable !== undefined &&
      maxUnavailable !== undefined &&
      fieldPath('spec').invalid(spec, 'minAvailable and maxUnavailable cannot be both set'),
    validateIntOrPercent(fieldPath('spec.minAvailable'), minAvailable),
    validateAtMostAll(fieldPath('spec.minAvailable'), minAvailable),
    validateIntOrPercent(fieldPath('spec.maxUnavailable'), maxUnavailable),
    validateAtMostAll(fieldPath('spec.maxUnavailable'), maxUnavailable),
    validateLabelSelector(fieldPath('spec.selector'), selector, { invalidValues }),
    policy !== undefined &&
      !policies.includes(policy) &&
      fieldPath('spec.unhealthyPodEvictionPolicy').notInSet(asJson(policy), policies),
  )
}
