/**
 * Maps the addresses of the node's pods to the chain of their policies. It fails closed: unknown addresses stay
 * isolated while a pod starts, and for a while after it is gone.
 */
import type { Element } from './groups.ts'
import { FAMILIES, type PodFacts } from './pod-facts.ts'
import { type Direction, DIRECTIONS } from './policy.ts'
import { entryChain, isolationChain, isolationRules, podMap, selfSet, startingSet } from './rules.ts'
import type { Table } from './table.ts'

/** By direction: the chains of the policies that select a pod, in order. */
export type SelectingPolicies = Readonly<Record<Direction, readonly string[]>>

/** The number of `age` calls before the address of a deleted pod is forgotten. */
const LEFT_AGES = 6

export class Isolation {
  readonly #table: Table
  /** Pods by address: the latest one counts. */
  readonly #holders = new Map<string, Map<string, PodFacts>>()
  readonly #selecting = new Map<string, SelectingPolicies>()
  /** The number of addresses that use a chain. */
  readonly #users = new Map<string, number>()
  /** The chain of an address, by map and address. */
  readonly #ledTo = new Map<string, string>()
  /** Addresses of deleted isolated pods: their containers may run for a moment longer. */
  readonly #left = new Map<string, { readonly map: string; readonly text: string; age: number }>()
  /** Isolated pods without a known address. */
  readonly #starting: Readonly<Record<Direction, Set<string>>> = { ingress: new Set(), egress: new Set() }
  #ranges: readonly Element[] = []

  constructor(table: Table) {
    this.#table = table
    for (const family of FAMILIES) {
      table.addSet(selfSet(family), family, 'pair')
      for (const direction of DIRECTIONS) {
        table.addSet(podMap(direction, family), family, 'verdicts')
        table.addSet(startingSet(direction, family), family, 'blocks')
      }
    }
    for (const direction of DIRECTIONS) table.setChain(direction, entryChain(direction))
  }

  /** Sets the pod ranges of the node. */
  setRanges(ranges: readonly Element[]): void {
    const gone = this.#ranges.filter(({ text }) => !ranges.some((range) => range.text === text))
    for (const direction of DIRECTIONS)
      for (const { family, text } of gone) this.#table.removeElement(startingSet(direction, family), text)
    this.#ranges = ranges
    for (const direction of DIRECTIONS) this.#block(direction)
  }

  /** Called for a new pod, and when its policies change. */
  lead(pod: PodFacts, selecting: SelectingPolicies): void {
    this.#selecting.set(pod.key, selecting)
    for (const direction of DIRECTIONS)
      this.#setStarting(direction, pod.key, pod.addresses.length === 0 && selecting[direction].length > 0)
    for (const address of pod.addresses) {
      const { family, text } = address
      const holders = this.#holders.get(text) ?? new Map<string, PodFacts>()
      if (!holders.has(pod.key)) holders.set(pod.key, pod)
      this.#holders.set(text, holders)
      this.#table.addElement(selfSet(family), `${text} . ${text}`)
      this.#leadAddress(address, holders)
    }
  }

  /** With the facts passed to `lead`. */
  release(pod: PodFacts): void {
    this.#selecting.delete(pod.key)
    for (const direction of DIRECTIONS) this.#setStarting(direction, pod.key, false)
    for (const address of pod.addresses) {
      const { family, text } = address
      const holders = this.#holders.get(text)
      holders?.delete(pod.key)
      this.#leadAddress(address, holders)
      if (holders !== undefined && holders.size > 0) continue
      this.#holders.delete(text)
      this.#table.removeElement(selfSet(family), `${text} . ${text}`)
    }
  }

  /** Called periodically. Returns whether anything changed. */
  age(): boolean {
    let isChanged = false
    for (const [at, left] of this.#left) {
      left.age++
      if (left.age < LEFT_AGES) continue
      this.#left.delete(at)
      this.#table.removeElement(left.map, left.text)
      isChanged = true
    }
    return isChanged
  }

  /** Removes unused chains. */
  sweep(): void {
    for (const [chain, users] of this.#users) {
      if (users > 0) continue
      this.#users.delete(chain)
      this.#table.removeChain(chain)
    }
  }

  #leadAddress(address: Element, holders: ReadonlyMap<string, PodFacts> | undefined): void {
    const holder = [...(holders?.keys() ?? [])].at(-1)
    const selecting = holder === undefined ? undefined : this.#selecting.get(holder)
    for (const direction of DIRECTIONS) this.#leadTo(direction, address, selecting?.[direction])
  }

  /** Empty: not isolated; undefined: no pod has the address. */
  #leadTo(direction: Direction, { family, text }: Element, policies: readonly string[] | undefined): void {
    const map = podMap(direction, family)
    const at = `${map} ${text}`
    const before = this.#ledTo.get(at)
    const chain = policies === undefined || policies.length === 0 ? undefined : isolationChain(direction, policies)
    if (chain !== undefined && chain !== before) {
      this.#users.set(chain, (this.#users.get(chain) ?? 0) + 1)
      this.#table.setChain(chain, { rules: isolationRules(policies ?? []) })
      this.#ledTo.set(at, chain)
    }
    if (policies !== undefined) {
      this.#left.delete(at)
      this.#table.addElement(map, text, chain === undefined ? 'accept' : `goto ${chain}`)
    } else if (before !== undefined) {
      this.#left.set(at, { map, text, age: 0 })
      this.#table.addElement(map, text, 'drop')
    } else if (!this.#left.has(at)) this.#table.removeElement(map, text)
    if (before === undefined || before === chain) return
    this.#users.set(before, (this.#users.get(before) ?? 0) - 1)
    if (chain === undefined) this.#ledTo.delete(at)
  }

  /**
   * A pod must never run without its policies, but its address is known only after it starts. While an isolated pod
   * starts, unassigned addresses of the node are blocked.
   */
  #setStarting(direction: Direction, key: string, isStarting: boolean): void {
    const starting = this.#starting[direction]
    if (starting.has(key) === isStarting) return
    if (isStarting) starting.add(key)
    else starting.delete(key)
    this.#block(direction)
  }

  #block(direction: Direction): void {
    for (const { family, text } of this.#ranges) {
      const set = startingSet(direction, family)
      if (this.#starting[direction].size > 0) this.#table.addElement(set, text)
      else this.#table.removeElement(set, text)
    }
  }
}
