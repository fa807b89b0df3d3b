/** Selects the objects of a collection for list, watch and deletecollection, by namespace, labels and fields. */
import {
  isEveryField,
  knownFields,
  matchesFields,
  metadataFields,
  parseFieldSelector,
  fieldSelectorText,
  requiredField,
  type FieldSelector,
  type FieldTransform,
} from '#meta/fields.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import { isEverything, matchesLabels, parseSelector, selectorText } from '#meta/labels.ts'
import type { ListOptions } from '#meta/options.ts'
import { badRequestError } from '#meta/status-errors.ts'
import type { Filter } from '#storage/watch-cache/readers.ts'

import type { Entry } from '../registry/entry.ts'
import type { Resource } from '../registry/resource.ts'
import type { View } from './view.ts'

export interface Selection extends Filter<Entry> {
  /** True if selectors restrict it: the number of remaining objects is then unknown. */
  readonly hasSelectors: boolean
}

/** Throws 400 for selectors that are malformed or unsupported by the kind. */
export function selectionOf(
  { resource, representation }: Pick<View, 'resource' | 'representation'>,
  namespace: string,
  options: ListOptions,
): Selection {
  const labels = reading(() => parseSelector(options.labelSelector ?? ''))
  const fields = reading(() => parseFieldSelector(options.fieldSelector ?? '', fieldsOf(resource, representation.kind)))
  const anyLabels = isEverything(labels)
  const anyFields = isEveryField(fields)
  const pin = pinOf(resource, namespace, fields)
  const { converter } = representation
  const read = converter === undefined ? fieldOf : (entry: Entry, field: string) => converter.fieldOf(entry, field)
  return {
    // Versions of a custom resource may have different field values.
    id: `${namespace}\n${anyLabels ? '' : selectorText(labels)}\n${anyFields ? '' : fieldSelectorText(fields)}${converter === undefined ? '' : `\n${converter.name}`}`,
    hasSelectors: !anyLabels || !anyFields,
    matches: (entry) =>
      (namespace === '' || entry.namespace === namespace) &&
      (anyLabels || matchesLabels(labels, representation.look(entry).labels)) &&
      (anyFields || matchesFields(fields, (field) => read(entry, field))),
    ...(pin === undefined ? {} : { pin }),
  }
}

export function fieldOf(entry: Entry, field: string): string {
  if (field === 'metadata.name') return entry.name
  if (field === 'metadata.namespace') return entry.namespace
  return entry.fields[field] ?? ''
}

/** A value that every match must have, by which watchers are indexed: the name, an indexed field or the namespace. */
function pinOf(resource: Resource, namespace: string, fields: FieldSelector): Filter<Entry>['pin'] {
  for (const index of ['metadata.name', ...(resource.indexedFields ?? [])]) {
    const value = requiredField(fields, index)
    if (value !== undefined) return { index, value }
  }
  return namespace === '' ? undefined : { index: 'metadata.namespace', value: namespace }
}

/** The field selectors of a version, by their name in the stored version. */
function fieldsOf(resource: Resource, { group, version }: GroupVersionKind): FieldTransform {
  const { fieldSelectors, fieldAliases = {}, unknownField, kind, otherVersions = [] } = resource
  if (fieldSelectors === undefined) return metadataFields
  const names = otherVersions.find((other) => other.kind.group === group && other.kind.version === version)?.fieldNames
  const stored = names ?? fieldAliases
  const own = kind.namespaced ? ['metadata.name', 'metadata.namespace'] : ['metadata.name']
  const known = knownFields([...own, ...Object.keys(names ?? { ...fieldSelectors, ...fieldAliases })], unknownField)
  return (field, value) => {
    known(field, value)
    return { field: Object.hasOwn(stored, field) ? (stored[field] ?? field) : field, value }
  }
}

function reading<T>(read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw badRequestError((cause as Error).message)
  }
}
