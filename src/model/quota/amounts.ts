/** Adds, subtracts and compares amounts by resource. Arguments are never changed; every result is new. */
import { compareText } from '#lib/go/text.ts'
import {
  addQuantities,
  compareQuantities,
  isZeroQuantity,
  type Quantity,
  quantityOf,
  quantitySign,
  quantityText,
  subtractQuantities,
} from '#meta/quantity.ts'

import type { Amounts } from '../pod-resources.ts'

export function sameAmounts(a: Amounts, b: Amounts): boolean {
  if (a.size !== b.size) return false
  return [...a].every(([name, amount]) => {
    const other = b.get(name)
    return other !== undefined && compareQuantities(amount, other) === 0
  })
}

export function addAmounts(a: Amounts, b: Amounts): Map<string, Quantity> {
  const sum = new Map(a)
  for (const [name, amount] of b) {
    const known = sum.get(name)
    sum.set(name, known === undefined ? amount : addQuantities(known, amount))
  }
  return sum
}

/** The excess of `a` over `b`; zero if there is none. */
export function growth(a: Amounts, b: Amounts): Map<string, Quantity> {
  const grown = new Map<string, Quantity>()
  for (const name of new Set([...a.keys(), ...b.keys()])) {
    const now = a.get(name)
    const before = b.get(name)
    const difference = now === undefined || before === undefined ? now : subtractQuantities(now, before)
    grown.set(name, difference !== undefined && quantitySign(difference) > 0 ? difference : quantityOf(0))
  }
  return grown
}

export function onlyNamed(amounts: Amounts, names: ReadonlySet<string>): Map<string, Quantity> {
  return new Map([...amounts].filter(([name]) => names.has(name)))
}

export function withoutZeros(amounts: Amounts): Map<string, Quantity> {
  return new Map([...amounts].filter(([, amount]) => !isZeroQuantity(amount)))
}

/** The names of amounts above their limit. */
export function exceeding(amounts: Amounts, limits: Amounts): Set<string> {
  const over = [...limits].filter(([name, limit]) => {
    const amount = amounts.get(name)
    return amount !== undefined && compareQuantities(amount, limit) > 0
  })
  return new Set(over.map(([name]) => name))
}

export function negativeNames(amounts: Amounts): string[] {
  return [...amounts].filter(([, amount]) => quantitySign(amount) < 0).map(([name]) => name)
}

/** `cpu=1,memory=2Gi`, sorted. */
export function amountsText(amounts: Amounts): string {
  return [...amounts]
    .sort(([a], [b]) => compareText(a, b))
    .map(([name, amount]) => `${name}=${quantityText(amount)}`)
    .join(',')
}

export function namesText(names: Iterable<string>): string {
  return [...new Set(names)].sort(compareText).join(',')
}

/** In the form of a status, sorted. */
export function asResourceList(amounts: Amounts): Record<string, string> {
  const sorted = [...amounts].sort(([a], [b]) => compareText(a, b))
  return Object.fromEntries(sorted.map(([name, amount]) => [name, quantityText(amount)]))
}
