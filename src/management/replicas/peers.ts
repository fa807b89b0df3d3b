/** Keeps a connection to each other live replica of the management server. */
import type { Duplex } from 'node:stream'

import type { Clock } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'

import type { ClusterLink } from '../links/link.ts'
import type { ReplicaCertificates } from './certificates.ts'
import { Peer } from './peer.ts'

export interface PeersOptions {
  readonly ca: string
  readonly certificates: () => ReplicaCertificates
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export class Peers {
  readonly #options: PeersOptions
  readonly #peers = new Map<string, Peer>()
  #isClosed = false

  constructor(options: PeersOptions) {
    this.#options = options
  }

  /** Connects to replicas that are new, and leaves those that are gone. Addresses by id. */
  follow(alive: ReadonlyMap<string, string>): void {
    if (this.#isClosed) return
    for (const [id, peer] of this.#peers) if (alive.get(id) !== peer.address) this.#leave(peer)
    for (const [id, address] of alive)
      if (!this.#peers.has(id)) this.#peers.set(id, new Peer({ ...this.#options, id, address }))
  }

  /** The link to a cluster through the replica that has its agent, if it is `preferred` through that one. */
  link(cluster: string, preferred: string | undefined): ClusterLink | undefined {
    const first = preferred === undefined ? undefined : this.#peers.get(preferred)?.link(cluster)
    if (first !== undefined) return first
    for (const peer of this.#peers.values()) {
      const link = peer.link(cluster)
      if (link !== undefined) return link
    }
    return undefined
  }

  /** Whether another replica has the agent of this cluster or machine. */
  has(key: string): boolean {
    return this.#holder(key) !== undefined
  }

  /** A stream to an address of the agent of this cluster or machine; undefined if no other replica has the agent. */
  dial(key: string, address: string): Duplex | undefined {
    return this.#holder(key)?.dial(address)
  }

  /** Undefined without a connection to that replica. */
  port(id: string): HttpClient | undefined {
    return this.#peers.get(id)?.port
  }

  /** How many of the others there are, and to how many there is a connection. */
  get counts(): { readonly known: number; readonly connected: number } {
    const all = [...this.#peers.values()]
    return { known: all.length, connected: all.filter(({ isConnected }) => isConnected).length }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#peers.values()].map((peer) => peer.close()))
  }

  #holder(key: string): Peer | undefined {
    return [...this.#peers.values()].find((peer) => peer.has(key))
  }

  #leave(peer: Peer): void {
    this.#peers.delete(peer.id)
    void peer.close()
  }
}
