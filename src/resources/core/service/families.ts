/**
 * Decides the IP families of a Service from its spec, its old spec and the cluster. It allocates nothing
 * (pkg/registry/core/service/storage/alloc.go, v1.36).
 */
import type { ServiceSpec } from '#apis/core/v1.ts'
import { semanticEqual } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { ipFamilyOf } from '#model/addresses.ts'
import { HEADLESS, type IpFamily, needsClusterIp, otherFamily } from '#model/services.ts'

import { policyError, validateClusterIps } from './cluster-ips.ts'

export interface ClusterFamilies {
  /** The default family. */
  readonly primary: IpFamily
  /** One or two families. */
  readonly all: readonly IpFamily[]
  /** True if addresses must be written strictly. */
  readonly strict: boolean
}

/** Sets policy and families of `next`; `old` is the replaced spec. Errors prevent allocation. */
export function settleFamilies(
  next: ServiceSpec,
  old: ServiceSpec | undefined,
  cluster: ClusterFamilies,
): FieldError[] {
  if (!needsClusterIp(next) || isSettled(next, old)) return []
  next.ipFamilyPolicy ??= defaultPolicy(next, old)
  const broken = validateClusterIps(next, { strict: cluster.strict, old })
  if (broken.length > 0) return broken
  const errors = [...settleChange(next, old), ...validatePolicy(next), ...inferFamilies(next, cluster)]
  if (errors.length > 0) return errors
  return isOpenHeadless(next) ? settleOpenHeadless(next, cluster) : settleConfigured(next, cluster)
}

/** A Service that prefers dual stack is not changed because the cluster's families changed. */
export function isSettled(next: ServiceSpec, old: ServiceSpec | undefined): boolean {
  const prefers = ({ ipFamilyPolicy }: ServiceSpec): boolean => ipFamilyPolicy === 'PreferDualStack'
  return (
    old !== undefined &&
    next.type === old.type &&
    ['ClusterIP', 'LoadBalancer', 'NodePort'].includes(next.type ?? '') &&
    prefers(next) &&
    (old.ipFamilyPolicy === undefined || prefers(old)) &&
    semanticEqual(next.clusterIPs, old.clusterIPs) &&
    semanticEqual(next.ipFamilies, old.ipFamilies)
  )
}

/** Headless without a selector: its endpoints may have any family. */
function isOpenHeadless({ clusterIP, selector }: ServiceSpec): boolean {
  return clusterIP === HEADLESS && Object.keys(selector ?? {}).length === 0
}

function defaultPolicy(next: ServiceSpec, old: ServiceSpec | undefined): string {
  return old?.ipFamilyPolicy ?? (isOpenHeadless(next) ? 'RequireDualStack' : 'SingleStack')
}

/** A request for SingleStack drops the second family; dropping it otherwise is an error. */
function settleChange(next: ServiceSpec, old: ServiceSpec | undefined): FieldError[] {
  if (old === undefined) return []
  const { clusterIPs: ips = [], ipFamilies: families = [], ipFamilyPolicy } = next
  if (ipFamilyPolicy === 'SingleStack') {
    if (ips.length > 1 && semanticEqual(ips, old.clusterIPs)) next.clusterIPs = ips.slice(0, 1)
    if (families.length > 1 && semanticEqual(families, old.ipFamilies)) next.ipFamilies = families.slice(0, 1)
    return []
  }
  const fewer = (now: readonly string[], before: readonly string[] = []): boolean =>
    now.length > 0 && now.length < before.length
  const rule = "must be 'SingleStack' to release the secondary"
  return collectErrors(
    fewer(ips, old.clusterIPs) && policyError(ipFamilyPolicy, `${rule} cluster IP`),
    fewer(families, old.ipFamilies) && policyError(ipFamilyPolicy, `${rule} IP family`),
  )
}

function validatePolicy({ ipFamilyPolicy, clusterIPs = [], ipFamilies = [] }: ServiceSpec): FieldError[] {
  if (ipFamilyPolicy !== 'SingleStack') return []
  const rule = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"
  return collectErrors(
    clusterIPs.length === 2 && policyError(ipFamilyPolicy, `${rule} cluster IPs are specified`),
    ipFamilies.length === 2 && policyError(ipFamilyPolicy, `${rule} IP families are specified`),
  )
}

/** Addresses determine their families. */
function inferFamilies(next: ServiceSpec, { all }: ClusterFamilies): FieldError[] {
  const { clusterIPs: ips = [] } = next
  if (ips[0] === HEADLESS) return []
  const families = [...(next.ipFamilies ?? [])]
  const errors: FieldError[] = []
  for (const [at, ip] of ips.entries()) {
    const family = ipFamilyOf(ip)
    if (at < families.length || family === undefined) continue
    if (all.includes(family)) families.push(family)
    else errors.push(fieldPath('spec.clusterIPs').index(at).invalid(ips, `${family} is not configured on this cluster`))
  }
  if (families.length > 0) next.ipFamilies = families
  return errors
}

function settleOpenHeadless(next: ServiceSpec, { primary }: ClusterFamilies): FieldError[] {
  const [first = primary, second] = next.ipFamilies ?? []
  next.ipFamilies = [first]
  if (second !== undefined) next.ipFamilies.push(second)
  else if (next.ipFamilyPolicy !== 'SingleStack') next.ipFamilies.push(otherFamily(first))
  return []
}

function settleConfigured(next: ServiceSpec, { primary, all }: ClusterFamilies): FieldError[] {
  const errors: FieldError[] = []
  if (next.ipFamilyPolicy === 'RequireDualStack' && all.length < 2) {
    errors.push(policyError(next.ipFamilyPolicy, 'this cluster is not configured for dual-stack services'))
  }
  for (const [at, family] of (next.ipFamilies ?? []).entries()) {
    if (all.includes(family as IpFamily)) continue
    errors.push(fieldPath('spec.ipFamilies').index(at).invalid(family, 'not configured on this cluster'))
  }
  if (errors.length > 0) return errors
  const [first = primary, second] = next.ipFamilies ?? []
  const both = next.ipFamilyPolicy !== 'SingleStack' && all.length === 2
  next.ipFamilies = second === undefined ? (both ? [first, otherFamily(first)] : [first]) : [first, second]
  return []
}
