/** The CEL functions to which macros with two variables expand; they add entries to a map. */
import { defineLibrary, free, type Library } from '../library.ts'
import { mapOf, parameter } from '../type.ts'
import { Failure, type MapValue, type Result, type Value } from '../value.ts'
import type { EntryMap } from '../values/map.ts'
import { GrowingMap } from '../values/map.ts'
import { showValue } from '../values/show.ts'

const K = parameter('K')
const V = parameter('V')
const MAP = mapOf(K, V)

/** The map that grows is changed; any other is copied. */
function insert(map: MapValue, key: Value, value: Value): Result {
  if (map.get(key) !== undefined) return new Failure(`insert failed: key ${showValue(key)} already exists`)
  const grown = map instanceof GrowingMap ? map : copyOf(map)
  grown.set(key, value)
  return grown
}

function copyOf(map: MapValue): EntryMap {
  const copy = new GrowingMap()
  for (const key of map.keys()) copy.set(key, (map.get(key) ?? null) as Value)
  return copy
}

function insertAll(map: MapValue, entries: MapValue): Result {
  let grown: Result = map
  for (const key of entries.keys()) {
    grown = insert(grown as MapValue, key, (entries.get(key) ?? null) as Value)
    if (grown instanceof Failure) return grown
  }
  return grown
}

export const comprehensions: Library = defineLibrary('cel.lib.ext.comprev2', {
  'cel.@mapInsert': [
    free('@mapInsert_map_key_value', [MAP, K, V], MAP, { evaluate: insert }),
    free('@mapInsert_map_map', [MAP, MAP], MAP, { evaluate: insertAll }),
  ],
})
