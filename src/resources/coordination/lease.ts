/** Lease: who leads, or that a node is alive, until when. */
import { type Lease, Leases } from '#apis/coordination/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { asJson, type FieldError, forbidden, invalid, notSupported } from '#meta/validation/field-error.ts'
import { qualifiedName } from '#meta/validation/names.ts'
import { nonNegative } from '#meta/validation/rules.ts'

const GATE = 'CoordinatedLeaderElection'
const gatedFields = ['strategy', 'preferredHolder'] as const

export const lease: Resource<Lease> = defineResource<Lease>({
  kind: Leases,
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
  return [
    ...(duration !== undefined && duration <= 0
      ? [invalid('spec.leaseDurationSeconds', duration, 'must be greater than 0')]
      : []),
    ...nonNegative('spec.leaseTransitions', leaseTransitions),
    ...(strategy === undefined ? [] : validateStrategy(strategy)),
    ...(preferredHolder !== '' && (strategy ?? '') === ''
      ? [forbidden('spec.preferredHolder', 'may only be specified if `strategy` is defined')]
      : []),
  ]
}

const strategies = ['OldestEmulationVersion']

/** Upstream names the field twice. */
function validateStrategy(strategy: string): FieldError[] {
  const field = 'spec.strategy.strategy'
  if (strategy.includes('/')) {
    return qualifiedName(strategy).map((complaint) => invalid(field, asJson(strategy), complaint))
  }
  return strategies.includes(strategy) ? [] : [notSupported(field, asJson(strategy), strategies)]
}
