/** Validates an applied configuration against its schema, with the texts of upstream's structured-merge-diff. */
import { goNumber, goQuote } from '#lib/go/text.ts'
import { runAtOnce, shouldYield, type Steps } from '#lib/time-slicing.ts'

import { goTypeOf, printGo } from '../patch/json-map.ts'
import type { Schema } from '../schema.ts'
import { asList, asMap, atomOf, entryType, isOpen, ItemFault, itemElement, itemType, type TypeRef } from './atom.ts'
import { fieldElement, type PathElement, printPath } from './path-element.ts'

export interface ValidateOptions {
  /** Accepts duplicate items of sets and keyed lists, which stored objects may have. */
  readonly allowDuplicates?: boolean
}

/** All errors of `value`; empty if it is valid. */
export function validateTyped(type: TypeRef, value: unknown, options: ValidateOptions = {}): string[] {
  return runAtOnce(validateInSteps(type, value, options))
}

/** The same, yielding to the event loop. */
export function* validateInSteps(type: TypeRef, value: unknown, options: ValidateOptions = {}): Steps<string[]> {
  const walk: Walk = { above: undefined, element: undefined, faults: [], options }
  const steps = validate(type, value, walk)
  if (steps !== undefined) yield* steps
  return walk.faults
}

/** Several errors in upstream's form. */
export function faultsText(faults: readonly string[]): string {
  if (faults.length === 1) return faults[0] as string
  const lines = faults.slice(0, MAX_SHOWN_FAULTS).map((fault) => `  ${fault}`)
  if (faults.length > MAX_SHOWN_FAULTS) lines.push(`  and ${faults.length - MAX_SHOWN_FAULTS} more errors`)
  return `errors:\n${lines.join('\n')}`
}

/** Upstream prints all errors, of which a list of a hundred thousand equal values has as many. */
const MAX_SHOWN_FAULTS = 1000

/** A position in the value. The path to it is made only for an error: most values have none. */
interface Walk {
  readonly above: Walk | undefined
  /** Undefined at the top. */
  readonly element: PathElement | undefined
  readonly faults: string[]
  readonly options: ValidateOptions
}

/** The remaining steps; undefined if it is done. */
function validate(type: TypeRef, value: unknown, walk: Walk): Steps<void> | undefined {
  if (value === null || value === undefined) return undefined
  switch (type.schema.type) {
    case 'struct':
    case 'map':
      return validateMap(type, value, walk)
    case 'list':
      return validateList(type, value, walk)
    case 'any':
      // The only untyped position that OpenAPI declares as an object.
      return type.schema.goType === 'v1.FieldsV1' ? validateMap(type, value, walk) : undefined
    case 'int-or-string':
      return undefined
    default: {
      const fault = scalarFault(type.schema, value)
      if (fault !== undefined) report(walk, fault)
      return undefined
    }
  }
}

function report(walk: Walk, text: string): void {
  const path: PathElement[] = []
  for (let at: Walk | undefined = walk; at?.element !== undefined; at = at.above) path.unshift(at.element)
  walk.faults.push(path.length === 0 ? text : `${printPath(path)}: ${text}`)
}

function below(above: Walk, element: PathElement): Walk {
  return { above, element, faults: above.faults, options: above.options }
}

function* validateMap(type: TypeRef, value: unknown, walk: Walk): Steps<void> {
  const map = asMap(value)
  if (map === undefined) return report(walk, `expected map, got ${describe(value)}`)
  const { schema } = type
  for (const name of Object.keys(map)) {
    if (shouldYield()) yield
    const next = below(walk, fieldElement(name))
    // Upstream stops in this map, too.
    if (schema.type === 'struct' && !schema.fields.has(name) && !isOpen(schema))
      return report(next, 'field not declared in schema')
    const steps = validate(entryType(type, name), map[name], next)
    if (steps !== undefined) yield* steps
  }
}

function* validateList(type: TypeRef, value: unknown, walk: Walk): Steps<void> {
  const list = asList(value)
  if (list === undefined) return report(walk, `expected list, got ${describe(value)}`)
  if (atomOf(type, value) !== 'leaf') return yield* validateItems(type, list, walk)
  for (const [at, item] of list.entries()) {
    if (shouldYield()) yield
    const steps = validate(itemType(type), item, below(walk, `i:${at}`))
    if (steps !== undefined) yield* steps
  }
}

function* validateItems(type: TypeRef, list: readonly unknown[], walk: Walk): Steps<void> {
  const seen = new Set<PathElement>()
  for (let at = 0; at < list.length; at++) {
    if (shouldYield()) yield
    const item = list[at]
    const found = elementOrFault(type, item)
    // An item without a path element ends the list, because later ones could not be distinguished.
    if (typeof found !== 'string') return report(walk, `element ${at}: ${found.message}`)
    if (seen.has(found) && walk.options.allowDuplicates !== true)
      report(walk, `duplicate entries for key ${printPath([found])}`)
    seen.add(found)
    const steps = validate(itemType(type), item, below(walk, found))
    if (steps !== undefined) yield* steps
  }
}

function elementOrFault(type: TypeRef, item: unknown): PathElement | ItemFault {
  try {
    return itemElement(type, item)
  } catch (error) {
    if (error instanceof ItemFault) return error
    throw error
  }
}

function scalarFault({ type }: Schema, value: unknown): string | undefined {
  switch (type) {
    case 'string':
    case 'bytes':
    case 'duration':
      return typeof value === 'string'
        ? undefined
        : `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got ${describe(value)}`
    case 'int32':
    case 'int64':
    case 'float64':
      return typeof value === 'number' || typeof value === 'bigint'
        ? undefined
        : `expected numeric (int or float), got ${goTypeOf(value)}`
    default:
      return typeof value === 'object' ? `expected any scalar, got ${describe(value)}` : undefined
  }
}

/** Upstream prints the value with Go's `%v`, inside its wrapper type. */
function describe(value: unknown): string {
  return `&{${printGo(value)}}`
}

/** Go's `%#v`. */
function goSyntax(value: unknown): string {
  if (value === null || value === undefined) return 'interface {}(nil)'
  if (typeof value === 'string') return goQuote(value)
  if (typeof value === 'number' || typeof value === 'bigint') return goNumber(value)
  if (value instanceof Uint8Array) {
    return `[]uint8{${Array.from(value, (byte) => `0x${byte.toString(16)}`).join(', ')}}`
  }
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`
  if (typeof value === 'boolean') return String(value)
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `map[string]interface {}{${entries.map(([key, part]) => `${goQuote(key)}:${goSyntax(part)}`).join(', ')}}`
}
