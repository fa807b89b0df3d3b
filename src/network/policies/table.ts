/**
 * Desired state of an nftables table: sets, maps and chains by name, with the changes since the last `take`. Rules are
 * data, so that tests can evaluate packets.
 */
import type { Cidr } from '#lib/net/cidr.ts'

import type { Family } from './pod-facts.ts'
import type { PortRange, Protocol } from './policy.ts'

type Side = 'source' | 'destination'

export type Match =
  /** An address in a set. */
  | { readonly is: 'member'; readonly family: Family; readonly side: Side; readonly set: string }
  /** An address in a block and in none of the exceptions. */
  | { readonly is: 'block'; readonly side: Side; readonly block: Cidr; readonly except: readonly Cidr[] }
  /** A port of the protocol; without ranges any. */
  | { readonly is: 'ports'; readonly protocol: Protocol; readonly ranges: readonly PortRange[] }
  /** Destination address, protocol and port in a set. */
  | { readonly is: 'named'; readonly family: Family; readonly set: string }
  /** Source and destination in a set. */
  | { readonly is: 'pair'; readonly family: Family; readonly set: string }
  /** Of an accepted connection, or related to one. */
  | { readonly is: 'established' }
  /** IPv6 neighbour discovery; ARP of IPv4 does not pass here. */
  | { readonly is: 'neighbours' }
  /** An IPv6 router advertisement. */
  | { readonly is: 'router' }

export type Verdict =
  | { readonly do: 'accept' | 'drop' }
  | { readonly do: 'jump' | 'goto'; readonly chain: string }
  /** The map's verdict for the address; the next rule if there is none. */
  | { readonly do: 'look up'; readonly family: Family; readonly side: Side; readonly map: string }

export interface Rule {
  readonly matches: readonly Match[]
  readonly verdict: Verdict
}

/** The type of a set's elements. */
export type SetType = 'address' | 'pair' | 'named' | 'blocks' | 'verdicts'

export interface SetState {
  readonly family: Family
  readonly type: SetType
  /** The map values in nft syntax; empty in sets. */
  readonly elements: Map<string, string>
}

export interface ChainState {
  readonly rules: readonly Rule[]
  /** The priority of a base chain. */
  readonly priority?: number
  readonly comment?: string
}

/** The changes since the last `take`: undefined means absent. */
export interface TableChanges {
  /** Created or deleted sets. */
  readonly sets: ReadonlyMap<string, SetState | undefined>
  /** By set: elements with their previous values. */
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

  /** The name must not be reused before `take`. */
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

  /** Returns the changes and resets them. */
  take(): TableChanges {
    const taken = { sets: this.#touchedSets, elements: this.#touchedElements, chains: this.#touchedChains }
    this.#touchedSets = new Map()
    this.#touchedElements = new Map()
    this.#touchedChains = new Map()
    return taken
  }

  #setOf(name: string): SetState {
    const found = this.sets.get(name)
    if (found === undefined) throw new Error(`Set "${name}" does not exist`)
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

/** JSON cannot encode BigInt. */
function exact(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}` : value
}
