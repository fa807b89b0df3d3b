/**
 * The connection to another replica: a tunnel with mutual TLS. The other replica lists the clusters whose agents are
 * connected there, and receives requests for them.
 */
import type { Duplex } from 'node:stream'

import { onAbort } from '#lib/abort.ts'
import { sleep } from '#lib/clock.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { connectWebSocket } from '#lib/http/websocket.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import { Tunnel, TUNNEL_PROTOCOL } from '#lib/tunnel/tunnel.ts'

import type { ClusterLink } from '../links/link.ts'
import { tunnelLink } from '../links/tunnel-link.ts'
import { type ReplicaCertificates, replicaServerName } from './certificates.ts'
import { PEER_PATH, STREAMS } from './peer-protocol.ts'

export interface PeerOptions {
  readonly id: string
  /** Host and port. */
  readonly address: string
  /** PEM of the authority of all replicas. */
  readonly ca: string
  readonly certificates: () => ReplicaCertificates
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

const PING_MS = 3000
const SILENCE_MS = 8000
const MIN_WAIT_MS = 200
const MAX_WAIT_MS = 3000

export class Peer {
  readonly id: string
  readonly address: string
  readonly #options: PeerOptions
  readonly #clusters = new Set<string>()
  readonly #stop = new AbortController()
  readonly #ended: Promise<void>
  #tunnel: Tunnel | undefined
  #port: HttpClient | undefined

  constructor(options: PeerOptions) {
    this.id = options.id
    this.address = options.address
    this.#options = options
    this.#ended = this.#run(this.#stop.signal)
  }

  get isConnected(): boolean {
    return this.#tunnel !== undefined
  }

  /** Undefined: no agent of the cluster is connected there. */
  link(cluster: string): ClusterLink | undefined {
    const tunnel = this.#tunnel
    if (tunnel === undefined || !this.#clusters.has(cluster)) return undefined
    return tunnelLink(this.#options.clock, () => tunnel.dial(STREAMS.cluster, cluster))
  }

  /** Whether this cluster or machine has its agent there. */
  has(key: string): boolean {
    return this.#clusters.has(key)
  }

  /** A stream to an address of an agent there; undefined while there is no connection. */
  dial(address: string): Duplex | undefined {
    return this.#tunnel?.dial(STREAMS.cluster, address)
  }

  /** For requests to the port of the other replica; undefined while there is no connection. */
  get port(): HttpClient | undefined {
    return this.#port
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#ended
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, random, log, id, address } = this.#options
    let failures = 0
    while (!signal.aborted) {
      try {
        const tunnel = await this.#connect(signal)
        failures = 0
        log.info('Connected to another replica', { replica: id, address })
        await this.#serve(tunnel, signal)
      } catch (error) {
        if (signal.aborted) return
        log.info('Failed to connect to another replica, or lost its connection', {
          replica: id,
          address,
          err: (error as Error).message,
        })
      }
      const limitMs = Math.min(MAX_WAIT_MS, MIN_WAIT_MS * 2 ** Math.min(failures++, 10))
      await sleep(clock, MIN_WAIT_MS + random.float() * (limitMs - MIN_WAIT_MS), signal).catch(() => undefined)
    }
  }

  async #connect(signal: AbortSignal): Promise<Tunnel> {
    const { clock, ca, certificates, id, address } = this.#options
    const { certificate, key } = certificates().client
    const connection = await connectWebSocket({
      clock,
      url: `wss://${address}${PEER_PATH}`,
      protocols: [TUNNEL_PROTOCOL],
      tls: { ca, certificate, key, serverName: replicaServerName(id) },
      signal,
      pingIntervalMs: PING_MS,
      silenceLimitMs: SILENCE_MS,
    })
    return new Tunnel(connection, { clock, side: 'agent' })
  }

  async #serve(tunnel: Tunnel, signal: AbortSignal): Promise<void> {
    const release = onAbort(signal, () => void tunnel.close())
    const serving = tunnel.serve()
    this.#tunnel = tunnel
    this.#port = createHttpClient({
      clock: this.#options.clock,
      http1Only: true,
      connect: () => Promise.resolve(tunnel.dial(STREAMS.port, '')),
    })
    // The tunnel reports how it ended.
    this.#follow(tunnel.dial(STREAMS.clusters, '')).catch(() => undefined)
    try {
      await serving
    } finally {
      release()
      this.#forget()
    }
  }

  async #follow(stream: Duplex): Promise<void> {
    let text = ''
    for await (const piece of stream as AsyncIterable<Buffer>) {
      text += piece.toString('latin1')
      const lines = text.split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) this.#learn(line)
    }
  }

  #learn(line: string): void {
    const cluster = line.slice(1)
    if (line.startsWith('+')) this.#clusters.add(cluster)
    else this.#clusters.delete(cluster)
  }

  #forget(): void {
    this.#tunnel = undefined
    this.#port?.close()
    this.#port = undefined
    this.#clusters.clear()
  }
}
