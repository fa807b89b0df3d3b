/** What Kubernetes adds to lists: sums, extremes, positions. */
import { defineLibrary, member, type Library } from '../library.ts'
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  INT,
  STRING,
  TIMESTAMP,
  UINT,
  listOf,
  parameter,
  type CelType,
} from '../type.ts'

const A = parameter('A')

const summable: readonly (readonly [string, CelType])[] = [
  ['int', INT],
  ['uint', UINT],
  ['double', DOUBLE],
  ['duration', DURATION],
]

const comparable: readonly (readonly [string, CelType])[] = [
  ['int', INT],
  ['uint', UINT],
  ['double', DOUBLE],
  ['bool', BOOL],
  ['duration', DURATION],
  ['timestamp', TIMESTAMP],
  ['string', STRING],
  ['bytes', BYTES],
]

export const kubernetesLists: Library = defineLibrary('kubernetes.lists', {
  isSorted: comparable.map(([name, type]) => member(`list_${name}_is_sorted_bool`, [listOf(type)], BOOL)),
  sum: summable.map(([name, type]) => member(`list_${name}_sum_${name}`, [listOf(type)], type)),
  max: comparable.map(([name, type]) => member(`list_${name}_max_${name}`, [listOf(type)], type)),
  min: comparable.map(([name, type]) => member(`list_${name}_min_${name}`, [listOf(type)], type)),
  indexOf: [member('list_a_index_of_int', [listOf(A), A], INT)],
  lastIndexOf: [member('list_a_last_index_of_int', [listOf(A), A], INT)],
})
