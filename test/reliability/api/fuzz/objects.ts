/** Objects for the fuzzer: a valid sample or one generated from the schema, with a few random changes. */
import type { Kind } from '#apis/kinds.ts'
import { schemaFor } from '#apis/schemas.ts'
import type { Random } from '#lib/random.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import type { Schema } from '#meta/schema.ts'

import { SAMPLES } from './samples.ts'
import { anyValue, nameIn, objectOf, oneIn, pick, RawNumber, STRANGE_KEYS, valueFor } from './values.ts'

export const NAMESPACES: readonly string[] = [
  ...Array.from({ length: 12 }, () => 'fuzz'),
  'other',
  'default',
  'kube-system',
  'missing',
]

type Json = Record<string, unknown>

/** The object as a client would send it, more or less. */
export function objectFor(
  random: Random,
  gvk: GroupVersionKind,
  where: { readonly name: string; readonly namespace: string },
): Json {
  const apiVersion = apiVersionOf(gvk)
  const sample = SAMPLES[`${apiVersion}/${gvk.kind}`]
  const schema = schemaFor(gvk)
  const isMadeUp = sample === undefined || oneIn(random, 8)
  const fields = isMadeUp ? (schema === undefined ? {} : (valueFor(random, schema) as Json)) : structuredClone(sample)
  const given = (fields as { metadata?: Json }).metadata ?? {}
  const namespace = where.namespace === '' ? {} : { namespace: where.namespace }
  const object: Json = { apiVersion, kind: gvk.kind, ...fields, metadata: { ...given, name: where.name, ...namespace } }
  for (let changes = changeCount(random); changes > 0; changes--) change(random, object, schema)
  return object
}

/** None in half of the cases, then fewer and fewer. */
function changeCount(random: Random): number {
  if (oneIn(random, 2)) return 0
  let count = 1
  while (count < 12 && oneIn(random, 2)) count++
  return count
}

function change(random: Random, object: Json, schema: Schema | undefined): void {
  if (oneIn(random, 4)) return changeMetadata(random, object)
  const position = positionIn(random, object, schema)
  if (position === undefined) return
  const { holder, key } = position
  if (Array.isArray(holder)) return changeList(random, holder, Number(key))
  switch (random.int(5)) {
    case 0:
      return void delete holder[key]
    case 1:
      return define(holder, pick(random, STRANGE_KEYS), anyValue(random))
    case 2:
      return addField(random, holder, position.schema)
    default:
      return define(
        holder,
        key,
        position.inner === undefined || oneIn(random, 3) ? anyValue(random) : valueFor(random, position.inner),
      )
  }
}

function changeList(random: Random, list: unknown[], at: number): void {
  if (oneIn(random, 3)) list.splice(at, 1)
  else if (oneIn(random, 2)) list.push(list[at])
  else list[at] = anyValue(random)
}

/** A field the struct knows and the object may not have. */
function addField(random: Random, holder: Json, schema: Schema | undefined): void {
  if (schema?.type !== 'struct' || schema.fields.size === 0) return define(holder, 'zork', anyValue(random))
  const field = pick(random, [...schema.fields.values()])
  define(holder, field.name, valueFor(random, field.schema))
}

function define(holder: Json, key: string, value: unknown): void {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true })
}

interface Position {
  readonly holder: Json | unknown[]
  readonly key: string
  /** Of the holder, and of what is at the key. */
  readonly schema: Schema | undefined
  readonly inner: Schema | undefined
}

/** A walk from the root that stops anywhere. */
function positionIn(random: Random, root: Json, rootSchema: Schema | undefined): Position | undefined {
  let holder: unknown = root
  let schema = rootSchema
  for (;;) {
    const keys = Object.keys(holder as object)
    if (keys.length === 0) return undefined
    const key = pick(random, keys)
    const inner = innerSchema(schema, key)
    const next = (holder as Json)[key]
    const isEnd = typeof next !== 'object' || next === null || next instanceof RawNumber || oneIn(random, 4)
    if (isEnd) return { holder: holder as Json, key, schema, inner }
    holder = next
    schema = inner
  }
}

function innerSchema(schema: Schema | undefined, key: string): Schema | undefined {
  if (schema?.type === 'struct') return schema.fields.get(key)?.schema
  if (schema?.type === 'list') return schema.items
  return schema?.type === 'map' ? schema.values : undefined
}

/** Values of metadata that servers do something about. */
const METADATA: Readonly<Record<string, (random: Random) => unknown>> = {
  name: nameIn,
  generateName: nameIn,
  namespace: (random) => pick(random, NAMESPACES),
  resourceVersion: (random) => pick(random, ['', '0', '1', '5', '99999999', 'x', '-1', '18446744073709551615']),
  uid: (random) => pick(random, ['', 'x', '00000000-0000-4000-8000-000000000000']),
  generation: (random) => pick(random, [0, 1, -1, 2 ** 53]),
  creationTimestamp: (random) => pick(random, [null, '2026-01-02T03:04:05Z', 'x']),
  deletionTimestamp: (random) => pick(random, [null, '2026-01-02T03:04:05Z']),
  deletionGracePeriodSeconds: (random) => pick(random, [0, 30, -1]),
  finalizers: (random) => pick(random, [[], ['example.com/f'], ['x', 'x'], ['foregroundDeletion', 'orphan'], null]),
  labels: (random) => objectOf([[pick(random, ['app', 'a/b', '', '__proto__', 'A'.repeat(64)]), nameIn(random)]]),
  annotations: (random) => objectOf([[pick(random, ['a', 'a.b/c', '__proto__', '']), nameIn(random)]]),
  ownerReferences: (random) => [
    { apiVersion: pick(random, ['v1', 'apps/v1', '']), kind: 'Pod', name: nameIn(random), uid: 'x', controller: true },
  ],
  managedFields: (random) =>
    pick(random, [
      null,
      [],
      [{}],
      [{ manager: 'a', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { 'f:data': {} } }],
      [{ manager: 'a', operation: 'Update', apiVersion: 'v9', fieldsType: 'FieldsV1', fieldsV1: anyValue(random) }],
      [
        {
          manager: 'a',
          operation: 'Update',
          apiVersion: 'v1',
          fieldsV1: { 'k:{"a":': {}, 'v:': {}, 'i:x': {}, '.': {} },
        },
      ],
    ]),
}

function changeMetadata(random: Random, object: Json): void {
  const key = pick(random, Object.keys(METADATA))
  const { metadata } = object
  const holder =
    typeof metadata === 'object' && metadata !== null ? (metadata as Json) : ((object['metadata'] = {}) as Json)
  define(holder, key, METADATA[key]?.(random))
}

/** The kind of a subresource's body. */
export function bodyKind(kind: Kind, subresource: string): GroupVersionKind {
  return kind.subresources.find(({ name }) => name === subresource)?.kind ?? kind
}
