/** The CEL library that compares lists as sets: contains, equivalent, intersects. */
import { ONE, sizeAt } from '../cost/costs.ts'
import { addSpans, multiplySpans, scaleSpan } from '../cost/span.ts'
import { defineLibrary, free, type Library, type Overload } from '../library.ts'
import { BOOL, listOf, parameter } from '../type.ts'
import type { Failure } from '../value.ts'
import { type ListValue, type Result } from '../value.ts'
import { equal } from '../values/equality.ts'
import { sizeOf } from '../values/size.ts'

const LIST = listOf(parameter('T'))

function has(list: ListValue, value: Result): boolean {
  for (let at = 0; at < list.size; at++) if (equal(value, list.at(at)) === true) return true
  return false
}

function containsAll(list: ListValue, part: ListValue): boolean {
  for (let at = 0; at < part.size; at++) if (!has(list, part.at(at))) return false
  return true
}

function intersects(a: ListValue, b: ListValue): boolean {
  for (let at = 0; at < a.size; at++) if (has(b, a.at(at))) return true
  return false
}

/** Each element of one with each of the other, so many times over. */
const pairwise = (
  id: string,
  times: number,
  evaluate: (a: ListValue, b: ListValue) => boolean | Failure,
): Overload[] => [
  free(id, [LIST, LIST], BOOL, {
    evaluate,
    cost: (a, b) => 1 + sizeOf(a) * sizeOf(b) * times,
    estimate: (args) => ({
      cost: addSpans(scaleSpan(multiplySpans(sizeAt(args, 0), sizeAt(args, 1)), times), ONE),
    }),
  }),
]

export const sets: Library = defineLibrary('cel.lib.ext.sets', {
  'sets.contains': pairwise('list_sets_contains_list', 1, containsAll),
  'sets.equivalent': pairwise('list_sets_equivalent_list', 2, (a, b) => containsAll(a, b) && containsAll(b, a)),
  'sets.intersects': pairwise('list_sets_intersects_list', 1, intersects),
})
