/** Validates scheduling fields of a pod: topology spread, gates, device claims, groups. */
import type {
  PodResourceClaim,
  PodSchedulingGate,
  PodSchedulingGroup,
  TopologySpreadConstraint,
} from '#apis/core/v1.ts'
import { createRepetition } from '#lib/repetition.ts'
import { validateLabelSelector } from '#meta/label-selector.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'
import {
  oneOf,
  validateDnsLabel,
  validateLabelName,
  validatePositive,
  validateQualifiedName,
} from '#meta/validation/rules.ts'

import { validateLabelKeys } from './affinity.ts'
import { isMirrorPod } from './annotations.ts'
import type { PodOptions } from './rules.ts'

export function validateSpread(
  path: FieldPath,
  constraints: readonly TopologySpreadConstraint[] = [],
  options: PodOptions,
): FieldError[] {
  const last = new Map(constraints.map((constraint, at) => [pairText(constraint), at]))
  return path.each(constraints, (path, constraint, at) => {
    const { maxSkew, topologyKey, whenUnsatisfiable } = constraint
    const again = last.get(pairText(constraint)) !== at
    const pair = path.child('{topologyKey, whenUnsatisfiable}')
    return collectErrors(
      validatePositive(path.child('maxSkew'), maxSkew),
      topologyKey === '' && path.child('topologyKey').required('can not be empty'),
      oneOf(path.child('whenUnsatisfiable'), whenUnsatisfiable, ['DoNotSchedule', 'ScheduleAnyway']),
      again && pair.duplicate(pairText(constraint)),
      validateMinDomains(path.child('minDomains'), constraint),
      oneOf(path.child('nodeAffinityPolicy'), constraint.nodeAffinityPolicy, ['Honor', 'Ignore']),
      oneOf(path.child('nodeTaintsPolicy'), constraint.nodeTaintsPolicy, ['Honor', 'Ignore']),
      validateSpreadKeys(path, constraint, options),
      !options.invalidSpreadSelector && validateLabelSelector(path.child('labelSelector'), constraint.labelSelector),
    )
  })
}

function pairText({ topologyKey, whenUnsatisfiable }: TopologySpreadConstraint): string {
  return `{${topologyKey}, ${whenUnsatisfiable}}`
}

function validateMinDomains(
  path: FieldPath,
  { minDomains, whenUnsatisfiable }: TopologySpreadConstraint,
): FieldError[] {
  if (minDomains === undefined) return []
  const errors = validatePositive(path, minDomains)
  if (whenUnsatisfiable === 'DoNotSchedule') return errors
  const complaint = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`
  return [...errors, path.invalid(minDomains, complaint, 'dependsOn')]
}

function validateSpreadKeys(path: FieldPath, constraint: TopologySpreadConstraint, options: PodOptions): FieldError[] {
  const { matchLabelKeys, labelSelector } = constraint
  return options.mergedSpreadKeys
    ? validateLabelKeys(path, { matchLabelKeys, labelSelector })
    : validateUnmergedKeys(path.child('matchLabelKeys'), constraint)
}

/** The rules from before keys were merged into the selector. */
export function validateUnmergedKeys(path: FieldPath, constraint: TopologySpreadConstraint): FieldError[] {
  const { matchLabelKeys = [], labelSelector } = constraint
  if (matchLabelKeys.length === 0) return []
  const used = new Set([
    ...Object.keys(labelSelector?.matchLabels ?? {}),
    ...(labelSelector?.matchExpressions ?? []).map(({ key }) => key),
  ])
  const errors =
    labelSelector === undefined ? [path.forbidden('must not be specified when labelSelector is not set')] : []
  for (const [at, key] of matchLabelKeys.entries()) {
    errors.push(...validateLabelName(path.index(at), key))
    if (!used.has(key)) continue
    const complaint = 'exists in both matchLabelKeys and labelSelector'
    errors.push(path.index(at).invalid(key, complaint, 'duplicatedLabelKeys'))
  }
  return errors
}

export function validateSchedulingGates(path: FieldPath, gates: readonly PodSchedulingGate[] = []): FieldError[] {
  const isRepeated = createRepetition()
  return path.each(gates, (path, { name }) => {
    return collectErrors(validateQualifiedName(path, name), isRepeated(name) && path.duplicate(name))
  })
}

export function validateSchedulingGroup(path: FieldPath, group: PodSchedulingGroup | undefined): FieldError[] {
  if (group === undefined) return []
  const field = path.child('podGroupName')
  const { podGroupName: name } = group
  if (name === undefined) return [field.invalid(null, 'must specify one of: `podGroupName`')]
  return field.check(name, dns1123Subdomain)
}

/** Device claims of the pod; `metadata` only for a Pod. */
export function validatePodClaims(
  path: FieldPath,
  claims: readonly PodResourceClaim[] = [],
  metadata?: ObjectMeta,
): FieldError[] {
  const names = new Set<string>()
  return path.each(claims, (path, claim) => {
    if (metadata !== undefined && isMirrorPod(metadata)) {
      return [fieldPath('[]').forbidden('static pods do not support resource claims')]
    }
    return validatePodClaim(path, claim, names)
  })
}

function validatePodClaim(path: FieldPath, claim: PodResourceClaim, names: Set<string>): FieldError[] {
  const { name, resourceClaimName, resourceClaimTemplateName } = claim
  const errors: FieldError[] = []
  if (name === '') errors.push(path.child('name').required())
  else if (names.has(name)) errors.push(path.child('name').duplicate(name))
  else errors.push(...validateDnsLabel(path.child('name'), name))
  names.add(name)
  if (resourceClaimName !== undefined && resourceClaimTemplateName !== undefined) {
    const complaint = 'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified'
    errors.push(path.invalid(claim, complaint))
  }
  if (resourceClaimName === undefined && resourceClaimTemplateName === undefined) {
    errors.push(path.invalid(claim, 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`'))
  }
  for (const [field, value] of Object.entries({ resourceClaimName, resourceClaimTemplateName })) {
    if (value !== undefined) errors.push(...path.child(field).check(value, dns1123Subdomain))
  }
  return errors
}
