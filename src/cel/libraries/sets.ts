/** Lists compared as sets. */
import { defineLibrary, free, type Library } from '../library.ts'
import { BOOL, listOf, parameter } from '../type.ts'

const LIST = listOf(parameter('T'))

export const sets: Library = defineLibrary('cel.lib.ext.sets', {
  'sets.contains': [free('list_sets_contains_list', [LIST, LIST], BOOL)],
  'sets.equivalent': [free('list_sets_equivalent_list', [LIST, LIST], BOOL)],
  'sets.intersects': [free('list_sets_intersects_list', [LIST, LIST], BOOL)],
})
