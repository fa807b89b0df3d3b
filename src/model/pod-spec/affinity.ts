/** Validates node and pod affinity. */
import type { Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm } from '#apis/core/v1.ts'
import { type LabelSelector, validateLabelSelector } from '#meta/label-selector.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Label } from '#meta/validation/names.ts'
import { validateLabelName } from '#meta/validation/rules.ts'

import { validateNodeSelector, validatePreferredTerms, validateWeight } from '../nodes/affinity.ts'
import type { PodOptions } from './rules.ts'

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution'
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution'

export function validateAffinity(path: FieldPath, affinity: Affinity | undefined, options: PodOptions): FieldError[] {
  const { nodeAffinity, podAffinity, podAntiAffinity } = affinity ?? {}
  const nodes = path.child('nodeAffinity')
  const wanted = nodeAffinity?.[REQUIRED]
  return collectErrors(
    wanted !== undefined && validateNodeSelector(nodes.child(REQUIRED), wanted, options.invalidNodeAffinityValues),
    validatePreferredTerms(nodes.child(PREFERRED), nodeAffinity?.[PREFERRED]),
    validatePodAffinity(path.child('podAffinity'), podAffinity, options),
    validatePodAffinity(path.child('podAntiAffinity'), podAntiAffinity, options),
  )
}

function validatePodAffinity(path: FieldPath, affinity: PodAffinity | undefined, options: PodOptions): FieldError[] {
  return [
    ...path.child(REQUIRED).each(affinity?.[REQUIRED], (path, term) => validateTerm(path, term, options)),
    ...path
      .child(PREFERRED)
      .each(affinity?.[PREFERRED], (field, { weight, podAffinityTerm }) => [
        ...validateWeight(field.child('weight'), weight),
        ...validateTerm(field.child('podAffinityTerm'), podAffinityTerm, options),
      ]),
  ]
}

/** All pod affinity terms, preferred or required. */
export function podAffinityTerms(affinity: Affinity | undefined): PodAffinityTerm[] {
  return [affinity?.podAffinity, affinity?.podAntiAffinity].flatMap((one) => [
    ...(one?.[REQUIRED] ?? []),
    ...(one?.[PREFERRED] ?? []).map((term: WeightedPodAffinityTerm) => term.podAffinityTerm),
  ])
}

export function validateTermSelectors(path: FieldPath, term: PodAffinityTerm, invalidValues: boolean): FieldError[] {
  return (['labelSelector', 'namespaceSelector'] as const).flatMap((name) =>
    validateLabelSelector(path.child(name), term[name], { invalidValues }),
  )
}

function validateTerm(path: FieldPath, term: PodAffinityTerm, options: PodOptions): FieldError[] {
  const { topologyKey, namespaces = [], matchLabelKeys, mismatchLabelKeys } = term
  const field = path.child('topologyKey')
  return collectErrors(
    validateTermSelectors(path, term, options.invalidAffinityValues),
    namespaces.flatMap((name) => path.child('namespace').check(name, dns1123Label)),
    validateLabelKeys(path, { matchLabelKeys, mismatchLabelKeys, labelSelector: term.labelSelector }),
    topologyKey === '' && field.required('can not be empty'),
    validateLabelName(field, topologyKey),
  )
}

export interface KeyedSelector {
  readonly matchLabelKeys?: readonly string[] | undefined
  readonly mismatchLabelKeys?: readonly string[] | undefined
  readonly labelSelector?: LabelSelector | undefined
}

/** matchLabelKeys are part of the selector by now, so a key that occurs twice was given twice. */
export function validateLabelKeys(path: FieldPath, term: KeyedSelector): FieldError[] {
  const { matchLabelKeys = [], mismatchLabelKeys = [], labelSelector } = term
  const errors = [
    ...validateKeyNames(path.child('matchLabelKeys'), matchLabelKeys, labelSelector),
    ...validateKeyNames(path.child('mismatchLabelKeys'), mismatchLabelKeys, labelSelector),
  ]
  const indexes = new Map(matchLabelKeys.map((key, at) => [key, at]))
  const mismatches = new Set(mismatchLabelKeys)
  const seen = new Set(Object.keys(labelSelector?.matchLabels ?? {}))
  for (const { key } of labelSelector?.matchExpressions ?? []) {
    const at = indexes.get(key)
    if (at !== undefined && seen.has(key)) {
      errors.push(path.index(at).invalid(key, 'exists in both matchLabelKeys and labelSelector', 'duplicatedLabelKeys'))
    }
    seen.add(key)
  }
  for (const [at, key] of matchLabelKeys.entries()) {
    if (!mismatches.has(key)) continue
    const complaint = 'exists in both matchLabelKeys and mismatchLabelKeys'
    errors.push(path.child('matchLabelKeys').index(at).invalid(key, complaint, 'duplicatedMismatchLabelKeys'))
  }
  return errors
}

function validateKeyNames(path: FieldPath, keys: readonly string[], selector: LabelSelector | undefined): FieldError[] {
  if (keys.length === 0) return []
  if (selector === undefined) return [path.forbidden('must not be specified when labelSelector is not set')]
  return path.each(keys, validateLabelName)
}
