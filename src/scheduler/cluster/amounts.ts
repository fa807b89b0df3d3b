/** Computes with resource amounts of nodes and pods in whole numbers: milli-CPU, bytes, counts. */
import { parseQuantity, type Quantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'

export interface Amounts {
  cpu: number
  memory: number
  storage: number
  /** Other resources by name; zero amounts are absent. */
  others: Map<string, number> | undefined
}

export function noAmounts(): Amounts {
  return { cpu: 0, memory: 0, storage: 0, others: undefined }
}

export function copyAmounts({ cpu, memory, storage, others }: Amounts): Amounts {
  return { cpu, memory, storage, others: others && new Map(others) }
}

/** `sign` is 1 or -1. */
export function addAmounts(sum: Amounts, more: Amounts, sign: number): void {
  sum.cpu += sign * more.cpu
  sum.memory += sign * more.memory
  sum.storage += sign * more.storage
  if (more.others === undefined) return
  sum.others ??= new Map()
  for (const [name, amount] of more.others) sum.others.set(name, (sum.others.get(name) ?? 0) + sign * amount)
}

export function amountsOfList(list: Readonly<Record<string, string>> | undefined): Amounts {
  return amountsFrom(Object.entries(list ?? {}).map(([name, text]) => [name, parseQuantity(text)]))
}

export function amountsFrom(entries: Iterable<readonly [name: string, amount: Quantity]>): Amounts {
  const amounts = noAmounts()
  for (const [name, amount] of entries) {
    if (name === 'cpu') amounts.cpu = quantityMilliValue(amount)
    else if (name === 'memory') amounts.memory = quantityValue(amount)
    else if (name === 'ephemeral-storage') amounts.storage = quantityValue(amount)
    else (amounts.others ??= new Map()).set(name, quantityValue(amount))
  }
  return amounts
}

/** The amount of one resource by its name. */
export function amountOf(amounts: Amounts, name: string): number {
  if (name === 'cpu') return amounts.cpu
  if (name === 'memory') return amounts.memory
  if (name === 'ephemeral-storage') return amounts.storage
  return amounts.others?.get(name) ?? 0
}
