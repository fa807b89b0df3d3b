/** Tracks the connections of a server: peer, number of requests, and closing. */
import type { X509Certificate } from 'node:crypto'
import type { Http2Session, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

import { InsertionSet } from '../collections/insertion-set.ts'
import type { Peer } from './exchange.ts'
import type { PeerChains } from './peer-chains.ts'

/** An established connection, after its TLS handshake. */
export interface Connection {
  readonly peer: Peer
  readonly socket: Socket
  /** Present for HTTP/2. */
  session?: Http2Session
  /** Exchanges that are not complete. */
  active: number
  /** Streams the client reset before they were answered, those forgiven meanwhile aside; and when the last one was. */
  resets: number
  resetMs: number
  /** Streams the client opened in this turn of the event loop. */
  openedNow: number
  /** Open streams of HTTP/2. */
  readonly streams: InsertionSet<ServerHttp2Stream>
}

export function createConnection(socket: Socket, chains: PeerChains): Connection {
  return {
    peer: createPeer(socket, chains),
    socket,
    active: 0,
    resets: 0,
    resetMs: 0,
    openedNow: 0,
    streams: new InsertionSet(),
  }
}

function createPeer(socket: Socket, chains: PeerChains): Peer {
  const tls = socket instanceof TLSSocket ? socket : undefined
  const isTrusted = tls !== undefined && chains.admit(tls)
  let certificate: X509Certificate | undefined
  let isRead = false
  return {
    // Kept, because a socket forgets them when it closes.
    address: plainAddress(socket.remoteAddress ?? ''),
    port: socket.remotePort ?? 0,
    isEncrypted: tls !== undefined,
    serverName: typeof tls?.servername === 'string' ? tls.servername : undefined,
    isTrusted,
    get certificate() {
      if (!isRead) {
        certificate = tls?.getPeerX509Certificate()
        isRead = true
      }
      return certificate
    },
    chain: () => (tls === undefined ? [] : chains.read(tls)),
  }
}

/** IPv4 clients of a socket that listens on `::` look like IPv6 ones. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

export interface AdmissionLimits {
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
}

/** Counts raw sockets before anything is spent on them, TLS handshakes above all. */
export class Admission {
  readonly #limits: AdmissionLimits
  readonly #sockets = new Set<Socket>()
  readonly #perAddress = new Map<string, number>()
  readonly #onEmpty: (() => void)[] = []

  constructor(limits: AdmissionLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#sockets.size
  }

  /** False when the socket is one too many; it has been destroyed. */
  admit(socket: Socket): boolean {
    // A socket that breaks at any time says so by 'close'; the reason is of no interest.
    socket.on('error', () => undefined)
    const address = socket.remoteAddress ?? ''
    const fromThere = this.#perAddress.get(address) ?? 0
    // Clients of a unix socket have no address and count only in total.
    const isOverAddress = address !== '' && fromThere >= this.#limits.maxConnectionsPerAddress
    if (this.#sockets.size >= this.#limits.maxConnections || isOverAddress) {
      socket.destroy()
      return false
    }
    this.#sockets.add(socket)
    this.#perAddress.set(address, fromThere + 1)
    socket.on('close', () => this.#remove(socket, address))
    return true
  }

  /** Resolves when no socket is left. */
  emptied(): Promise<void> {
    if (this.#sockets.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onEmpty.push(resolve)
    })
  }

  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #remove(socket: Socket, address: string): void {
    this.#sockets.delete(socket)
    const left = (this.#perAddress.get(address) ?? 1) - 1
    if (left > 0) this.#perAddress.set(address, left)
    else this.#perAddress.delete(address)
    if (this.#sockets.size === 0) for (const task of this.#onEmpty.splice(0)) task()
  }
}
