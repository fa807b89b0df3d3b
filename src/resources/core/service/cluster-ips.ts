/** Validates the cluster IPs and IP families of a Service, and their updates. */
import type { ServiceSpec } from '#apis/core/v1.ts'
import { createRepetition } from '#lib/repetition.ts'
import { validateLegacyIp } from '#meta/validation/addresses.ts'
import { asJson, collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { oneOf } from '#meta/validation/rules.ts'
import { ipFamilyOf } from '#model/addresses.ts'
import { HEADLESS, isHeadless, needsClusterIp } from '#model/services.ts'

const families = ['IPv4', 'IPv6']
const policies = ['PreferDualStack', 'RequireDualStack', 'SingleStack']

const IPS = fieldPath('spec.clusterIPs')
const FAMILIES = fieldPath('spec.ipFamilies')
const POLICY = fieldPath('spec.ipFamilyPolicy')

export interface ClusterIpRules {
  /** Rejects addresses with leading zeros. */
  readonly strict: boolean
  /** Old addresses of the Service may stay. */
  readonly old?: ServiceSpec | undefined
}

/** Also called before allocation, which relies on it. An ExternalName has none of these fields and other rules. */
export function validateClusterIps(spec: ServiceSpec, { strict, old }: ClusterIpRules): FieldError[] {
  if (!needsClusterIp(spec)) return []
  const { clusterIPs = [], ipFamilyPolicy } = spec
  const badIps = validateEachIp(clusterIPs, strict, old?.clusterIPs)
  const errors = collectErrors(
    validateFirstIp(spec),
    validateFamilies(spec.ipFamilies),
    ipFamilyPolicy !== undefined &&
      !policies.includes(ipFamilyPolicy) &&
      POLICY.notSupported(asJson(ipFamilyPolicy), policies),
    badIps,
    clusterIPs.length > 2 && IPS.invalid(clusterIPs, 'may only hold up to 2 values'),
  )
  // The families of invalid addresses are not validated.
  return badIps.length > 0 ? errors : [...errors, ...validateDualStack(clusterIPs), ...validateMatch(spec)]
}

function validateFirstIp({ clusterIP = '', clusterIPs = [] }: ServiceSpec): FieldError[] {
  if (clusterIP === '') {
    if (clusterIPs.length === 0) return []
    return [IPS.invalid(clusterIPs, 'must be empty when `clusterIP` is not specified')]
  }
  if (clusterIPs.length === 0) return [IPS.required()]
  return clusterIPs[0] === clusterIP ? [] : [IPS.invalid(clusterIPs, 'first value must match `clusterIP`')]
}

function validateFamilies(given: readonly string[] = []): FieldError[] {
  const isRepeated = createRepetition()
  return FAMILIES.each(given, (path, family) =>
    collectErrors(oneOf(path, family, families), isRepeated(family) && path.duplicate(asJson(family))),
  )
}

function validateEachIp(ips: readonly string[], strict: boolean, old: readonly string[] = []): FieldError[] {
  return IPS.each(ips, (path, ip, at) => {
    if (at > 0 || ip !== HEADLESS) return validateLegacyIp(path, ip, { strict, old })
    return ips.length > 1 ? [IPS.invalid(ips, "'None' must be the first and only value")] : []
  })
}

function validateDualStack(ips: readonly string[]): FieldError[] {
  if (ips.length < 2 || new Set(ips.map(ipFamilyOf)).size === 2) return []
  return [IPS.invalid(ips, 'may specify no more than one IP for each IP family')]
}

function validateMatch(spec: ServiceSpec): FieldError[] {
  const { clusterIPs = [], ipFamilies = [] } = spec
  if (isHeadless(spec)) return []
  return IPS.each(clusterIPs, (path, ip, at) => {
    const family = ipFamilies[at]
    if (family === undefined || !families.includes(family) || ipFamilyOf(ip) === family) return []
    return [path.invalid(ip, `expected an ${family} value as indicated by \`ipFamilies[${at}]\``)]
  })
}

const FIXED = 'may not change once set'

/**
 * A second address or family may be added and removed; the first is immutable, unless the type was or is ExternalName.
 */
export function validateClusterIpsUpdate(next: ServiceSpec, old: ServiceSpec): FieldError[] {
  if (!needsClusterIp(next) || !needsClusterIp(old)) return []
  const headless = [isHeadless(next), isHeadless(old)]
  return collectErrors(
    !headless.every(Boolean) && validateSameIps(next, old),
    // Families may change from and to headless, and a headless Service may have any.
    !headless.some(Boolean) && validateSameFamilies(next, old),
  )
}

function validateSameIps(next: ServiceSpec, { clusterIPs: before = [] }: ServiceSpec): FieldError[] {
  const { clusterIPs: ips = [], ipFamilyPolicy } = next
  if (before.length === ips.length) {
    return IPS.each(before, (path, ip, at) => ip !== ips[at] && path.invalid(ips, FIXED))
  }
  return collectErrors(
    ips.length === 0 && IPS.index(0).invalid(next.clusterIPs ?? null, 'primary clusterIP can not be unset'),
    before.length > 0 && ips.length > 0 && ips[0] !== before[0] && IPS.index(0).invalid(ips, FIXED),
    before.length > ips.length &&
      ips.length === 1 &&
      ipFamilyPolicy !== 'SingleStack' &&
      policyError(ipFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary clusterIP"),
  )
}

function validateSameFamilies(next: ServiceSpec, { ipFamilies: before = [] }: ServiceSpec): FieldError[] {
  const { ipFamilies: given = [], clusterIPs: ips, ipFamilyPolicy } = next
  const field = FAMILIES.index(0)
  if (before.length === given.length) {
    return before.flatMap((family, at) => (family === given[at] ? [] : [field.invalid(given, FIXED)]))
  }
  const fewer = before.length > given.length
  return collectErrors(
    fewer && (ips ?? []).length === 0 && field.invalid(next.ipFamilies ?? null, 'primary ipFamily can not be unset'),
    // Upstream prints the addresses here.
    before.length > 0 && given.length > 0 && given[0] !== before[0] && field.invalid(ips ?? null, FIXED),
    fewer &&
      given.length === 1 &&
      ipFamilyPolicy !== 'SingleStack' &&
      policyError(ipFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary ipFamily"),
  )
}

/** An error about the policy, whatever its value. */
export function policyError(policy: string | undefined, rule: string): FieldError {
  return POLICY.invalid(policy === undefined ? null : asJson(policy), rule)
}
