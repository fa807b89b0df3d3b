/** Whether an applied configuration fits its schema, in the words of upstream's structured-merge-diff. */
import { goNumber, goQuote } from '#lib/go-text.ts'
import { atOnce, isDue, type Steps } from '#lib/slices.ts'

import { goTypeOf, printGo } from '../patch/json-map.ts'
import type { Schema } from '../schema.ts'
import { asList, asMap, atomOf, entryType, isOpen, ItemFault, itemElement, itemType, type Typed } from './atom.ts'
import { fieldElement, type PathElement, printPath } from './path-element.ts'

export interface ValidateOptions {
  /** Items of a set or keyed list may be there more than once: stored objects may have come that way. */
  readonly allowDuplicates?: boolean
}

/** Everything that keeps `value` from being a value of the type; empty: it fits. */
export function validateTyped(type: Typed, value: unknown, options: ValidateOptions = {}): string[] {
  return atOnce(validateInSteps(type, value, options))
}

/** The same, with turns for others. */
export function* validateInSteps(type: Typed, value: unknown, options: ValidateOptions = {}): Steps<string[]> {
  const faults: string[] = []
  const steps = validate(type, value, { path: [], faults, options })
  if (steps !== undefined) yield* steps
  return faults
}

/** Several faults as upstream prints them. */
export function faultsText(faults: readonly string[]): string {
  if (faults.length === 1) return faults[0] as string
  const lines = faults.slice(0, MAX_SHOWN_FAULTS).map((fault) => `  ${fault}`)
  if (faults.length > MAX_SHOWN_FAULTS) lines.push(`  and ${faults.length - MAX_SHOWN_FAULTS} more errors`)
  return `errors:\n${lines.join('\n')}`
}

/** Upstream shows all; a list of a hundred thousand equal values has as many faults. */
const MAX_SHOWN_FAULTS = 1000

interface Walk {
  readonly path: readonly PathElement[]
  readonly faults: string[]
  readonly options: ValidateOptions
}

/** The steps it takes; undefined when it has been done. */
function validate(type: Typed, value: unknown, walk: Walk): Steps<void> | undefined {
  if (value === null || value === undefined) return undefined
  switch (type.schema.type) {
    case 'struct':
    case 'map':
      return validateMap(type, value, walk)
    case 'list':
      return validateList(type, value, walk)
    case 'any':
      // The one untyped place of which OpenAPI says that it is an object.
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

function report({ path, faults }: Walk, text: string): void {
  faults.push(path.length === 0 ? text : `${printPath(path)}: ${text}`)
}

function below(walk: Walk, element: PathElement): Walk {
  return { ...walk, path: [...walk.path, element] }
}

function* validateMap(type: Typed, value: unknown, walk: Walk): Steps<void> {
  const map = asMap(value)
  if (map === undefined) return report(walk, `expected map, got ${describe(value)}`)
  const { schema } = type
  for (const name of Object.keys(map)) {
    if (isDue()) yield
    const next = below(walk, fieldElement(name))
    // Upstream looks no further in this map either.
    if (schema.type === 'struct' && !schema.fields.has(name) && !isOpen(schema))
      return report(next, 'field not declared in schema')
    const steps = validate(entryType(type, name), map[name], next)
    if (steps !== undefined) yield* steps
  }
}

function* validateList(type: Typed, value: unknown, walk: Walk): Steps<void> {
  const list = asList(value)
  if (list === undefined) return report(walk, `expected list, got ${describe(value)}`)
  if (atomOf(type, value) !== 'leaf') return yield* validateItems(type, list, walk)
  for (const [at, item] of list.entries()) {
    if (isDue()) yield
    const steps = validate(itemType(type), item, below(walk, `i:${at}`))
    if (steps !== undefined) yield* steps
  }
}

function* validateItems(type: Typed, list: readonly unknown[], walk: Walk): Steps<void> {
  const seen = new Set<PathElement>()
  for (const [at, item] of list.entries()) {
    if (isDue()) yield
    const found = elementOrFault(type, item)
    // An item that cannot be named ends the list: what follows could not be told from it.
    if (typeof found !== 'string') return report(walk, `element ${at}: ${found.message}`)
    if (seen.has(found) && walk.options.allowDuplicates !== true)
      report(walk, `duplicate entries for key ${printPath([found])}`)
    seen.add(found)
    const steps = validate(itemType(type), item, below(walk, found))
    if (steps !== undefined) yield* steps
  }
}

function elementOrFault(type: Typed, item: unknown): PathElement | ItemFault {
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

/** Upstream shows the value with Go's `%v`, wrapped in the type of its own that holds it. */
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
