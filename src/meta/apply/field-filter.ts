/**
 * The fields that a request can own. A write to the main resource never owns `status`; a write to a subresource owns
 * only some fields.
 */
import { combine, type FieldSet, recursiveDifference } from './field-set.ts'
import type { PathElement } from './path-element.ts'

/**
 * `exclude`: all but these and everything below. `include`: only these, everything below, and their ancestors; `*`
 * matches any element.
 */
export interface FieldFilter {
  readonly mode: 'exclude' | 'include'
  readonly fields: FieldSet
}

export function filterFields(set: FieldSet, filter: FieldFilter | undefined): FieldSet {
  if (filter === undefined) return set
  return filter.mode === 'exclude' ? recursiveDifference(set, filter.fields) : onlyIncluded(set, filter.fields)
}

const EVERY: PathElement = '*'

function onlyIncluded(set: FieldSet, fields: FieldSet): FieldSet {
  const leadsOn = (element: PathElement): FieldSet | undefined =>
    fields.children.get(EVERY) ?? fields.children.get(element)
  const isWhole = (element: PathElement): boolean => fields.members.has(EVERY) || fields.members.has(element)
  const members = new Set([...set.members].filter((element) => isWhole(element) || leadsOn(element) !== undefined))
  return combine(set, members, (element, child) => {
    const next = leadsOn(element)
    if (isWhole(element)) return child
    return next === undefined ? { members: new Set(), children: new Map() } : onlyIncluded(child, next)
  })
}
