/**
 * Checks whether the kernel's table is intact, by the number of rules in each chain and of elements in each set. Pure.
 */
import type { NftObject } from '#lib/net/nft.ts'

import type { Table } from './table.ts'

/** `listed` is nft's output; undefined if the table does not exist. */
export function isIntact(
  listed: readonly NftObject[] | undefined,
  { sets, chains }: Pick<Table, 'sets' | 'chains'>,
): boolean {
  if (listed === undefined) return false
  const rules = new Map<string, number>()
  const found = new Map<string, number>()
  for (const object of listed) {
    const { chain, rule, set = object.map } = object as ListedObject
    if (chain !== undefined) rules.set(chain.name, rules.get(chain.name) ?? 0)
    if (rule !== undefined) rules.set(rule.chain, (rules.get(rule.chain) ?? 0) + 1)
    if (set !== undefined) found.set((set as ListedSet).name, (set as ListedSet).elem?.length ?? 0)
  }
  return (
    rules.size === chains.size &&
    found.size === sets.size &&
    [...chains].every(([name, state]) => rules.get(name) === state.rules.length) &&
    [...sets].every(([name, { elements }]) => found.get(name) === elements.size)
  )
}

interface ListedSet {
  readonly name: string
  readonly elem?: readonly unknown[]
}

interface ListedObject {
  readonly chain?: { readonly name: string }
  readonly rule?: { readonly chain: string }
  readonly set?: ListedSet
}
