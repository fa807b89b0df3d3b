/** Sorts rows and objects by a JSONPath (`--sort-by`). */
import { goQuote } from '#lib/go/text.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { compareUtf8 } from '#lib/json/write.ts'
import { compareQuantities, parseQuantity } from '#meta/quantity.ts'

import { compileJsonPath, relaxedPath } from '../jsonpath/jsonpath.ts'
import { goTypeName } from '../templates/go-value.ts'
import { PrintError } from './printer.ts'

/** The sorted objects. Throws if no object has the field or its values cannot be compared. */
export function sortObjects(objects: readonly JsonObject[], field: string): JsonObject[] {
  return sortBy(objects, (object) => object, relaxedPath(field))
}

/** Sorts any items with objects by a path in braces. The sort is stable; items without the field come first. */
export function sortBy<T>(all: readonly T[], objectOf: (one: T) => JsonObject | null, path: string): T[] {
  const compiled = compileJsonPath(path)
  const keyed = all.map((one) => ({ one, key: compiled.find(objectOf(one))[0] ?? [] }))
  if (all.length > 0 && keyed.every(({ key }) => key.length === 0)) {
    throw new PrintError(`couldn't find any field with path ${goQuote(path)} in the list of objects`)
  }
  const order = (left: readonly unknown[], right: readonly unknown[]): number => {
    if (left.length === 0 || right.length === 0) return left.length - right.length
    return isLess(left[0], right[0]) ? -1 : Number(isLess(right[0], left[0]))
  }
  return keyed.sort((left, right) => order(left.key, right.key)).map(({ one }) => one)
}

function isLess(left: unknown, right: unknown): boolean {
  if (left === null || right === null) return left === null && right !== null
  const type = goTypeName(left)
  if (!/^(?:string|int64|float64)$/.test(type)) throw new PrintError(`unsortable type: ${type}`)
  if (type !== goTypeName(right)) throw new PrintError('unsortable interface: interface')
  if (type !== 'string') return (left as number) < (right as number)
  return isLessText(left as string, right as string)
}

function isLessText(left: string, right: string): boolean {
  const [one, other] = [quantityOf(left), quantityOf(right)]
  return one === undefined || other === undefined ? compareUtf8(left, right) < 0 : compareQuantities(one, other) < 0
}

function quantityOf(text: string): ReturnType<typeof parseQuantity> | undefined {
  try {
    return parseQuantity(text)
  } catch {
    return undefined
  }
}
