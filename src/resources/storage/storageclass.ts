/** StorageClass: how volumes are made for the claims that name it. */
import type { TopologySelectorTerm } from '#apis/core/v1.ts'
import { type StorageClass, StorageClasses } from '#apis/storage/v1.ts'
import { ageColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { compareText } from '#lib/go-text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { asJson, child, duplicate, type FieldError, index, notInSet, required } from '#meta/validation/field-error.ts'
import { immutable, validateLabelName } from '#meta/validation/rules.ts'
import { oldNodeLabelText } from '#model/pod-spec/warnings.ts'

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
    ...immutable('parameters', next.parameters, old.parameters),
    ...immutable('provisioner', next.provisioner, old.provisioner),
    ...immutable('reclaimPolicy', next.reclaimPolicy, old.reclaimPolicy),
    ...immutable('volumeBindingMode', next.volumeBindingMode, old.volumeBindingMode),
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
  return [
    ...validateDriver('provisioner', provisioner),
    ...validateParameters('parameters', parameters, true),
    ...(policy === '' || reclaimPolicies.includes(policy)
      ? []
      : [notInSet('reclaimPolicy', asJson(policy), reclaimPolicies)]),
    ...validateBindingMode(mode),
    ...validateTopologies(object.allowedTopologies ?? []),
  ]
}

function validateBindingMode(mode: string | undefined): FieldError[] {
  if (mode === undefined) return [required('volumeBindingMode')]
  return bindingModes.includes(mode) ? [] : [notInSet('volumeBindingMode', asJson(mode), bindingModes)]
}

/** Up to so many terms, a term gets one error for each that it repeats, as upstream gives. Beyond, it gets one. */
const MAX_COUNTED_TERMS = 100

/** Terms that say the same are refused, whatever their order. */
function validateTopologies(terms: readonly TopologySelectorTerm[]): FieldError[] {
  const maxRepeated = terms.length > MAX_COUNTED_TERMS ? 1 : Infinity
  // Upstream begins with a list of empty terms, so an empty one is always a duplicate.
  const counts = new Map([['[]', terms.length]])
  return terms.flatMap((term, at) => {
    const path = child(index('allowedTopologies', at), 'matchLabelExpressions')
    const identity = identityOf(term)
    const count = counts.get(identity) ?? 0
    counts.set(identity, count + 1)
    const repeated = Array.from({ length: Math.min(count, maxRepeated) }, () => duplicate(path, ''))
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

function validateTerm(field: string, { matchLabelExpressions }: TopologySelectorTerm): FieldError[] {
  const keys = new Set<string>()
  return (matchLabelExpressions ?? []).flatMap(({ key, values }, at) => {
    const path = index(field, at)
    const valuesPath = child(path, 'values')
    const list = values ?? []
    const isRepeated = createRepetition()
    const errors = [
      ...(list.length === 0 ? [required(valuesPath)] : []),
      ...list.flatMap((value, place) => (isRepeated(value) ? [duplicate(index(valuesPath, place), value)] : [])),
      ...validateLabelName(child(path, 'key'), key),
      ...(keys.has(key) ? [duplicate(child(path, 'key'), key)] : []),
    ]
    keys.add(key)
    return errors
  })
}

function topologyWarnings({ matchLabelExpressions }: TopologySelectorTerm, at: number): string[] {
  return (matchLabelExpressions ?? []).flatMap(({ key }, place) => {
    const complaint = oldNodeLabelText(key)
    const path = index(child(index('allowedTopologies', at), 'matchLabelExpressions'), place)
    return complaint === undefined ? [] : [`${path}.key: ${complaint}`]
  })
}

function nameText({ metadata: { name = '', annotations } }: StorageClass): string {
  return defaultAnnotations.some((one) => annotations?.[one] === 'true') ? `${name} (default)` : name
}
