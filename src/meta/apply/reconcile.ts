/**
 * Adapts field ownership to a changed schema. If a map or list has become atomic, managers of a part now own all of it.
 */
import { atomOf, isDeduced, typeBelow, type TypeRef } from './atom.ts'
import type { FieldSet } from './field-set.ts'
import type { PathElement } from './path-element.ts'

/** Returns `set` itself if the type matches. */
export function reconcileFields(type: TypeRef, set: FieldSet): FieldSet {
  const changes = new Map<PathElement, FieldSet | 'whole'>()
  for (const [element, child] of set.children) {
    const below = typeBelow(type, element)
    if (below === undefined || isDeduced(below.schema)) continue
    const next = isWhole(below) ? 'whole' : reconcileFields(below, child)
    if (next !== child) changes.set(element, next)
  }
  if (changes.size === 0) return set
  const members = new Set(set.members)
  const children = new Map(set.children)
  for (const [element, next] of changes) {
    if (next === 'whole') {
      members.add(element)
      children.delete(element)
    } else children.set(element, next)
  }
  return { members, children }
}

/** An atomic map or list. Paths below a scalar stay, as in upstream. */
function isWhole(type: TypeRef): boolean {
  const { type: name } = type.schema
  const hasParts = name === 'struct' || name === 'map' || name === 'list' || name === 'any'
  return hasParts && atomOf(type, {}) === 'leaf'
}
