/** The rules of cluster IPs and of the families they are of, in themselves and between two states of a Service. */
import type { ServiceSpec } from '#apis/core/v1.ts'
import { validateLegacyIp } from '#meta/validation/addresses.ts'
import {
  asJson,
  duplicate,
  type FieldError,
  index,
  invalid,
  notSupported,
  required,
} from '#meta/validation/field-error.ts'
import { ipFamilyOf } from '#model/addresses.ts'
import { HEADLESS, isHeadless, needsClusterIp } from '#model/services.ts'

const families = ['IPv4', 'IPv6']
const policies = ['PreferDualStack', 'RequireDualStack', 'SingleStack']

const IPS = 'spec.clusterIPs'
const FAMILIES = 'spec.ipFamilies'
const POLICY = 'spec.ipFamilyPolicy'

export interface ClusterIpRules {
  /** Addresses without leading zeros only. */
  readonly strict: boolean
  /** Addresses the Service has already may stay as they are. */
  readonly old?: ServiceSpec | undefined
}

/** Also asked before allocating, which relies on it. An ExternalName has none of these fields and other rules. */
export function validateClusterIps(spec: ServiceSpec, { strict, old }: ClusterIpRules): FieldError[] {
  if (!needsClusterIp(spec)) return []
  const { clusterIPs = [], ipFamilyPolicy } = spec
  const badIps = validateEachIp(clusterIPs, strict, old?.clusterIPs)
  const errors = [
    ...validateFirstIp(spec),
    ...validateFamilies(spec.ipFamilies),
    ...(ipFamilyPolicy === undefined || policies.includes(ipFamilyPolicy)
      ? []
      : [notSupported(POLICY, asJson(ipFamilyPolicy), policies)]),
    ...badIps,
    ...(clusterIPs.length > 2 ? [invalid(IPS, clusterIPs, 'may only hold up to 2 values')] : []),
  ]
  // Judging the families of what are no addresses would only confuse.
  return badIps.length > 0 ? errors : [...errors, ...validateDualStack(clusterIPs), ...validateMatch(spec)]
}

function validateFirstIp({ clusterIP = '', clusterIPs = [] }: ServiceSpec): FieldError[] {
  if (clusterIP === '') {
    if (clusterIPs.length === 0) return []
    return [invalid(IPS, clusterIPs, 'must be empty when `clusterIP` is not specified')]
  }
  if (clusterIPs.length === 0) return [required(IPS)]
  return clusterIPs[0] === clusterIP ? [] : [invalid(IPS, clusterIPs, 'first value must match `clusterIP`')]
}

function validateFamilies(given: readonly string[] = []): FieldError[] {
  const seen = new Set<string>()
  return given.flatMap((family, at) => {
    const field = index(FAMILIES, at)
    const errors = families.includes(family) ? [] : [notSupported(field, asJson(family), families)]
    if (seen.has(family)) errors.push(duplicate(field, asJson(family)))
    seen.add(family)
    return errors
  })
}

function validateEachIp(ips: readonly string[], strict: boolean, old: readonly string[] = []): FieldError[] {
  return ips.flatMap((ip, at) => {
    if (at > 0 || ip !== HEADLESS) return validateLegacyIp(index(IPS, at), ip, { strict, old })
    return ips.length > 1 ? [invalid(IPS, ips, "'None' must be the first and only value")] : []
  })
}

function validateDualStack(ips: readonly string[]): FieldError[] {
  if (ips.length < 2 || new Set(ips.map(ipFamilyOf)).size === 2) return []
  return [invalid(IPS, ips, 'may specify no more than one IP for each IP family')]
}

function validateMatch(spec: ServiceSpec): FieldError[] {
  const { clusterIPs = [], ipFamilies = [] } = spec
  if (isHeadless(spec)) return []
  return clusterIPs.flatMap((ip, at) => {
    const family = ipFamilies[at]
    if (family === undefined || !families.includes(family) || ipFamilyOf(ip) === family) return []
    return [invalid(index(IPS, at), ip, `expected an ${family} value as indicated by \`ipFamilies[${at}]\``)]
  })
}

const FIXED = 'may not change once set'

/** A second address or family may be added and taken away; the first stays, unless the type was or is ExternalName. */
export function validateClusterIpsUpdate(next: ServiceSpec, old: ServiceSpec): FieldError[] {
  if (!needsClusterIp(next) || !needsClusterIp(old)) return []
  const headless = [isHeadless(next), isHeadless(old)]
  return [
    ...(headless.every(Boolean) ? [] : validateSameIps(next, old)),
    // From and to headless, families are free, and a headless one may have any.
    ...(headless.some(Boolean) ? [] : validateSameFamilies(next, old)),
  ]
}

function validateSameIps(next: ServiceSpec, { clusterIPs: before = [] }: ServiceSpec): FieldError[] {
  const { clusterIPs: ips = [], ipFamilyPolicy } = next
  if (before.length === ips.length) {
    return before.flatMap((ip, at) => (ip === ips[at] ? [] : [invalid(index(IPS, at), ips, FIXED)]))
  }
  const errors: FieldError[] = []
  if (ips.length === 0)
    errors.push(invalid(index(IPS, 0), next.clusterIPs ?? null, 'primary clusterIP can not be unset'))
  if (before.length > 0 && ips.length > 0 && ips[0] !== before[0]) errors.push(invalid(index(IPS, 0), ips, FIXED))
  if (before.length > ips.length && ips.length === 1 && ipFamilyPolicy !== 'SingleStack') {
    errors.push(policyError(ipFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary clusterIP"))
  }
  return errors
}

function validateSameFamilies(next: ServiceSpec, { ipFamilies: before = [] }: ServiceSpec): FieldError[] {
  const { ipFamilies: given = [], clusterIPs: ips, ipFamilyPolicy } = next
  const field = index(FAMILIES, 0)
  if (before.length === given.length) {
    return before.flatMap((family, at) => (family === given[at] ? [] : [invalid(field, given, FIXED)]))
  }
  const errors: FieldError[] = []
  const fewer = before.length > given.length
  if (fewer && (ips ?? []).length === 0) {
    errors.push(invalid(field, next.ipFamilies ?? null, 'primary ipFamily can not be unset'))
  }
  // Upstream shows the addresses here.
  if (before.length > 0 && given.length > 0 && given[0] !== before[0]) errors.push(invalid(field, ips ?? null, FIXED))
  if (fewer && given.length === 1 && ipFamilyPolicy !== 'SingleStack') {
    errors.push(policyError(ipFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary ipFamily"))
  }
  return errors
}

/** About the policy, whatever it is. */
export function policyError(policy: string | undefined, rule: string): FieldError {
  return invalid(POLICY, policy === undefined ? null : asJson(policy), rule)
}
