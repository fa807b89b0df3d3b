/** Wishes of a pod about the nodes and the pods it is near to or far from. */
import type { Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm } from '#apis/core/v1.ts'
import { type LabelSelector, validateLabelSelector } from '#meta/label-selector.ts'
import { child, type FieldError, forbidden, index, invalid, required } from '#meta/validation/field-error.ts'
import { dns1123Label } from '#meta/validation/names.ts'
import { complaining, validateLabelName } from '#meta/validation/rules.ts'

import { validateNodeSelector, validatePreferredTerms, validateWeight } from '../node-affinity.ts'
import type { PodOptions } from './rules.ts'

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution'
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution'

export function validateAffinity(path: string, affinity: Affinity | undefined, options: PodOptions): FieldError[] {
  const { nodeAffinity, podAffinity, podAntiAffinity } = affinity ?? {}
  const nodes = child(path, 'nodeAffinity')
  const wanted = nodeAffinity?.[REQUIRED]
  return [
    ...(wanted === undefined
      ? []
      : validateNodeSelector(child(nodes, REQUIRED), wanted, options.invalidNodeAffinityValues)),
    ...validatePreferredTerms(child(nodes, PREFERRED), nodeAffinity?.[PREFERRED]),
    ...validatePodAffinity(child(path, 'podAffinity'), podAffinity, options),
    ...validatePodAffinity(child(path, 'podAntiAffinity'), podAntiAffinity, options),
  ]
}

function validatePodAffinity(path: string, affinity: PodAffinity | undefined, options: PodOptions): FieldError[] {
  return [
    ...(affinity?.[REQUIRED] ?? []).flatMap((term, at) =>
      validateTerm(index(child(path, REQUIRED), at), term, options),
    ),
    ...(affinity?.[PREFERRED] ?? []).flatMap(({ weight, podAffinityTerm }, at) => {
      const field = index(child(path, PREFERRED), at)
      return [
        ...validateWeight(child(field, 'weight'), weight),
        ...validateTerm(child(field, 'podAffinityTerm'), podAffinityTerm, options),
      ]
    }),
  ]
}

/** Every term about other pods, wished or demanded. */
export function podAffinityTerms(affinity: Affinity | undefined): PodAffinityTerm[] {
  return [affinity?.podAffinity, affinity?.podAntiAffinity].flatMap((one) => [
    ...(one?.[REQUIRED] ?? []),
    ...(one?.[PREFERRED] ?? []).map((term: WeightedPodAffinityTerm) => term.podAffinityTerm),
  ])
}

export function validateTermSelectors(path: string, term: PodAffinityTerm, invalidValues: boolean): FieldError[] {
  return (['labelSelector', 'namespaceSelector'] as const).flatMap((name) =>
    validateLabelSelector(child(path, name), term[name], { invalidValues }),
  )
}

function validateTerm(path: string, term: PodAffinityTerm, options: PodOptions): FieldError[] {
  const { topologyKey, namespaces = [], matchLabelKeys, mismatchLabelKeys } = term
  const field = child(path, 'topologyKey')
  return [
    ...validateTermSelectors(path, term, options.invalidAffinityValues),
    ...namespaces.flatMap((name) => complaining(child(path, 'namespace'), name, dns1123Label(name))),
    ...validateLabelKeys(path, { matchLabelKeys, mismatchLabelKeys, labelSelector: term.labelSelector }),
    ...(topologyKey === '' ? [required(field, 'can not be empty')] : []),
    ...validateLabelName(field, topologyKey),
  ]
}

export interface KeyedSelector {
  readonly matchLabelKeys?: readonly string[] | undefined
  readonly mismatchLabelKeys?: readonly string[] | undefined
  readonly labelSelector?: LabelSelector | undefined
}

/**
 * Keys whose values are taken from the pod. By now they are part of the selector as well, so that a key that is there
 * twice was given twice.
 */
export function validateLabelKeys(path: string, term: KeyedSelector): FieldError[] {
  const { matchLabelKeys = [], mismatchLabelKeys = [], labelSelector } = term
  const errors = [
    ...validateKeyNames(child(path, 'matchLabelKeys'), matchLabelKeys, labelSelector),
    ...validateKeyNames(child(path, 'mismatchLabelKeys'), mismatchLabelKeys, labelSelector),
  ]
  const places = new Map(matchLabelKeys.map((key, at) => [key, at]))
  const mismatches = new Set(mismatchLabelKeys)
  const seen = new Set(Object.keys(labelSelector?.matchLabels ?? {}))
  for (const { key } of labelSelector?.matchExpressions ?? []) {
    const at = places.get(key)
    if (at !== undefined && seen.has(key)) {
      errors.push(
        invalid(index(path, at), key, 'exists in both matchLabelKeys and labelSelector', 'duplicatedLabelKeys'),
      )
    }
    seen.add(key)
  }
  for (const [at, key] of matchLabelKeys.entries()) {
    if (!mismatches.has(key)) continue
    const complaint = 'exists in both matchLabelKeys and mismatchLabelKeys'
    errors.push(invalid(index(child(path, 'matchLabelKeys'), at), key, complaint, 'duplicatedMismatchLabelKeys'))
  }
  return errors
}

function validateKeyNames(field: string, keys: readonly string[], selector: LabelSelector | undefined): FieldError[] {
  if (keys.length === 0) return []
  if (selector === undefined) return [forbidden(field, 'must not be specified when labelSelector is not set')]
  return keys.flatMap((key, at) => validateLabelName(index(field, at), key))
}
