/** Generates random canonical objects of any kind from its schema, for property tests. */
import fc from 'fast-check'

import { schemaFor } from '#apis/schemas.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import type { ScalarType, Schema, StructSchema } from '#meta/schema.ts'

/** Types may be recursive. */
const MAX_DEPTH = 9

const scalars: Readonly<Record<ScalarType, fc.Arbitrary<unknown>>> = {
  string: fc.constantFrom('', 'a', 'b/c', 'Utilization', '<&>'),
  boolean: fc.boolean(),
  int32: fc.constantFrom(0, 1, 80, 2 ** 31 - 1),
  int64: fc.constantFrom(0, 7, 2 ** 40),
  float64: fc.constantFrom(0, 0.5, 3),
  bytes: fc.constantFrom('', 'YWI='),
  quantity: fc.constantFrom('0', '1', '500m', '64Mi'),
  time: fc.constantFrom(null, '2026-01-02T03:04:05Z'),
  microtime: fc.constantFrom(null, '2026-01-02T03:04:05.000006Z'),
  duration: fc.constantFrom('0s', '1m30s'),
  'int-or-string': fc.constantFrom(0, 80, 'http'),
}

/** Each field is present with about 50 %. Only types are valid, not values. */
export function arbitraryOf(gvk: GroupVersionKind): fc.Arbitrary<KubeObject> {
  const schema = schemaFor(gvk)
  if (schema === undefined) throw new Error(`No schema for "${apiVersionOf(gvk)}" "${gvk.kind}"`)
  const typeMeta = { kind: gvk.kind, apiVersion: apiVersionOf(gvk) }
  return valueOf(schema, 0).map((value) => {
    const whole = deepCopy({ ...(value as object), ...typeMeta })
    return decodeValue(schema, whole, 'Ignore', { offences: [], settles: true }) as KubeObject
  })
}

function valueOf(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  switch (schema.type) {
    case 'struct':
      return structOf(schema, depth)
    case 'list':
      return fc.array(valueOf(schema.items, depth + 1), { maxLength: 2 })
    case 'map':
      return fc.dictionary(fc.constantFrom('a', 'b', '__proto__', '1'), valueOf(schema.values, depth + 1), {
        maxKeys: 2,
      })
    case 'any':
      return schema.alternatives === undefined ? fc.constantFrom({ a: [1] }, { b: { c: 'd' } }) : fc.constant({})
    default:
      return scalars[schema.type]
  }
}

function structOf({ fields, goType }: StructSchema, depth: number): fc.Arbitrary<unknown> {
  if (depth > MAX_DEPTH) return fc.constant({})
  // Metadata is large and the same in every version; a few values suffice.
  if (goType === 'v1.ObjectMeta') return fc.constantFrom({ name: 'a' }, { name: 'b', annotations: { x: 'y' } })
  const members = [...fields.values()].filter(({ name }) => name !== 'kind' && name !== 'apiVersion')
  const model = Object.fromEntries(members.map(({ name, schema }) => [name, valueOf(schema, depth + 1)]))
  return fc.record(model, { requiredKeys: [] })
}
