/** The StorageClass resource: how volumes are provisioned for claims. */
import type { TopologySelectorTerm } from '#apis/core/v1.ts'
import { type StorageClass, StorageClasses } from '#apis/storage/v1.ts'
import { ageColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { compareText } from '#lib/go/text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { immutable, requiredOneOfSet, validateLabelName } from '#meta/validation/rules.ts'
import { oldNodeLabelText } from '#model/pod-spec/warnings/warnings.ts'

import { validateDriver, validateParameters } from './parameters.ts'

const defaultAnnotations = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
]
const reclaimPolicies = ['Delete', 'Retain']
const bindingModes = ['Immediate', 'WaitForFirstConsumer']

export const storageClass: Resource<StorageClass> = defineResource<StorageClass>({
  kind: StorageClasses,
  metadataRules: { update: ['whole', 'change'] },
  applyDefaults(object) {
    object.reclaimPolicy ??= 'Delete'
    object.volumeBindingMode ??= 'Immediate'
  },
  validate: validateClass,
  validateUpdate: (next, old) => [
    ...validateClass(next),
    ...immutable(fieldPath('parameters'), next.parameters, old.parameters),
    ...immutable(fieldPath('provisioner'), next.provisioner, old.provisioner),
    ...immutable(fieldPath('reclaimPolicy'), next.reclaimPolicy, old.reclaimPolicy),
    ...immutable(fieldPath('volumeBindingMode'), next.volumeBindingMode, old.volumeBindingMode),
  ],
  warnings: ({ allowedTopologies = [] }) => allowedTopologies.flatMap(topologyWarnings),
  columns: [
    { name: 'Name', format: 'name', value: nameText },
    { name: 'Provisioner', value: ({ provisioner }) => provisioner },
    { name: 'ReclaimPolicy', value: ({ reclaimPolicy = 'Delete' }) => reclaimPolicy },
    { name: 'VolumeBindingMode', value: ({ volumeBindingMode = 'Immediate' }) => volumeBindingMode },
    { name: 'AllowVolumeExpansion', value: ({ allowVolumeExpansion = false }) => allowVolumeExpansion },
    ageColumn,
  ],
  deleteAnswersObject: true,
})

function validateClass(object: StorageClass): FieldError[] {
  const { provisioner, parameters, reclaimPolicy: policy = '', volumeBindingMode: mode } = object
  return collectErrors(
    validateDriver(fieldPath('provisioner'), provisioner),
    validateParameters(fieldPath('parameters'), parameters, true),
    policy !== '' &&
      !reclaimPolicies.includes(policy) &&
      fieldPath('reclaimPolicy').notInSet(asJson(policy), reclaimPolicies),
    requiredOneOfSet(fieldPath('volumeBindingMode'), mode, bindingModes),
    validateTopologies(object.allowedTopologies ?? []),
  )
}

/** Up to this number of terms, a term gets one error for each duplicate, like upstream. Beyond, it gets one. */
const MAX_COUNTED_TERMS = 100

/** Equal terms are rejected, regardless of order. */
function validateTopologies(terms: readonly TopologySelectorTerm[]): FieldError[] {
  const maxRepeated = terms.length > MAX_COUNTED_TERMS ? 1 : Infinity
  // Upstream starts with a list of empty terms, so an empty one is always a duplicate.
  const counts = new Map([['[]', terms.length]])
  return fieldPath('allowedTopologies').each(terms, (itemPath, term) => {
    const path = itemPath.child('matchLabelExpressions')
    const identity = identityOf(term)
    const count = counts.get(identity) ?? 0
    counts.set(identity, count + 1)
    const repeated = Array.from({ length: Math.min(count, maxRepeated) }, () => path.duplicate(''))
    return [...validateTerm(path, term), ...repeated]
  })
}

function identityOf({ matchLabelExpressions }: TopologySelectorTerm): string {
  const values = new Map<string, string[]>()
  for (const one of matchLabelExpressions ?? []) {
    values.set(one.key, [...new Set(one.values ?? [])].sort(compareText))
  }
  return JSON.stringify([...values].sort(([a], [b]) => compareText(a, b)))
}

function validateTerm(path: FieldPath, { matchLabelExpressions }: TopologySelectorTerm): FieldError[] {
  const keys = new Set<string>()
  return path.each(matchLabelExpressions, (path, { key, values }) => {
    const valuesPath = path.child('values')
    const list = values ?? []
    const isRepeated = createRepetition()
    const errors = collectErrors(
      list.length === 0 && valuesPath.required(),
      valuesPath.each(list, (path, value) => isRepeated(value) && path.duplicate(value)),
      validateLabelName(path.child('key'), key),
      keys.has(key) && path.child('key').duplicate(key),
    )
    keys.add(key)
    return errors
  })
}

function topologyWarnings({ matchLabelExpressions }: TopologySelectorTerm, at: number): string[] {
  return (matchLabelExpressions ?? []).flatMap(({ key }, place) => {
    const complaint = oldNodeLabelText(key)
    const path = fieldPath('allowedTopologies').index(at).child('matchLabelExpressions').index(place)
    return complaint === undefined ? [] : [`${path}.key: ${complaint}`]
  })
}

function nameText({ metadata: { name = '', annotations } }: StorageClass): string {
  return defaultAnnotations.some((one) => annotations?.[one] === 'true') ? `${name} (default)` : name
}
