/** The ServiceCIDR resource: a range for addresses of Services; at most one of each IP family. */
import { type ServiceCIDR, ServiceCIDRs } from '#apis/networking/v1.ts'
import { ServiceCIDRs as BetaServiceCIDRs } from '#apis/networking/v1beta1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { parseCidr } from '#lib/net/cidr.ts'
import { validateCidr } from '#meta/validation/addresses.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'

const FIELD = fieldPath('spec.cidrs')
const IMMUTABLE = 'field is immutable'

export const serviceCidr: Resource<ServiceCIDR> = defineResource<ServiceCIDR>({
  kind: ServiceCIDRs,
  otherVersions: [{ kind: BetaServiceCIDRs }],
  validate: ({ spec }) => validateCidrs(spec.cidrs ?? []),
  validateUpdate: (next, old) => validateChange(next.spec.cidrs ?? [], old.spec.cidrs ?? []),
  columns: [nameColumn, { name: 'CIDRs', value: ({ spec }) => (spec.cidrs ?? []).join(',') }, ageColumn],
})

function validateCidrs(cidrs: readonly string[]): FieldError[] {
  if (cidrs.length === 0) return [FIELD.required('at least one CIDR required')]
  if (cidrs.length > 2) return [FIELD.invalid(cidrs, 'may only hold up to 2 values')]
  const [first, second] = cidrs.map((cidr) => parseCidr(cidr, { sloppy: true })?.family)
  return collectErrors(
    FIELD.each(cidrs, validateCidr),
    cidrs.length === 2 &&
      first !== undefined &&
      first === second &&
      FIELD.invalid(cidrs, 'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64'),
  )
}

/** A range is immutable; the other family may be added for dual stack. */
function validateChange(next: readonly string[], old: readonly string[]): FieldError[] {
  const changed = (at: number): FieldError[] =>
    next[at] === old[at] ? [] : [FIELD.index(at).invalid(next[at], IMMUTABLE)]
  if (next.length === old.length) return old.flatMap((_, at) => changed(at))
  if (old.length === 1 && next.length === 2) return [...changed(0), ...validateCidrs(next)]
  return [FIELD.invalid(next.length === 0 ? null : next, IMMUTABLE)]
}
