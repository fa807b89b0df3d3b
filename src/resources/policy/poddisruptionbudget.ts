/** PodDisruptionBudget: how many of a workload's pods may be evicted at a time. */
import { type PodDisruptionBudget, PodDisruptionBudgets } from '#apis/policy/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { type Condition, validateConditions } from '#meta/conditions.ts'
import { validateLabelSelector } from '#meta/label-selector.ts'
import { asJson, type FieldError, invalid, notInSet } from '#meta/validation/field-error.ts'
import { nameIsPathSegment } from '#meta/validation/names.ts'
import { validateAtMostAll, validateIntOrPercent } from '#model/int-or-percent.ts'

import { validateCounts } from '../workload.ts'

export const podDisruptionBudget: Resource<PodDisruptionBudget> = defineResource<PodDisruptionBudget>({
  kind: PodDisruptionBudgets,
  metadataRules: { update: [], part: [], plainFinalizers: true },
  nameRule: nameIsPathSegment,
  generation: 'spec',
  validate: (budget) => validateBudget(budget, false),
  validateUpdate: (next, old) => validateBudget(next, validateLabelSelector('', old.spec.selector).length > 0),
  status: {
    keeps: ['spec'],
    validateUpdate: ({ status }) => [
      ...validateConditions('status.conditions', status.conditions as Condition[] | undefined),
      ...validateCounts('status', status, ['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods']),
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

/** `invalidValues`: the selector may have some, because it had before. */
function validateBudget({ spec }: PodDisruptionBudget, invalidValues: boolean): FieldError[] {
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy: policy } = spec
  return [
    ...(minAvailable !== undefined && maxUnavailable !== undefined
      ? [invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set')]
      : []),
    ...validateIntOrPercent('spec.minAvailable', minAvailable),
    ...validateAtMostAll('spec.minAvailable', minAvailable),
    ...validateIntOrPercent('spec.maxUnavailable', maxUnavailable),
    ...validateAtMostAll('spec.maxUnavailable', maxUnavailable),
    ...validateLabelSelector('spec.selector', selector, { invalidValues }),
    ...(policy === undefined || policies.includes(policy)
      ? []
      : [notInSet('spec.unhealthyPodEvictionPolicy', asJson(policy), policies)]),
  ]
}
