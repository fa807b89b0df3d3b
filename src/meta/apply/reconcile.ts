/**
 * Ownership written under an older schema: where a map or list has since become atomic, whoever owned parts of it owns
 * the whole now, since its parts cannot be owned any more. The other way round nothing needs to be done.
 */
import { atomOf, isDeduced, typeBelow, type Typed } from './atom.ts'
import type { FieldSet } from './field-set.ts'
import type { PathElement } from './path-element.ts'

/** `set` itself when the type has nothing to object to. */
export function reconcileFields(type: Typed, set: FieldSet): FieldSet {
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

/** A map or list that is owned as one. Paths below a scalar are left alone, as upstream leaves them. */
function isWhole(type: Typed): boolean {
  const { type: name } = type.schema
  const hasParts = name === 'struct' || name === 'map' || name === 'list' || name === 'any'
  return hasParts && atomOf(type, {}) === 'leaf'
}
