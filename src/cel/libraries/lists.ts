/** cel-go's list functions, version 3. */
import { defineLibrary, free, member, type Library } from '../library.ts'
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  STRING,
  TIMESTAMP,
  UINT,
  listOf,
  parameter,
  type CelType,
} from '../type.ts'

const LIST = listOf(parameter('T'))

const comparable: readonly (readonly [string, CelType])[] = [
  ['int', INT],
  ['uint', UINT],
  ['double', DOUBLE],
  ['bool', BOOL],
  ['google.protobuf.Duration', DURATION],
  ['google.protobuf.Timestamp', TIMESTAMP],
  ['string', STRING],
  ['bytes', BYTES],
]

export const lists: Library = defineLibrary('cel.lib.ext.lists', {
  slice: [member('list_slice', [LIST, INT, INT], LIST)],
  flatten: [member('list_flatten', [listOf(LIST)], LIST), member('list_flatten_int', [listOf(DYN), INT], listOf(DYN))],
  sort: comparable.map(([name, type]) => member(`list_${name}_sort`, [listOf(type)], listOf(type))),
  '@sortByAssociatedKeys': comparable.map(([name, type]) =>
    member(`list_${name}_sortByAssociatedKeys`, [LIST, listOf(type)], LIST),
  ),
  'lists.range': [free('lists_range', [INT], listOf(INT))],
  reverse: [member('list_reverse', [LIST], LIST)],
  distinct: [member('list_distinct', [LIST], LIST)],
})
