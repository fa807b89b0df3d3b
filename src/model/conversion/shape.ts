/**
 * Compares the schemas of two versions. A conversion rule must list every difference; without differences, changing
 * apiVersion is enough.
 */
import type { AnySchema, FieldSchema, Schema, StructSchema } from '#meta/schema.ts'

export interface Comparison {
  /**
   * Paths of fields that only one side has, that differ in type, or that distinguish zero from absent on one side only:
   * `spec.metrics`, `spec.versions[].schema`. Sorted.
   */
  readonly differences: readonly string[]
  /** True if a canonical object of one is a canonical object of the other. */
  readonly sameLayout: boolean
}

interface Walk {
  readonly differences: Set<string>
  sameLayout: boolean
  /** Visited pairs of structs, because types may be recursive. */
  readonly met: Map<StructSchema, Set<StructSchema>>
}

const known = new WeakMap<StructSchema, WeakMap<StructSchema, Comparison>>()

/** Compares two structs, once for each pair. */
export function compareShapes(a: StructSchema, b: StructSchema): Comparison {
  let others = known.get(a)
  if (others === undefined) known.set(a, (others = new WeakMap()))
  let comparison = others.get(b)
  if (comparison === undefined) others.set(b, (comparison = compare(a, b)))
  return comparison
}

function compare(a: StructSchema, b: StructSchema): Comparison {
  const walk: Walk = { differences: new Set(), sameLayout: true, met: new Map() }
  visitStruct(walk, a, b, '')
  const differences = [...walk.differences].sort()
  return { differences, sameLayout: walk.sameLayout && differences.length === 0 }
}

function visit(walk: Walk, a: Schema, b: Schema, path: string): void {
  if (a === b) return
  if (a.type === 'struct' && b.type === 'struct') visitStruct(walk, a, b, path)
  else if (a.type === 'list' && b.type === 'list') visit(walk, a.items, b.items, `${path}[]`)
  else if (a.type === 'map' && b.type === 'map') visit(walk, a.values, b.values, `${path}.*`)
  else if (a.type === 'any' && b.type === 'any') visitAny(walk, a, b, path)
  else if (a.type !== b.type) walk.differences.add(path)
}

function visitAny(walk: Walk, { alternatives: a }: AnySchema, { alternatives: b }: AnySchema, path: string): void {
  if (a !== undefined && b !== undefined) visitStruct(walk, a, b, path)
  else if (a !== b) walk.differences.add(path)
}

function visitStruct(walk: Walk, a: StructSchema, b: StructSchema, path: string): void {
  if (a === b || walk.met.get(a)?.has(b)) return
  walk.met.set(a, (walk.met.get(a) ?? new Set()).add(b))
  const names = [...a.fields.keys()]
  if (names.join() !== [...b.fields.keys()].join()) walk.sameLayout = false
  for (const name of new Set([...names, ...b.fields.keys()])) {
    visitField(walk, a.fields.get(name), b.fields.get(name), path === '' ? name : `${path}.${name}`)
  }
}

function visitField(walk: Walk, a: FieldSchema | undefined, b: FieldSchema | undefined, path: string): void {
  if (a === undefined || b === undefined || a.pointer !== b.pointer) {
    walk.differences.add(path)
    return
  }
  if (a.omitEmpty !== b.omitEmpty) walk.sameLayout = false
  visit(walk, a.schema, b.schema, path)
}
