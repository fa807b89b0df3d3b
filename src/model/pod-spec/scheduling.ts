/** Where a pod may run and when: spreading over the cluster, gates, claims for devices, groups. */
import type {
  PodResourceClaim,
  PodSchedulingGate,
  PodSchedulingGroup,
  TopologySpreadConstraint,
} from '#apis/core/v1.ts'
import { validateLabelSelector } from '#meta/label-selector.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { child, duplicate, type FieldError, forbidden, index, invalid, required } from '#meta/validation/field-error.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'
import { complaining, validateLabelName } from '#meta/validation/rules.ts'

import { validateLabelKeys } from './affinity.ts'
import { isMirrorPod } from './annotations.ts'
import { oneOf, validateDnsLabel, validatePositive, validateQualifiedName } from './checks.ts'
import type { PodOptions } from './rules.ts'

export function validateSpread(
  field: string,
  constraints: readonly TopologySpreadConstraint[] = [],
  options: PodOptions,
): FieldError[] {
  const last = new Map(constraints.map((constraint, at) => [pairText(constraint), at]))
  return constraints.flatMap((constraint, at) => {
    const path = index(field, at)
    const { maxSkew, topologyKey, whenUnsatisfiable } = constraint
    const again = last.get(pairText(constraint)) !== at
    const pair = child(path, '{topologyKey, whenUnsatisfiable}')
    return [
      ...validatePositive(child(path, 'maxSkew'), maxSkew),
      ...(topologyKey === '' ? [required(child(path, 'topologyKey'), 'can not be empty')] : []),
      ...oneOf(child(path, 'whenUnsatisfiable'), whenUnsatisfiable, ['DoNotSchedule', 'ScheduleAnyway']),
      ...(again ? [duplicate(pair, pairText(constraint))] : []),
      ...validateMinDomains(child(path, 'minDomains'), constraint),
      ...oneOf(child(path, 'nodeAffinityPolicy'), constraint.nodeAffinityPolicy, ['Honor', 'Ignore']),
      ...oneOf(child(path, 'nodeTaintsPolicy'), constraint.nodeTaintsPolicy, ['Honor', 'Ignore']),
      ...validateSpreadKeys(path, constraint, options),
      ...(options.invalidSpreadSelector
        ? []
        : validateLabelSelector(child(path, 'labelSelector'), constraint.labelSelector)),
    ]
  })
}

function pairText({ topologyKey, whenUnsatisfiable }: TopologySpreadConstraint): string {
  return `{${topologyKey}, ${whenUnsatisfiable}}`
}

function validateMinDomains(field: string, { minDomains, whenUnsatisfiable }: TopologySpreadConstraint): FieldError[] {
  if (minDomains === undefined) return []
  const errors = validatePositive(field, minDomains)
  if (whenUnsatisfiable === 'DoNotSchedule') return errors
  const complaint = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`
  return [...errors, invalid(field, minDomains, complaint, 'dependsOn')]
}

function validateSpreadKeys(path: string, constraint: TopologySpreadConstraint, options: PodOptions): FieldError[] {
  const { matchLabelKeys, labelSelector } = constraint
  return options.mergedSpreadKeys
    ? validateLabelKeys(path, { matchLabelKeys, labelSelector })
    : validateUnmergedKeys(child(path, 'matchLabelKeys'), constraint)
}

/** The rules from before keys were merged into the selector. */
export function validateUnmergedKeys(field: string, constraint: TopologySpreadConstraint): FieldError[] {
  const { matchLabelKeys = [], labelSelector } = constraint
  if (matchLabelKeys.length === 0) return []
  const used = new Set([
    ...Object.keys(labelSelector?.matchLabels ?? {}),
    ...(labelSelector?.matchExpressions ?? []).map(({ key }) => key),
  ])
  const errors =
    labelSelector === undefined ? [forbidden(field, 'must not be specified when labelSelector is not set')] : []
  for (const [at, key] of matchLabelKeys.entries()) {
    errors.push(...validateLabelName(index(field, at), key))
    if (!used.has(key)) continue
    const complaint = 'exists in both matchLabelKeys and labelSelector'
    errors.push(invalid(index(field, at), key, complaint, 'duplicatedLabelKeys'))
  }
  return errors
}

export function validateSchedulingGates(field: string, gates: readonly PodSchedulingGate[] = []): FieldError[] {
  const seen = new Set<string>()
  return gates.flatMap(({ name }, at) => {
    const errors = validateQualifiedName(index(field, at), name)
    if (seen.has(name)) errors.push(duplicate(index(field, at), name))
    seen.add(name)
    return errors
  })
}

export function validateSchedulingGroup(path: string, group: PodSchedulingGroup | undefined): FieldError[] {
  if (group === undefined) return []
  const field = child(path, 'podGroupName')
  const { podGroupName: name } = group
  if (name === undefined) return [invalid(field, null, 'must specify one of: `podGroupName`')]
  return complaining(field, name, dns1123Subdomain(name))
}

/** Claims of the pod for devices; `metadata` only for a Pod. */
export function validatePodClaims(
  field: string,
  claims: readonly PodResourceClaim[] = [],
  metadata?: ObjectMeta,
): FieldError[] {
  const names = new Set<string>()
  return claims.flatMap((claim, at) => {
    if (metadata !== undefined && isMirrorPod(metadata)) {
      return [forbidden('[]', 'static pods do not support resource claims')]
    }
    return validatePodClaim(index(field, at), claim, names)
  })
}

function validatePodClaim(path: string, claim: PodResourceClaim, names: Set<string>): FieldError[] {
  const { name, resourceClaimName, resourceClaimTemplateName } = claim
  const errors: FieldError[] = []
  if (name === '') errors.push(required(child(path, 'name')))
  else if (names.has(name)) errors.push(duplicate(child(path, 'name'), name))
  else errors.push(...validateDnsLabel(child(path, 'name'), name))
  names.add(name)
  if (resourceClaimName !== undefined && resourceClaimTemplateName !== undefined) {
    const complaint = 'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified'
    errors.push(invalid(path, claim, complaint))
  }
  if (resourceClaimName === undefined && resourceClaimTemplateName === undefined) {
    errors.push(invalid(path, claim, 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`'))
  }
  for (const [field, value] of Object.entries({ resourceClaimName, resourceClaimTemplateName })) {
    if (value !== undefined) errors.push(...complaining(child(path, field), value, dns1123Subdomain(value)))
  }
  return errors
}
