/**
 * Plans how an edit reaches the server. Only fields that the user changed are sent, so that other people's changes stay.
 *
 * Edits that add or change fields are a server-side apply: the server finds conflicts with other managers. It removes a
 * field only for a manager that owns it, so an edit with removals or another order of a list is a JSON patch instead.
 * Its `test` operations refuse the edit if the same fields have changed meanwhile.
 */
import type { FieldsV1, KubeObject, ManagedFieldsEntry } from '#meta/object.ts'

import { hasKeys } from './field-path.ts'
import { resolve, type Schema, type Schemas } from './schema.ts'

export const FIELD_MANAGER = 'hyperkube-console'

export interface PatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'test'
  readonly path: string
  readonly value?: unknown
}

export type EditPlan =
  | { readonly type: 'nothing' }
  | { readonly type: 'apply'; readonly body: KubeObject }
  | { readonly type: 'patch'; readonly body: readonly PatchOperation[]; readonly paths: readonly Path[] }

type Path = readonly (string | number)[]
type Map = Readonly<Record<string, unknown>>

export interface EditedObject {
  /** The live object, without fields that the server writes. */
  readonly base: KubeObject
  readonly mine: KubeObject
  readonly managedFields?: readonly ManagedFieldsEntry[] | undefined
  readonly schemas?: Schemas
  readonly root?: Schema | undefined
}

export function planEdit({ base, mine, managedFields = [], schemas = {}, root }: EditedObject): EditPlan {
  if (equal(base, mine)) return { type: 'nothing' }
  const operations = operationsOf(base, mine, [])
  const picking = { schemas, isRemoving: false }
  const picked = pick(picking, { base, mine, schema: root, owned: ownFields(managedFields) })
  if (picking.isRemoving) {
    return {
      type: 'patch',
      body: operations.flatMap(({ operations: ops }) => ops),
      paths: operations.map(({ path }) => path),
    }
  }
  const { metadata = {}, ...fields } = picked as Partial<KubeObject>
  const { name, namespace } = base.metadata
  const identity = { ...(name !== undefined && { name }), ...(namespace !== undefined && { namespace }) }
  return {
    type: 'apply',
    body: {
      ...fields,
      apiVersion: base.apiVersion ?? '',
      kind: base.kind ?? '',
      metadata: { ...metadata, ...identity },
    },
  }
}

/** Fields that the console owns from earlier edits: an apply without them would remove them. */
function ownFields(managedFields: readonly ManagedFieldsEntry[]): FieldsV1 | undefined {
  return managedFields.find(
    ({ manager, operation, subresource }) =>
      manager === FIELD_MANAGER && operation === 'Apply' && subresource === undefined,
  )?.fieldsV1
}

interface Picking {
  readonly schemas: Schemas
  isRemoving: boolean
}

interface Pair {
  readonly base: unknown
  readonly mine: unknown
  readonly schema: Schema | undefined
  readonly owned: FieldsV1 | undefined
}

/** The part of `mine` that is changed or owned; undefined if nothing is. */
function pick(picking: Picking, { base, mine, schema, owned }: Pair): unknown {
  const isOwned = owned !== undefined
  if (equal(base, mine) && !isOwned) return undefined
  if (equal(base, mine) && isOnlyExistence(owned)) return Array.isArray(mine) ? [] : {}
  if (isOwned && Object.keys(owned).length === 0) return mine
  const found = resolve(picking.schemas, schema)
  if (isMap(base) && isMap(mine) && found?.['x-kubernetes-map-type'] !== 'atomic')
    return pickFields(picking, { base, mine, schema: found, owned })
  if (Array.isArray(base) && Array.isArray(mine)) return pickItems(picking, { base, mine, schema: found, owned })
  return mine
}

/** The console owns that a map or a list is there, and nothing in it. */
function isOnlyExistence(owned: FieldsV1 = {}): boolean {
  const parts = Object.keys(owned)
  return parts.length === 1 && parts[0] === '.'
}

function pickFields(picking: Picking, pair: Pair & { readonly base: Map; readonly mine: Map }): Map {
  const { base, mine, schema, owned } = pair
  if (Object.keys(base).some((name) => !Object.hasOwn(mine, name))) picking.isRemoving = true
  const fields = Object.entries(mine).flatMap(([name, value]) => {
    const child = schema?.properties?.[name] ?? schema?.additionalProperties
    const part = pick(picking, {
      base: base[name],
      mine: value,
      schema: typeof child === 'object' ? child : undefined,
      owned: owned?.[`f:${name}`] as FieldsV1 | undefined,
    })
    return part === undefined ? [] : [[name, part] as const]
  })
  return Object.fromEntries(fields)
}

function pickItems(
  picking: Picking,
  pair: Pair & { readonly base: readonly unknown[]; readonly mine: readonly unknown[] },
): readonly unknown[] {
  const { base, mine, schema, owned } = pair
  const keys = schema?.['x-kubernetes-list-map-keys'] ?? []
  if (schema?.['x-kubernetes-list-type'] === 'set') {
    if (base.some((item) => !mine.includes(item))) picking.isRemoving = true
    return mine.filter((item) => !base.includes(item) || owned?.[`v:${JSON.stringify(item)}`] !== undefined)
  }
  // Without keys a list is one value.
  if (schema?.['x-kubernetes-list-type'] !== 'map' || keys.length === 0) return mine
  const before = base.map((item) => keysOf(item, keys))
  const order = mine.map((item) => before.findIndex((one) => hasKeys(item, one)))
  const isKept = order.filter((at) => at >= 0)
  if (isKept.length < base.length || isKept.some((at, index) => at !== index)) picking.isRemoving = true
  return mine.flatMap((item, index) => {
    const at = order[index] ?? -1
    const own = ownedItem(owned, item)
    if (at < 0) return [item]
    const part = pick(picking, { base: base[at], mine: item, schema: schema.items, owned: own })
    return part === undefined ? [] : [{ ...before[at], ...(part as Map) }]
  })
}

function ownedItem(owned: FieldsV1 | undefined, item: unknown): FieldsV1 | undefined {
  for (const [key, fields] of Object.entries(owned ?? {})) {
    if (key.startsWith('k:') && hasKeys(item, JSON.parse(key.slice(2)) as Map)) return fields as FieldsV1
  }
  return undefined
}

function keysOf(item: unknown, keys: readonly string[]): Map {
  const values: Map = isMap(item) ? item : {}
  return Object.fromEntries(keys.filter((key) => Object.hasOwn(values, key)).map((key) => [key, values[key]]))
}

interface Operations {
  readonly path: Path
  readonly operations: readonly PatchOperation[]
}

function operationsOf(base: unknown, mine: unknown, path: Path): readonly Operations[] {
  if (equal(base, mine)) return []
  const pointer = path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
  const test: PatchOperation = { op: 'test', path: pointer, value: base }
  if (mine === undefined) return [{ path, operations: [test, { op: 'remove', path: pointer }] }]
  if (base === undefined) return [{ path, operations: [{ op: 'add', path: pointer, value: mine }] }]
  if (isMap(base) && isMap(mine)) {
    const names = new Set([...Object.keys(base), ...Object.keys(mine)])
    return [...names].flatMap((name) => operationsOf(base[name], mine[name], [...path, name]))
  }
  if (Array.isArray(base) && Array.isArray(mine) && base.length === mine.length) {
    return mine.flatMap((item, at) => operationsOf(base[at], item, [...path, at]))
  }
  return [{ path, operations: [test, { op: 'replace', path: pointer, value: mine }] }]
}

function isMap(value: unknown): value is Map {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Deep equality of JSON values. The order of fields does not matter. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, at) => equal(item, b[at]))
  if (!isMap(a) || !isMap(b)) return false
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && equal(a[name], b[name]))
  )
}
