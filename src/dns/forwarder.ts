/**
 * Forwards queries to upstream servers. Concurrent equal queries share one request. A server that times out is tried
 * last for a while. Each query has a random source port, and only a response from the queried server with the same ID
 * and question counts.
 */
import { createSocket, type Socket } from 'node:dgram'
import { connect } from 'node:net'

import type { Clock, Timer } from '#lib/clock.ts'
import { type Random, shuffle } from '#lib/random.ts'

import { type CachedAnswer, isAnswerTo, toCachedAnswer, type UpstreamQuery, writeQuestion } from './forwarded-answer.ts'
import { type Message, RCODE, rcodeOf, readMessage, uint16 } from './wire.ts'

export interface Upstream {
  readonly address: string
  readonly port: number
}

export type Transport = 'udp' | 'tcp'

export interface ForwarderOptions {
  readonly clock: Clock
  readonly random: Random
  /** The timeouts for one server, and for all of them. */
  readonly attemptMs?: number
  readonly totalMs?: number
}

/** As CoreDNS' `forward`, with the usual `max_concurrent`. */
const ATTEMPT_MS = 2000
const TOTAL_MS = 5000
const MAX_CONCURRENT = 1000
/** How long a failed server is tried last. */
const SHUN_MS = 10_000

export class TooManyQuestions extends Error {}

export class Forwarder {
  readonly #options: ForwarderOptions
  readonly #shunned = new Map<string, number>()
  readonly #inFlight = new Map<string, Promise<CachedAnswer | undefined>>()
  readonly #closing = new AbortController()
  /** The number of timeouts. */
  failures = 0

  constructor(options: ForwarderOptions) {
    this.#options = options
  }

  get inFlight(): number {
    return this.#inFlight.size
  }

  close(): void {
    this.#closing.abort()
  }

  /** Undefined: no server answered. Throws TooManyQuestions. */
  ask(upstreamQuery: UpstreamQuery, servers: readonly Upstream[], via: Transport): Promise<CachedAnswer | undefined> {
    const key = `${via} ${servers.map(({ address, port }) => `${address}#${port}`).join()} ${keyOf(upstreamQuery)}`
    const waiting = this.#inFlight.get(key)
    if (waiting !== undefined) return waiting
    if (this.#inFlight.size >= MAX_CONCURRENT)
      throw new TooManyQuestions('Too many concurrent queries to upstream servers')
    const request = this.#askAll(upstreamQuery, servers, via).finally(() => this.#inFlight.delete(key))
    this.#inFlight.set(key, request)
    return request
  }

  async #askAll(
    upstreamQuery: UpstreamQuery,
    servers: readonly Upstream[],
    via: Transport,
  ): Promise<CachedAnswer | undefined> {
    const { clock, attemptMs = ATTEMPT_MS, totalMs = TOTAL_MS } = this.#options
    const until = clock.elapsed() + totalMs
    let last: CachedAnswer | undefined
    // Twice, because datagrams may get lost.
    const order = this.#ordered(servers)
    for (const server of [...order, ...order]) {
      const leftMs = Math.min(attemptMs, until - clock.elapsed())
      if (leftMs <= 0 || this.#closing.signal.aborted) break
      const answer = await this.#askOne(upstreamQuery, server, via, leftMs)
      if (answer === undefined) {
        this.failures++
        this.#shunned.set(nameOf(server), clock.elapsed() + SHUN_MS)
        continue
      }
      this.#shunned.delete(nameOf(server))
      last = toCachedAnswer(answer)
      // Another server may know.
      if (last.rcode !== RCODE.serverFailure && last.rcode !== RCODE.refused) return last
      if (server === order.at(-1)) return last
    }
    return last
  }

  #ordered(servers: readonly Upstream[]): Upstream[] {
    const { clock, random } = this.#options
    const isShunned = (server: Upstream): boolean => (this.#shunned.get(nameOf(server)) ?? 0) > clock.elapsed()
    const mixed = shuffle(random, servers)
    return [...mixed.filter((server) => !isShunned(server)), ...mixed.filter(isShunned)]
  }

  async #askOne(
    upstreamQuery: UpstreamQuery,
    server: Upstream,
    via: Transport,
    ms: number,
  ): Promise<Message | undefined> {
    const answer = await this.#exchange(upstreamQuery, server, { via, ms, hasEdns: true })
    // Old servers reject EDNS with an error.
    const isOld = answer !== undefined && answer.additional.length === 0
    const code = answer === undefined ? 0 : rcodeOf(answer.flags)
    if (!isOld || (code !== RCODE.formatError && code !== RCODE.notImplemented)) return answer
    return this.#exchange(upstreamQuery, server, { via, ms, hasEdns: false })
  }

  #exchange(upstreamQuery: UpstreamQuery, server: Upstream, how: ExchangeOptions): Promise<Message | undefined> {
    const id = uint16(this.#options.random.bytes(2), 0)
    const { clock } = this.#options
    const exchange = {
      clock,
      server,
      ms: how.ms,
      signal: this.#closing.signal,
      sent: writeQuestion(id, upstreamQuery, how.hasEdns),
    }
    const accepts = (bytes: Uint8Array): Message | undefined => {
      const message = readMessage(bytes)
      return message !== undefined && isAnswerTo(message, id, upstreamQuery) ? message : undefined
    }
    return how.via === 'udp' ? byDatagram(exchange, accepts) : byStream(exchange, accepts)
  }
}

interface ExchangeOptions {
  readonly via: Transport
  readonly ms: number
  readonly hasEdns: boolean
}

const nameOf = ({ address, port }: Upstream): string => `${address}#${port}`

/** Equal for queries with the same answer. */
export function keyOf({ name, type, class: of, dnssecOk, checkingDisabled }: UpstreamQuery): string {
  return `${name} ${type} ${of} ${dnssecOk ? 1 : 0}${checkingDisabled ? 1 : 0}`
}

interface Exchange {
  readonly clock: Clock
  readonly server: Upstream
  readonly ms: number
  readonly signal: AbortSignal
  readonly sent: Buffer
}

type ParseAnswer = (bytes: Uint8Array) => Message | undefined

/** One socket for each query: the random port adds entropy against spoofing. */
function byDatagram({ clock, server, ms, signal, sent }: Exchange, accepts: ParseAnswer): Promise<Message | undefined> {
  return new Promise((resolve) => {
    const socket: Socket = createSocket(server.address.includes(':') ? 'udp6' : 'udp4')
    const timer: Timer = clock.after(ms, () => end(undefined))
    const onAbort = (): void => end(undefined)
    const end = (message: Message | undefined): void => {
      timer.cancel()
      signal.removeEventListener('abort', onAbort)
      socket.removeAllListeners().on('error', () => undefined)
      socket.close()
      resolve(message)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    socket.on('error', () => end(undefined))
    // Ignores forged responses: the real one may still arrive.
    socket.on('message', (bytes) => {
      const message = accepts(bytes)
      if (message !== undefined) end(message)
    })
    // A connected socket drops datagrams of other senders and reports unreachable ports.
    socket.connect(server.port, server.address, () => socket.send(sent))
  })
}

function byStream({ clock, server, ms, signal, sent }: Exchange, accepts: ParseAnswer): Promise<Message | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: server.address, port: server.port })
    const timer = clock.after(ms, () => end(undefined))
    const onAbort = (): void => end(undefined)
    const end = (message: Message | undefined): void => {
      timer.cancel()
      signal.removeEventListener('abort', onAbort)
      socket.removeAllListeners().on('error', () => undefined)
      socket.destroy()
      resolve(message)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    let received = Buffer.alloc(0)
    socket.on('error', () => end(undefined)).on('close', () => end(undefined))
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      if (received.length < 2 || received.length < 2 + uint16(received, 0)) return
      end(accepts(received.subarray(2, 2 + uint16(received, 0))))
    })
    const length = Buffer.alloc(2)
    length.writeUInt16BE(sent.length, 0)
    socket.write(Buffer.concat([length, sent]))
  })
}
