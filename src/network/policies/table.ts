/**
 * A table of nftables as it should be: sets, maps and chains by name, with what has been touched since somebody last asked. From it come
 * the script that writes all of it and the one that writes the difference, each one transaction. Rules are data, so that tests
 * can follow a packet through them.
 */
import type { Cidr } from '#lib/cidr.ts'

import type { Family } from './pod-facts.ts'
import type { PortRange, Protocol } from './policy.ts'

type Side = 'source' | 'destination'

export type Match =
  /** An address in a set. */
  | { readonly is: 'member'; readonly family: Family; readonly side: Side; readonly set: string }
  /** An address in one block and in none of others. */
  | { readonly is: 'block'; readonly side: Side; readonly block: Cidr; readonly except: readonly Cidr[] }
  /** A port of the protocol; of no ranges: any. */
  | { readonly is: 'ports'; readonly protocol: Protocol; readonly ranges: readonly PortRange[] }
  /** Where the packet goes, with protocol and port, in a set. */
  | { readonly is: 'named'; readonly family: Family; readonly set: string }
  /** From whom and to whom at once. */
  | { readonly is: 'pair'; readonly family: Family; readonly set: string }
  /** Of a connection that was let through, or part of one. */
  | { readonly is: 'established' }
  /** How neighbours of IPv6 find each other: the ARP of IPv4, which is no IP and never comes here. */
  | { readonly is: 'neighbours' }
  /** Of one who says to be a router of IPv6. */
  | { readonly is: 'router' }

export type Verdict =
  | { readonly do: 'accept' | 'drop' }
  | { readonly do: 'jump' | 'goto'; readonly chain: string }
  /** What the map says of the address; the next rule when it says nothing. */
  | { readonly do: 'look up'; readonly family: Family; readonly side: Side; readonly map: string }

export interface Rule {
  readonly matches: readonly Match[]
  readonly verdict: Verdict
}

/** What elements of a set are. */
export type SetType = 'address' | 'pair' | 'named' | 'blocks' | 'verdicts'

export interface SetState {
  readonly family: Family
  readonly type: SetType
  /** What a map has for each, as nft says it; empty in sets. */
  readonly elements: Map<string, string>
}

export interface ChainState {
  readonly rules: readonly Rule[]
  /** Packets that are forwarded come here by themselves, in the order of this number. */
  readonly priority?: number
  readonly comment?: string
}

/** What differs from when it was last asked: undefined stands for what was not, or is not, there. */
export interface Touched {
  /** Sets that were made or have gone since. */
  readonly sets: ReadonlyMap<string, SetState | undefined>
  /** By set: elements with what they had. */
  readonly elements: ReadonlyMap<string, ReadonlyMap<string, string | undefined>>
  readonly chains: ReadonlyMap<string, ChainState | undefined>
}

export class Table {
  readonly sets: Map<string, SetState> = new Map()
  readonly chains: Map<string, ChainState> = new Map()
  #touchedSets = new Map<string, SetState | undefined>()
  #touchedElements = new Map<string, Map<string, string | undefined>>()
  #touchedChains = new Map<string, ChainState | undefined>()

  addSet(name: string, family: Family, type: SetType): void {
    this.#touchSet(name)
    this.sets.set(name, { family, type, elements: new Map() })
  }

  /** It must not come back before `take`. */
  removeSet(name: string): void {
    this.#touchSet(name)
    this.sets.delete(name)
  }

  /** `value` is for maps. */
  addElement(set: string, element: string, value = ''): void {
    const { elements } = this.#setOf(set)
    if (elements.get(element) === value) return
    this.#touchElement(set, element, elements.get(element))
    elements.set(element, value)
  }

  removeElement(set: string, element: string): void {
    const { elements } = this.#setOf(set)
    if (!elements.has(element)) return
    this.#touchElement(set, element, elements.get(element))
    elements.delete(element)
  }

  setChain(name: string, chain: ChainState): void {
    const found = this.chains.get(name)
    if (found !== undefined && JSON.stringify(found, exact) === JSON.stringify(chain, exact)) return
    this.#touchChain(name)
    this.chains.set(name, chain)
  }

  removeChain(name: string): void {
    if (!this.chains.has(name)) return
    this.#touchChain(name)
    this.chains.delete(name)
  }

  /** Once: what is told is not told again. */
  take(): Touched {
    const taken = { sets: this.#touchedSets, elements: this.#touchedElements, chains: this.#touchedChains }
    this.#touchedSets = new Map()
    this.#touchedElements = new Map()
    this.#touchedChains = new Map()
    return taken
  }

  #setOf(name: string): SetState {
    const found = this.sets.get(name)
    if (found === undefined) throw new Error(`There is no set "${name}"`)
    return found
  }

  #touchSet(name: string): void {
    if (!this.#touchedSets.has(name)) this.#touchedSets.set(name, this.sets.get(name))
  }

  #touchElement(set: string, element: string, value: string | undefined): void {
    let found = this.#touchedElements.get(set)
    if (found === undefined) this.#touchedElements.set(set, (found = new Map()))
    if (!found.has(element)) found.set(element, value)
  }

  #touchChain(name: string): void {
    if (!this.#touchedChains.has(name)) this.#touchedChains.set(name, this.chains.get(name))
  }
}

/** Blocks have numbers that JSON has no form for. */
function exact(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}` : value
}
