/**
 * The text form of types in the generated tables. Equal types are equal strings, so that they share one schema:
 *
 *     s            a scalar, by its letter; s=v1.PodPhase when Go has a name for it
 *     a=v1.JSON    any JSON value, with its Go type
 *     @PodSpec     a struct of the same table; @core.v1/PodSpec one of another
 *     ?Name        one of the alternatives that the fields of struct Name are
 *     []s  {}s     list, map of string to …; [v1.Name]s and {v1.Name}s when Go has a name for it
 *     ()s          list that protobuf wraps in a message; (v1.Verbs)s likewise with a name
 */
import type { ScalarSchema, ScalarType, Schema, StructSchema } from '#meta/schema.ts'

/** Scalars by letter: the type, and what Go calls it. */
export const SCALAR_LETTERS: Readonly<Record<string, readonly [type: ScalarType, goType: string]>> = {
  s: ['string', 'string'],
  b: ['boolean', 'bool'],
  i: ['int32', 'int32'],
  l: ['int64', 'int64'],
  d: ['float64', 'float64'],
  y: ['bytes', '[]uint8'],
  q: ['quantity', 'resource.Quantity'],
  t: ['time', 'v1.Time'],
  m: ['microtime', 'v1.MicroTime'],
  u: ['duration', 'v1.Duration'],
  x: ['int-or-string', 'intstr.IntOrString'],
}

/** What a type is made of, as its table resolves it. */
export interface Resolver {
  struct(ref: string): StructSchema
  part(text: string): Schema
}

/** The schema a text stands for. Throws on what the generator cannot have written. */
export function parseType(text: string, resolve: Resolver): Schema {
  const rest = text.slice(1)
  switch (text[0]) {
    case '@':
      return resolve.struct(rest)
    case '?': {
      const alternatives = resolve.struct(rest)
      return { type: 'any', goType: alternatives.goType, alternatives }
    }
    case 'a':
      return { type: 'any', goType: rest.slice(1) }
    case '{': {
      const [goType, values] = splitAfter(text, '}')
      return { type: 'map', values: resolve.part(values), ...(goType !== '' && { goType }) }
    }
    case '[':
    case '(': {
      const [goType, items] = splitAfter(text, text[0] === '[' ? ']' : ')')
      return { type: 'list', items: resolve.part(items), pointerItems: false, ...(goType !== '' && { goType }) }
    }
    default:
      return parseScalar(text)
  }
}

/** `{v1.ResourceList}q` → the name in the brackets, and the type after them. */
function splitAfter(text: string, closing: string): [goType: string, part: string] {
  const end = text.indexOf(closing)
  return [text.slice(1, end), text.slice(end + 1)]
}

function parseScalar(text: string): ScalarSchema {
  const scalar = SCALAR_LETTERS[text[0] ?? '']
  if (scalar === undefined) throw new Error(`Unknown type "${text}" in a schema table`)
  return { type: scalar[0], goType: text.length > 2 ? text.slice(2) : scalar[1] }
}
