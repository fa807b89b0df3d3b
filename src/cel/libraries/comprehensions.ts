/** What the macros with two variables need: growing a map by entries that must be new. */
import { defineLibrary, free, type Library } from '../library.ts'
import { mapOf, parameter } from '../type.ts'

const K = parameter('K')
const V = parameter('V')
const MAP = mapOf(K, V)

export const comprehensions: Library = defineLibrary('cel.lib.ext.comprev2', {
  'cel.@mapInsert': [free('@mapInsert_map_key_value', [MAP, K, V], MAP), free('@mapInsert_map_map', [MAP, MAP], MAP)],
})
