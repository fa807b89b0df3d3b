/**
 * Questions that other servers answer. Each is asked once, however many wait for it; a server that does not answer in time is
 * passed over, and asked last for a while. What comes back must be of the server that was asked, with the number and the
 * question that were sent, from a port that nobody knows beforehand.
 */
import { createSocket, type Socket } from 'node:dgram'
import { connect } from 'node:net'

import type { Clock, Timer } from '#lib/clock.ts'
import { type Random, shuffle } from '#lib/random.ts'

import { type Asking, isAnswerTo, type Kept, keep, writeQuestion } from './passed-on.ts'
import { type Message, RCODE, rcodeOf, readMessage, uint16 } from './wire.ts'

export interface Upstream {
  readonly address: string
  readonly port: number
}

export type Transport = 'udp' | 'tcp'

export interface ForwarderOptions {
  readonly clock: Clock
  readonly random: Random
  /** How long one server has, and how long all of them together. */
  readonly attemptMs?: number
  readonly totalMs?: number
}

/** As CoreDNS' `forward`, with `max_concurrent` as clusters have it. */
const ATTEMPT_MS = 2000
const TOTAL_MS = 5000
const MAX_CONCURRENT = 1000
/** How long one that did not answer is asked after the others. */
const SHUN_MS = 10_000

export class TooManyQuestions extends Error {}

export class Forwarder {
  readonly #options: ForwarderOptions
  readonly #shunned = new Map<string, number>()
  readonly #asked = new Map<string, Promise<Kept | undefined>>()
  readonly #closing = new AbortController()
  /** How many did not answer in time. */
  failures = 0

  constructor(options: ForwarderOptions) {
    this.#options = options
  }

  get underWay(): number {
    return this.#asked.size
  }

  close(): void {
    this.#closing.abort()
  }

  /** Undefined: none of them has answered. Throws TooManyQuestions. */
  ask(asking: Asking, servers: readonly Upstream[], via: Transport): Promise<Kept | undefined> {
    const key = `${via} ${servers.map(({ address, port }) => `${address}#${port}`).join()} ${keyOf(asking)}`
    const waiting = this.#asked.get(key)
    if (waiting !== undefined) return waiting
    if (this.#asked.size >= MAX_CONCURRENT) throw new TooManyQuestions('Too many questions wait for other servers')
    const asked = this.#askAll(asking, servers, via).finally(() => this.#asked.delete(key))
    this.#asked.set(key, asked)
    return asked
  }

  async #askAll(asking: Asking, servers: readonly Upstream[], via: Transport): Promise<Kept | undefined> {
    const { clock, attemptMs = ATTEMPT_MS, totalMs = TOTAL_MS } = this.#options
    const until = clock.elapsed() + totalMs
    let last: Kept | undefined
    // Twice: a datagram that is lost is nobody's fault.
    const order = this.#ordered(servers)
    for (const server of [...order, ...order]) {
      const leftMs = Math.min(attemptMs, until - clock.elapsed())
      if (leftMs <= 0 || this.#closing.signal.aborted) break
      const answer = await this.#askOne(asking, server, via, leftMs)
      if (answer === undefined) {
        this.failures++
        this.#shunned.set(nameOf(server), clock.elapsed() + SHUN_MS)
        continue
      }
      this.#shunned.delete(nameOf(server))
      last = keep(answer)
      // Another may know.
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

  async #askOne(asking: Asking, server: Upstream, via: Transport, ms: number): Promise<Message | undefined> {
    const answer = await this.#exchange(asking, server, { via, ms, hasEdns: true })
    // Old ones take EDNS for an error.
    const isOld = answer !== undefined && answer.additional.length === 0
    const code = answer === undefined ? 0 : rcodeOf(answer.flags)
    if (!isOld || (code !== RCODE.formatError && code !== RCODE.notImplemented)) return answer
    return this.#exchange(asking, server, { via, ms, hasEdns: false })
  }

  #exchange(asking: Asking, server: Upstream, how: How): Promise<Message | undefined> {
    const id = uint16(this.#options.random.bytes(2), 0)
    const { clock } = this.#options
    const exchange = {
      clock,
      server,
      ms: how.ms,
      signal: this.#closing.signal,
      sent: writeQuestion(id, asking, how.hasEdns),
    }
    const accepts = (bytes: Uint8Array): Message | undefined => {
      const message = readMessage(bytes)
      return message !== undefined && isAnswerTo(message, id, asking) ? message : undefined
    }
    return how.via === 'udp' ? byDatagram(exchange, accepts) : byStream(exchange, accepts)
  }
}

interface How {
  readonly via: Transport
  readonly ms: number
  readonly hasEdns: boolean
}

const nameOf = ({ address, port }: Upstream): string => `${address}#${port}`

/** Questions with the same answers. */
export function keyOf({ name, type, class: of, dnssecOk, checkingDisabled }: Asking): string {
  return `${name} ${type} ${of} ${dnssecOk ? 1 : 0}${checkingDisabled ? 1 : 0}`
}

interface Exchange {
  readonly clock: Clock
  readonly server: Upstream
  readonly ms: number
  readonly signal: AbortSignal
  readonly sent: Buffer
}

type Accepts = (bytes: Uint8Array) => Message | undefined

/** A socket for each question: its port is drawn by the system, and is the other half of the secret. */
function byDatagram({ clock, server, ms, signal, sent }: Exchange, accepts: Accepts): Promise<Message | undefined> {
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
    // What is not the answer is somebody's guess: the answer may yet come.
    socket.on('message', (bytes) => {
      const message = accepts(bytes)
      if (message !== undefined) end(message)
    })
    // Connected: the system drops what others send, and says when nobody is there.
    socket.connect(server.port, server.address, () => socket.send(sent))
  })
}

function byStream({ clock, server, ms, signal, sent }: Exchange, accepts: Accepts): Promise<Message | undefined> {
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
