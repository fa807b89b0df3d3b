/** The Lease resource: the leader of a component or the heartbeat of a node, with its duration. */
import { type Lease, Leases } from '#apis/coordination/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { nonNegative } from '#meta/validation/rules.ts'

import { validateStrategy } from './strategy.ts'

const GATE = 'CoordinatedLeaderElection'
const gatedFields = ['strategy', 'preferredHolder'] as const

export const lease: Resource<Lease> = defineResource<Lease>({
  kind: Leases,
  metadataRules: { plainFinalizers: true },
  prepareCreate({ spec }, { isEnabled }) {
    if (!isEnabled(GATE)) for (const name of gatedFields) delete spec[name]
  },
  prepareUpdate({ spec }, old, { isEnabled }) {
    if (isEnabled(GATE)) return
    for (const name of gatedFields) if (old.spec[name] === undefined) delete spec[name]
  },
  validate: validateLease,
  columns: [nameColumn, { name: 'Holder', value: ({ spec }) => spec.holderIdentity ?? '' }, ageColumn],
  putCreates: true,
  putNeedsVersion: true,
})

function validateLease({ spec }: Lease): FieldError[] {
  const { leaseDurationSeconds: duration, leaseTransitions, strategy, preferredHolder = '' } = spec
  return collectErrors(
    duration !== undefined &&
      duration <= 0 &&
      fieldPath('spec.leaseDurationSeconds').invalid(duration, 'must be greater than 0'),
    nonNegative(fieldPath('spec.leaseTransitions'), leaseTransitions),
    strategy !== undefined && validateStrategy(strategy),
    preferredHolder !== '' &&
      (strategy ?? '') === '' &&
      fieldPath('spec.preferredHolder').forbidden('may only be specified if `strategy` is defined'),
  )
}
