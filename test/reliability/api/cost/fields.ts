/** Finds the fields of a kind that can become large, by its schema, and values with which to fill them. */
import type { Random } from '#lib/random.ts'
import type { FieldSchema, Schema } from '#meta/schema.ts'

export type Json = Record<string, unknown>

/** The way from the root of an object to a field: names of members, `0` into a list, `''` into a map. */
export interface Field {
  readonly path: readonly string[]
  readonly schemas: readonly Schema[]
  readonly schema: Schema
}

/** Deeper ones are the same structs again. */
const MAX_DEPTH = 12

/** Every list, map, text and free-form value of a kind. */
export function fieldsOf(root: Schema): Field[] {
  const found: Field[] = []
  const visit = (schema: Schema, path: readonly string[], schemas: readonly Schema[]): void => {
    if (schemas.filter((outer) => outer === schema).length > 1 || path.length > MAX_DEPTH) return
    if (canGrow(schema)) found.push({ path, schemas, schema })
    const inner = [...schemas, schema]
    if (schema.type === 'list') visit(schema.items, [...path, '0'], inner)
    else if (schema.type === 'map') visit(schema.values, [...path, ''], inner)
    else if (schema.type === 'struct') {
      for (const field of schema.fields.values()) visit(field.schema, [...path, field.name], inner)
    }
  }
  visit(root, [], [])
  return found.filter(({ path }) => path[0] !== 'kind' && path[0] !== 'apiVersion')
}

function canGrow({ type }: Schema): boolean {
  return !['struct', 'boolean', 'int32', 'int64', 'float64'].includes(type)
}

/** How elements differ from each other. */
export const LIKENESSES = ['distinct', 'repeated', 'prefixed'] as const
export type Likeness = (typeof LIKENESSES)[number]
/** How much of an element is there. */
export const FILLINGS = ['sample', 'filled', 'empty'] as const
export type Filling = (typeof FILLINGS)[number]

const PREFIX = 'a'.repeat(50)

function label(likeness: Likeness, n: number): string {
  if (likeness === 'repeated') return 'x'
  return likeness === 'distinct' ? `x${n}` : `${PREFIX}${n}`
}

type Make = (likeness: Likeness, n: number) => unknown

const ordinal: Make = (likeness, n) => (likeness === 'repeated' ? 1 : n)
const port: Make = (likeness, n) => ((ordinal(likeness, n) as number) % 65_535) + 1

const SCALARS: Readonly<Partial<Record<Schema['type'], Make>>> = {
  string: label,
  boolean: () => true,
  int32: port,
  int64: port,
  float64: port,
  'int-or-string': port,
  bytes: (likeness, n) => Buffer.from(label(likeness, n)).toString('base64'),
  quantity: (likeness, n) => String(ordinal(likeness, n)),
  time: () => '2026-01-02T03:04:05Z',
  microtime: () => '2026-01-02T03:04:05.000000Z',
  duration: (likeness, n) => `${String(ordinal(likeness, n))}s`,
}

/** Deeper than this, lists and maps are left empty. */
const MAX_FILLED_DEPTH = 3

/** A value for the schema, the `n`th of its kind. */
export function elementOf(schema: Schema, likeness: Likeness, n: number, depth = 0): unknown {
  const isDeep = depth > MAX_FILLED_DEPTH
  switch (schema.type) {
    case 'list':
      return isDeep ? [] : [elementOf(schema.items, likeness, n, depth + 1)]
    case 'map':
      return isDeep ? {} : { [label(likeness, n)]: elementOf(schema.values, likeness, n, depth + 1) }
    case 'struct':
      return filledStruct([...schema.fields.values()], likeness, n, depth)
    default:
      return SCALARS[schema.type]?.(likeness, n) ?? { [label(likeness, n)]: ordinal(likeness, n) }
  }
}

function filledStruct(fields: readonly FieldSchema[], likeness: Likeness, n: number, depth: number): Json {
  const wanted = fields.filter(({ schema, required }) => {
    if (depth > 2) return false
    return required || depth === 0 || !['struct', 'list', 'map', 'any'].includes(schema.type)
  })
  const value = (field: FieldSchema): unknown => field.enum?.[0] ?? elementOf(field.schema, likeness, n, depth + 1)
  return Object.fromEntries(wanted.map((field) => [field.name, value(field)]))
}

/** A sample with everything in it that is text or a number made the `n`th of its kind, but for a few words. */
export function variantOf(sample: unknown, likeness: Likeness, n: number, key = ''): unknown {
  if (Array.isArray(sample)) return sample.map((item) => variantOf(item, likeness, n))
  if (typeof sample === 'object' && sample !== null) {
    return Object.fromEntries(Object.entries(sample).map(([name, part]) => [name, variantOf(part, likeness, n, name)]))
  }
  if (likeness === 'repeated') return sample
  if (/^(name|key|uid|ip|path|mountPath|devicePath|host|hostname|containerName|topologyKey|driver)$/.test(key)) {
    return key === 'ip' ? `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}` : changed(sample, likeness, n)
  }
  return typeof sample === 'number' && /[pP]ort/.test(key) ? (n % 65_535) + 1 : sample
}

function changed(sample: unknown, likeness: Likeness, n: number): unknown {
  if (typeof sample !== 'string') return sample
  return likeness === 'prefixed' ? `${sample}${PREFIX}${n}` : `${sample}${n}`
}

/** Long texts that are expensive to parse: digits, exponents, lists. */
export function longText(random: Random, type: string, bytes: number): string {
  const pieces = [
    '9',
    'a',
    '1,',
    'a.',
    '*/1,',
    '1h',
    '/',
    '-',
    '0',
    '(',
    'a=b,',
    '%',
    '[',
    '::',
    'é',
    '\\',
    "'",
    '&&a',
    '!',
  ]
  const times = (piece: string): string => piece.repeat(Math.max(1, Math.floor(bytes / piece.length)))
  switch (type) {
    case 'quantity':
      return [times('9'), `0.${times('0')}1`, `1e${times('9')}`, '9'.repeat(19) + times('0'), `-${times('1')}Ki`][
        random.int(5)
      ] as string
    case 'bytes':
      return Buffer.alloc(Math.floor((bytes * 3) / 4), 'x').toString('base64')
    case 'duration':
      return [times('1h'), `${times('9')}s`, `1.${times('9')}h`][random.int(3)] as string
    case 'time':
    case 'microtime':
      return `2026-01-02T03:04:05.${times('9')}Z`
    case 'int-or-string':
      return `${times('9')}%`
    default: {
      const piece = pieces[random.int(pieces.length)] as string
      return `${random.int(2) === 0 ? '' : 'a'}${times(piece)}${random.int(2) === 0 ? '' : '!'}`
    }
  }
}

/** Free-form values: deep, wide, or both. */
export function freeForm(random: Random, bytes: number): unknown {
  const depth = Math.min(Math.floor(bytes / 6), 4000)
  let value: unknown = 1
  switch (random.int(4)) {
    case 0:
      for (let n = 0; n < depth; n++) value = { a: value }
      return value
    case 1:
      for (let n = 0; n < depth; n++) value = [value]
      return value
    case 2:
      return Object.fromEntries(Array.from({ length: bytes / 14 }, (_, n) => [`key${n}`, n]))
    default:
      return { items: Array.from({ length: bytes / 16 }, (_, n) => ({ name: `n${n}` })) }
  }
}
