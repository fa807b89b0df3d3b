/** Computes the sizes of CEL values for the cost model. */
import { byteLength } from '#lib/go/text.ts'

import { spendEffort } from '../effort.ts'
import { ListValue, MapValue, OpaqueValue, Optional, type Result } from '../value.ts'
import { textSize } from './text.ts'

/** Elements, code points or bytes; 1 for everything without a size, failures too. */
export function sizeOf(value: Result): number {
  if (typeof value === 'string') return textSize(value)
  if (typeof value !== 'object' || value === null) return 1
  if (value instanceof ListValue || value instanceof MapValue) return value.size
  if (value instanceof Uint8Array) return value.length
  if (value instanceof OpaqueValue) return value.size
  return value instanceof Optional && value.value !== undefined ? sizeOf(value.value) : 1
}

/** Tenths of the size, rounded up. */
export const tenth = (size: number): number => Math.ceil(size * 0.1)

/** Of looking at everything in a value. */
export function traversalCost(value: Result): number {
  if (typeof value === 'string') return Math.floor(byteLength(value) * 0.1)
  if (value instanceof Uint8Array) return Math.floor(value.length * 0.1)
  if (value instanceof ListValue) {
    spendEffort(value.size)
    let cost = 0
    for (let at = 0; at < value.size; at++) cost += traversalCost(value.at(at))
    return cost
  }
  if (!(value instanceof MapValue)) return 1
  let cost = 0
  for (const key of value.keys()) cost += traversalCost(key) + traversalCost(value.get(key) ?? null)
  return cost
}
