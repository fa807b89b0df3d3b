/**
 * WebSocket connections on `ws`, for clients and servers: messages as an async iterable, sending with backpressure, and
 * pings. `ws` is loaded with the first connection, because most processes never open one.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

import type { RawData, WebSocket } from 'ws'

import { onAbort } from '../abort.ts'
import type { Clock, Timer } from '../clock.ts'
import { Fifo } from '../collections/fifo.ts'
import { type ClientTls, openSocket, type Origin } from './dial.ts'
import type { Exchange } from './exchange.ts'

/** `refused`: the handshake failed; `broken`: the connection was lost; `timeout`; `aborted`: by the caller. */
export type WebSocketErrorCode = 'refused' | 'broken' | 'timeout' | 'aborted'

export class WebSocketError extends Error {
  override readonly name = 'WebSocketError'
  readonly code: WebSocketErrorCode
  /** The status of a server that refused the upgrade; 0 for other errors. */
  readonly status: number

  constructor(code: WebSocketErrorCode, message: string, options?: ErrorOptions & { status?: number }) {
    super(message, options)
    this.code = code
    this.status = options?.status ?? 0
  }
}

export interface WebSocketMessage {
  readonly data: Buffer
  /** False for text, which is then UTF-8. */
  readonly isBinary: boolean
}

export interface WebSocketConnection extends AsyncIterable<WebSocketMessage> {
  /** The chosen subprotocol; empty when none was. */
  readonly protocol: string
  /**
   * Sends one message, binary unless it is a string. Resolves when there is room for the next one; rejects with
   * `WebSocketError` `broken` when the connection is gone. Calls `flushed` when the socket has accepted the message.
   */
  send(message: Buffer | string, flushed?: () => void): Promise<void>
  /** False while the other side is behind, so that `send` waits. */
  readonly hasRoom: boolean
  /** Says goodbye and resolves when the other side has answered, or has not within a few seconds. */
  close(code?: number, reason?: string): Promise<void>
  /** Ends the connection without a word. */
  destroy(): void
  /** Resolves when the connection is gone, with the code and reason the other side gave. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
}

export interface WebSocketLimits {
  readonly clock: Clock
  /** Larger messages end the connection with code 1009. Default 32 MiB. */
  readonly maxPayloadBytes?: number
  /** The time between pings. Default: no pings. */
  readonly pingIntervalMs?: number
  /**
   * A connection with pings ends after receiving nothing for this time. All received data counts, and time in which we
   * do not read does not. Default: two intervals.
   */
  readonly silenceLimitMs?: number
}

const MAX_PAYLOAD_BYTES = 32 << 20

export interface AcceptOptions extends WebSocketLimits {
  /** The subprotocol to speak, out of those the client offers in its order of preference; undefined for none. */
  readonly choose?: (offered: readonly string[]) => string | undefined
}

/**
 * Turns an exchange whose `upgradeProtocol` is `websocket` into a connection. A handshake that is not proper is
 * answered with 400 here (501 over HTTP/2) and rejects with `WebSocketError` `refused`. Check what the client offers, by
 * `offeredProtocols`, before: the protocol has no answer for "none of these".
 */
export async function acceptWebSocket(exchange: Exchange, options: AcceptOptions): Promise<WebSocketConnection> {
  if (exchange.version !== '1.1') {
    exchange.respond(501, [])
    throw new WebSocketError('refused', 'WebSocket over HTTP/2 is not supported')
  }
  const { WebSocketServer } = await import('ws')
  const chosen = options.choose?.(offeredProtocols(exchange))
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    autoPong: false,
    maxPayload: options.maxPayloadBytes ?? MAX_PAYLOAD_BYTES,
  })
  // Chosen and answered here: `ws` takes none that is not a token, and Kubernetes has one with a slash in it.
  const { 'sec-websocket-protocol': _, ...headers } = exchange.headers
  if (chosen !== undefined) server.on('headers', (lines) => lines.push(`Sec-WebSocket-Protocol: ${chosen}`))
  const { socket, head } = exchange.upgrade()
  // All that the handshake looks at.
  const request = { method: exchange.method, url: exchange.path, headers } as IncomingMessage
  return new Promise((resolve, reject) => {
    const onRefused = (): void => reject(new WebSocketError('refused', 'The client sent no proper WebSocket handshake'))
    socket.once('close', onRefused)
    server.handleUpgrade(request, socket, head, (raw) => {
      socket.off('close', onRefused)
      resolve(wrap(raw, socket, options, chosen))
    })
  })
}

/** The subprotocols a client offers, in its order. */
export function offeredProtocols({ headers }: Pick<Exchange, 'headers'>): string[] {
  const offered = headers['sec-websocket-protocol'] ?? ''
  return offered
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

export interface ConnectOptions extends WebSocketLimits {
  /** `ws:` or `wss:`. */
  readonly url: string
  /** Subprotocols to offer, best first. */
  readonly protocols?: readonly string[]
  /** Accepts a server that chooses none of `protocols`: then `protocol` is empty. Default: such a server is refused. */
  readonly isProtocolOptional?: boolean
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly tls?: ClientTls
  readonly signal?: AbortSignal
  /** For the handshake. Default 30 s. */
  readonly timeoutMs?: number
}

const CONNECT_TIMEOUT_MS = 30_000

/** Connects to a server. Redirects are not followed. Rejects with `WebSocketError`. */
export async function connectWebSocket(options: ConnectOptions): Promise<WebSocketConnection> {
  const raw = await openClient(options)
  const { timeoutMs = CONNECT_TIMEOUT_MS } = options
  return new Promise((resolve, reject) => {
    const fail = (error: WebSocketError): void => {
      finish()
      raw.on('error', () => undefined)
      raw.terminate()
      reject(error)
    }
    const timer = options.clock.after(timeoutMs, () =>
      fail(new WebSocketError('timeout', `No answer within ${timeoutMs} ms`)),
    )
    let release = (): void => undefined
    const finish = (): void => {
      timer.cancel()
      release()
    }
    let socket: Duplex | undefined
    let chosen = ''
    raw.on('upgrade', (response: IncomingMessage) => {
      socket = response.socket
      chosen = response.headers['sec-websocket-protocol'] ?? ''
      delete response.headers['sec-websocket-protocol']
    })
    raw.on('unexpected-response', (_request, response: IncomingMessage) => {
      const status = response.statusCode ?? 0
      response.destroy()
      fail(new WebSocketError('refused', `The server answered ${status} instead of switching to WebSocket`, { status }))
    })
    raw.on('error', (cause) => fail(new WebSocketError('refused', `Cannot connect: ${cause.message}`, { cause })))
    raw.on('open', () => {
      finish()
      raw.removeAllListeners('error')
      if (!isAcceptable(chosen, options))
        return fail(
          new WebSocketError('refused', `The server chose the subprotocol "${chosen}", which the client did not offer`),
        )
      if (socket !== undefined) resolve(wrap(raw, socket, options, chosen))
    })
    // Last: the signal may be aborted already.
    release = onAbort(options.signal, () => {
      fail(new WebSocketError('aborted', 'Connecting was given up', { cause: options.signal?.reason }))
    })
  })
}

function isAcceptable(chosen: string, { protocols = [], isProtocolOptional = false }: ConnectOptions): boolean {
  return chosen === '' ? protocols.length === 0 || isProtocolOptional : protocols.includes(chosen)
}

async function openClient({
  url,
  protocols = [],
  headers,
  tls = {},
  maxPayloadBytes,
}: ConnectOptions): Promise<WebSocket> {
  const { WebSocket: Client } = await import('ws')
  return new Client(url, [], {
    headers: {
      ...(headers as Record<string, string>),
      // Offered and looked at here: `ws` takes none that is not a token, and Kubernetes has one with a slash in it.
      ...(protocols.length > 0 && { 'sec-websocket-protocol': protocols.join(', ') }),
    },
    followRedirects: false,
    perMessageDeflate: false,
    autoPong: false,
    maxPayload: maxPayloadBytes ?? MAX_PAYLOAD_BYTES,
    createConnection: () => openSocket(originOf(url), { tls, alpn: ['http/1.1'] }) as never,
  })
}

function originOf(url: string): Origin {
  const { protocol, hostname, port } = new URL(url)
  const isSecure = protocol === 'wss:'
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  return { isSecure, host, port: port === '' ? (isSecure ? 443 : 80) : Number(port) }
}

/** Sent bytes that may wait in the socket before `send` waits too, and received ones before we stop reading. */
const MAX_BUFFERED_BYTES = 256 << 10

/** How long the other side may take to say goodbye as well. */
const CLOSE_TIMEOUT_MS = 5000

/** The overhead of a message, so that a flood of empty ones counts too. */
const OVERHEAD_BYTES = 64

function wrap(raw: WebSocket, socket: Duplex, limits: WebSocketLimits, protocol = raw.protocol): WebSocketConnection {
  const inbox = new MessageQueue(raw)
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    raw.on('close', (code, reason) => {
      ping?.cancel()
      inbox.finish(code)
      resolve({ code, reason: reason.toString() })
    })
  })
  answerPings(raw)
  // 'close' follows and notifies all listeners.
  raw.on('error', () => undefined)
  const ping = limits.pingIntervalMs === undefined ? undefined : keepPinging(raw, socket, limits)
  return {
    protocol,
    closed,
    send: (message, flushed) => send(raw, socket, message, flushed),
    get hasRoom() {
      return raw.bufferedAmount <= MAX_BUFFERED_BYTES
    },
    async close(code = 1000, reason = '') {
      const timer = limits.clock.after(CLOSE_TIMEOUT_MS, () => raw.terminate())
      raw.resume()
      raw.close(code, reason)
      await closed
      timer.cancel()
    },
    destroy: () => raw.terminate(),
    [Symbol.asyncIterator]: () => inbox,
  }
}

function send(raw: WebSocket, socket: Duplex, message: Buffer | string, flushed?: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (cause?: Error): void => reject(new WebSocketError('broken', 'The connection is gone', { cause }))
    if (raw.readyState !== raw.OPEN) return fail()
    corkForTurn(socket)
    raw.send(message, { binary: typeof message !== 'string' }, (error) => {
      if (error) fail(error)
      else flushed?.()
    })
    if (raw.bufferedAmount <= MAX_BUFFERED_BYTES) return resolve()
    const done = (): void => {
      socket.off('drain', done)
      raw.off('close', gone)
      resolve()
    }
    const gone = (): void => {
      socket.off('drain', done)
      fail()
    }
    socket.once('drain', done)
    raw.once('close', gone)
  })
}

/** With so much the socket has enough to do. */
const MAX_CORKED_BYTES = 32 << 10

/** Messages that are sent in one turn of the event loop leave in one write, which costs as much as one for each. */
function corkForTurn(socket: Duplex): void {
  if (socket.writableCorked > 0) {
    if (socket.writableLength >= MAX_CORKED_BYTES) socket.uncork()
    return
  }
  socket.cork()
  setImmediate(() => socket.uncork())
}

/**
 * Answers pings even behind much data. While the socket has not accepted an answer, only the latest ping waits for
 * one, as the protocol permits: a flood of pings takes no memory.
 */
function answerPings(raw: WebSocket): void {
  let isSending = false
  let latest: Buffer | undefined
  const answer = (data: Buffer): void => {
    isSending = true
    latest = undefined
    raw.pong(data, undefined, () => {
      isSending = false
      if (latest !== undefined) answer(latest)
    })
  }
  raw.on('ping', (data) => {
    if (isSending) latest = data
    else answer(data)
  })
}

function keepPinging(raw: WebSocket, socket: Duplex, limits: WebSocketLimits): Timer {
  const { clock, pingIntervalMs = 0, silenceLimitMs = 2 * pingIntervalMs } = limits
  let lastSign = clock.elapsed()
  let nextPing = lastSign + pingIntervalMs
  let readBytes = bytesReadBy(socket)
  let timer: Timer
  const alive = (): void => {
    lastSign = clock.elapsed()
    readBytes = bytesReadBy(socket)
  }
  raw.on('message', alive).on('ping', alive).on('pong', alive)
  const beat = (): void => {
    const now = clock.elapsed()
    // Part of a large message counts too.
    if (bytesReadBy(socket) !== readBytes || raw.isPaused) alive()
    if (now - lastSign >= silenceLimitMs) return raw.terminate()
    if (now >= nextPing) {
      raw.ping()
      nextPing = now + pingIntervalMs
    }
    timer = clock.after(Math.min(nextPing, lastSign + silenceLimitMs) - now, beat, { background: true })
  }
  timer = clock.after(Math.min(pingIntervalMs, silenceLimitMs), beat, { background: true })
  return { cancel: () => timer.cancel() }
}

function bytesReadBy(socket: Duplex): number {
  return (socket as { readonly bytesRead?: number }).bytesRead ?? 0
}

/** Messages on their way to the reader; stops the connection while too many wait. For one reader. */
class MessageQueue implements AsyncIterator<WebSocketMessage> {
  readonly #raw: WebSocket
  readonly #queue = new Fifo<WebSocketMessage>()
  #queuedBytes = 0
  #end: { readonly error: WebSocketError | undefined } | undefined
  #wake: () => void = () => undefined

  constructor(raw: WebSocket) {
    this.#raw = raw
    raw.on('message', (data: RawData, isBinary) => this.#put({ data: asBuffer(data), isBinary }))
  }

  /** 1006 stands for a connection that was lost without goodbye, 1009 and the like for one we ended ourselves. */
  finish(code: number): void {
    const isClean = code === 1000 || code === 1001 || code === 1005
    const error = isClean ? undefined : new WebSocketError('broken', `The connection ended with code ${code}`)
    this.#end = { error }
    this.#wake()
  }

  async next(): Promise<IteratorResult<WebSocketMessage>> {
    for (;;) {
      const message = this.#queue.shift()
      if (message !== undefined) {
        this.#taken(message)
        return { done: false, value: message }
      }
      if (this.#end !== undefined) return this.#finished(this.#end.error)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Leaving the loop does not end the connection: it may be written to further on. */
  return(): Promise<IteratorResult<WebSocketMessage>> {
    return Promise.resolve({ done: true, value: undefined })
  }

  #finished(error: WebSocketError | undefined): IteratorResult<WebSocketMessage> {
    this.#end = { error: undefined }
    if (error !== undefined) throw error
    return { done: true, value: undefined }
  }

  #put(message: WebSocketMessage): void {
    this.#queue.push(message)
    this.#queuedBytes += message.data.length + OVERHEAD_BYTES
    if (this.#queuedBytes > MAX_BUFFERED_BYTES) this.#raw.pause()
    this.#wake()
  }

  #taken(message: WebSocketMessage): void {
    this.#queuedBytes -= message.data.length + OVERHEAD_BYTES
    if (this.#raw.isPaused && this.#queuedBytes <= MAX_BUFFERED_BYTES / 2) this.#raw.resume()
  }
}

function asBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}
