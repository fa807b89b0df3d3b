/** Compares the objects of two moments. Pure. */
import { isDeepStrictEqual } from 'node:util'

import type { ServedKind } from '#client/discovery.ts'

import type { AnyObject } from '../session/rest.ts'
import { resourceOf } from './user-kinds.ts'

export interface FoundObject {
  readonly kind: ServedKind
  readonly object: AnyObject
}

/** An object at two moments. Undefined: it did not exist. */
export interface ObjectPair {
  readonly kind: ServedKind
  readonly before: AnyObject | undefined
  readonly after: AnyObject | undefined
}

/** Sorted by namespace, kind and name. */
export function pairObjects(before: readonly FoundObject[], after: readonly FoundObject[]): ObjectPair[] {
  const pairs = new Map<string, ObjectPair>()
  for (const { kind, object } of after) pairs.set(keyOf(kind, object), { kind, before: undefined, after: object })
  for (const { kind, object } of before) {
    const key = keyOf(kind, object)
    const later = pairs.get(key)
    pairs.set(key, { kind: later?.kind ?? kind, before: object, after: later?.after })
  }
  return [...pairs].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, pair]) => pair)
}

function keyOf(kind: ServedKind, { metadata: { namespace = '', name = '' } }: AnyObject): string {
  return [namespace, resourceOf(kind), name].join(' ')
}

export interface ShownOptions {
  readonly status: boolean
}

/** The pairs that differ, without fields that change with every write. */
export function differences(pairs: readonly ObjectPair[], options: ShownOptions): ObjectPair[] {
  const shown = (kind: ServedKind, object: AnyObject | undefined): AnyObject | undefined =>
    object === undefined ? undefined : shownObject(kind, object, options)
  return pairs
    .map(({ kind, before, after }) => ({ kind, before: shown(kind, before), after: shown(kind, after) }))
    .filter(({ before, after }) => !isDeepStrictEqual(before, after))
}

/** The server hides this annotation of a past Secret, because it has the values. */
export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

function shownObject(kind: ServedKind, object: AnyObject, { status }: ShownOptions): AnyObject {
  const { metadata, status: state, ...rest } = object
  const { managedFields: _, resourceVersion: __, ...shown } = metadata
  const whole = { ...rest, metadata: shown, ...(status && state !== undefined && { status: state }) }
  return isSecret(kind) ? withoutValues(whole) : whole
}

export function isSecret(kind: Pick<ServedKind, 'plural' | 'group'>): boolean {
  return resourceOf(kind) === 'secrets'
}

/** Present Secrets look like those of the past: keys without values. */
function withoutValues(secret: AnyObject): AnyObject {
  const { data = {}, metadata, ...rest } = secret
  const { annotations, ...others } = metadata
  const { [LAST_APPLIED]: _, ...shown } = annotations ?? {}
  return {
    ...rest,
    metadata: { ...others, ...(Object.keys(shown).length > 0 && { annotations: shown }) },
    data: Object.fromEntries(Object.keys(data as object).map((key) => [key, '***'])),
  }
}
