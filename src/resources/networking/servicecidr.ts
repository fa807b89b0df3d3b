/** ServiceCIDR: a range that addresses of Services come from; at most one for each IP family. */
import { type ServiceCIDR, ServiceCIDRs } from '#apis/networking/v1.ts'
import { ServiceCIDRs as BetaServiceCIDRs } from '#apis/networking/v1beta1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { parseCidr } from '#lib/cidr.ts'
import { validateCidr } from '#meta/validation/addresses.ts'
import { type FieldError, index, invalid, required } from '#meta/validation/field-error.ts'

const FIELD = 'spec.cidrs'
const IMMUTABLE = 'field is immutable'

export const serviceCidr: Resource<ServiceCIDR> = defineResource<ServiceCIDR>({
  kind: ServiceCIDRs,
  otherVersions: [{ kind: BetaServiceCIDRs }],
  validate: ({ spec }) => validateCidrs(spec.cidrs ?? []),
  validateUpdate: (next, old) => validateChange(next.spec.cidrs ?? [], old.spec.cidrs ?? []),
  columns: [nameColumn, { name: 'CIDRs', value: ({ spec }) => (spec.cidrs ?? []).join(',') }, ageColumn],
})

function validateCidrs(cidrs: readonly string[]): FieldError[] {
  if (cidrs.length === 0) return [required(FIELD, 'at least one CIDR required')]
  if (cidrs.length > 2) return [invalid(FIELD, cidrs, 'may only hold up to 2 values')]
  const errors = cidrs.flatMap((cidr, at) => validateCidr(index(FIELD, at), cidr))
  const [first, second] = cidrs.map((cidr) => parseCidr(cidr, { sloppy: true })?.family)
  if (cidrs.length === 2 && first !== undefined && first === second) {
    const detail = 'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64'
    errors.push(invalid(FIELD, cidrs, detail))
  }
  return errors
}

/** A range never changes; the other family may be added, which makes the cluster dual-stack. */
function validateChange(next: readonly string[], old: readonly string[]): FieldError[] {
  const changed = (at: number): FieldError[] =>
    next[at] === old[at] ? [] : [invalid(index(FIELD, at), next[at], IMMUTABLE)]
  if (next.length === old.length) return old.flatMap((_, at) => changed(at))
  if (old.length === 1 && next.length === 2) return [...changed(0), ...validateCidrs(next)]
  return [invalid(FIELD, next.length === 0 ? null : next, IMMUTABLE)]
}
