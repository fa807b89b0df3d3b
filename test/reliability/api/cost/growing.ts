/** Creates objects of a kind with one field grown to a given size. */
import { scanJson } from '#lib/json/scan.ts'
import type { Random } from '#lib/random.ts'

import {
  elementOf,
  type Field,
  type Filling,
  FILLINGS,
  freeForm,
  type Json,
  type Likeness,
  LIKENESSES,
  longText,
  variantOf,
} from './fields.ts'

export interface Growth {
  readonly field: Field
  readonly likeness: Likeness
  readonly filling: Filling
  /** Of the grown field as JSON, about. */
  readonly bytes: number
}

/** Sizes of a grown field: small ones matter for what is quadratic, large ones for what is merely slow. */
export const SIZES = [60_000, 250_000, 1_000_000, 2_900_000] as const

export function drawGrowth(random: Random, fields: readonly Field[]): Growth {
  const draw = <T>(values: readonly T[]): T => values[random.int(values.length)] as T
  return { field: draw(fields), likeness: draw(LIKENESSES), filling: draw(FILLINGS), bytes: draw(SIZES) }
}

/** The grown value; `sample` is what a valid object has there. */
export function grownValue(random: Random, { field, likeness, filling, bytes }: Growth, sample: unknown): unknown {
  const { schema } = field
  if (schema.type === 'list') {
    const like = Array.isArray(sample) ? (sample as unknown[])[0] : undefined
    return many(bytes, (n) => elementFor(schema.items, { likeness, filling, like, n }))
  }
  if (schema.type === 'map') {
    const like = typeof sample === 'object' && sample !== null ? Object.values(sample)[0] : undefined
    const pairs = many(bytes, (n) => [
      `${likeness === 'prefixed' ? 'a'.repeat(50) : 'k'}${n}`,
      elementFor(schema.values, { likeness, filling, like, n }),
    ])
    return Object.fromEntries(pairs as [string, unknown][])
  }
  return schema.type === 'any' ? freeForm(random, bytes) : longText(random, schema.type, bytes)
}

interface Element {
  readonly likeness: Likeness
  readonly filling: Filling
  readonly like: unknown
  readonly n: number
}

function elementFor(schema: Field['schema'], { likeness, filling, like, n }: Element): unknown {
  if (filling === 'empty' && schema.type === 'struct') return {}
  if (filling === 'sample' && like !== undefined && typeof like === 'object') return variantOf(like, likeness, n)
  return elementOf(schema, likeness, n)
}

/** As many as have the size together, and no more than the server reads as one document. */
function many(bytes: number, make: (n: number) => unknown): unknown[] {
  const each = JSON.stringify(make(100_000)).length + 1
  let count = Math.max(2, Math.floor(bytes / each))
  for (;;) {
    const items = Array.from({ length: count }, (_, n) => make(n))
    if (count < 1000 || isReadable(JSON.stringify(items))) return items
    count = Math.floor(count * 0.8)
  }
}

/** Below the weight limit of the server, with some room for the rest of the object. */
function isReadable(text: string): boolean {
  try {
    scanJson(text, { maxDepth: 10_000, maxLength: 3_000_000, maxWeight: 690_000 })
    return true
  } catch {
    return false
  }
}

/** A copy of `object` with `value` at the field; what is missing on the way is made. */
export function withField(object: Json, { path, schemas }: Field, value: (sample: unknown) => unknown): Json {
  const copy = structuredClone(object)
  let holder: unknown = copy
  const keys = path.map((name) => (name === '' ? 'a' : name))
  for (const [at, key] of keys.entries()) {
    const place = holder as Json
    if (at === keys.length - 1) {
      place[key] = value(place[key])
      break
    }
    place[key] ??= containerFor(schemas[at + 1])
    holder = place[key]
  }
  return copy
}

function containerFor(schema: Field['schema'] | undefined): unknown {
  if (schema?.type === 'list') return []
  return schema?.type === 'struct' ? elementOf(schema, 'repeated', 0, 2) : {}
}

/** Only what leads to the field: the body of a merge patch. */
export function onlyField({ path, schemas }: Field, value: unknown): Json {
  let inner = value
  for (let at = path.length - 1; at >= 0; at--) {
    const key = path[at] === '' ? 'a' : (path[at] as string)
    inner = schemas[at]?.type === 'list' ? [inner] : { [key]: inner }
  }
  return inner as Json
}

export function pointerTo({ path }: Field): string {
  return path.map((name) => `/${name === '' ? 'a' : name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
