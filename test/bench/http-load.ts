/**
 * Generates HTTP/1.1 load on keep-alive TLS connections. The client reads only status and length, so that the server
 * gets the processors on a small machine.
 */
import { performance } from 'node:perf_hooks'
import { connect, type TLSSocket } from 'node:tls'

import { quantile } from './bench.ts'
import type { ServerUnderTest } from './server-under-test.ts'

export interface RequestText {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Reply {
  readonly status: number
  readonly bytes: number
  /** The body of failed responses, and of successful ones on request. */
  readonly text: string
}

export interface Connection {
  /** One at a time. */
  readonly send: (request: Buffer) => Promise<Reply>
  readonly socket: TLSSocket
}

export function encodeRequest({ method = 'GET', path, headers = {}, body = '' }: RequestText): Buffer {
  const length = Buffer.byteLength(body)
  const ofBody = length === 0 ? {} : { 'content-type': 'application/json', 'content-length': String(length) }
  const all = { host: 'bench', 'user-agent': 'bench/1', accept: 'application/json', ...ofBody, ...headers }
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${head.join('')}\r\n${body}`)
}

export async function openConnection(
  { port, tls }: Pick<ServerUnderTest, 'port' | 'tls'>,
  { keepText = false }: { readonly keepText?: boolean } = {},
): Promise<Connection> {
  const socket = connect({ host: '127.0.0.1', port, ...tls, servername: 'localhost', ALPNProtocols: ['http/1.1'] })
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.once('error', reject)
  })
  const reader = new ReplyReader(keepText)
  socket.on('data', (piece: Buffer) => reader.take(piece))
  socket.on('close', () => reader.fail(new Error('The server closed the connection')))
  return {
    socket,
    send(request) {
      const reply = reader.next()
      socket.write(request)
      return reply
    },
  }
}

/** Cuts the stream into answers, each of which says its length or comes in chunks. */
class ReplyReader {
  #waiting: PromiseWithResolvers<Reply> | undefined
  #head = ''
  #status = 0
  /** -1 between answers, -2 for one in chunks. */
  #length = -1
  #bytes = 0
  #text = ''
  #lastBytes = ''
  #failure: Error | undefined
  readonly #keepText: boolean

  constructor(keepText: boolean) {
    this.#keepText = keepText
  }

  next(): Promise<Reply> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    this.#waiting = Promise.withResolvers<Reply>()
    return this.#waiting.promise
  }

  /** From now on nothing is answered. */
  fail(error: Error): void {
    this.#failure ??= error
    this.#waiting?.reject(error)
  }

  take(piece: Buffer): void {
    if (this.#length !== -1) return this.#takeBody(piece)
    this.#head += piece.toString('latin1')
    const end = this.#head.indexOf('\r\n\r\n')
    if (end < 0) return
    this.#status = Number(this.#head.slice(9, 12))
    const head = this.#head.slice(0, end + 2)
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
    const chunked = /\r\ntransfer-encoding: chunked/i.test(head)
    if (length === undefined && !chunked) return this.fail(new Error(`An answer without length: ${head}`))
    this.#length = chunked ? -2 : Number(length)
    this.#takeBody(Buffer.from(this.#head.slice(end + 4), 'latin1'))
  }

  #takeBody(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#keepText || this.#status >= 400) this.#text += piece.toString()
    if (this.#length === -2 ? !this.#isLastChunk(piece) : this.#bytes < this.#length) return
    const reply = { status: this.#status, bytes: this.#bytes, text: this.#text }
    this.#head = this.#text = this.#lastBytes = ''
    this.#length = -1
    this.#bytes = 0
    this.#waiting?.resolve(reply)
  }

  /** One answer at a time is on its way, so what ends like the last chunk is the last chunk. */
  #isLastChunk(piece: Buffer): boolean {
    this.#lastBytes = (this.#lastBytes + piece.subarray(-LAST_CHUNK.length).toString('latin1')).slice(
      -LAST_CHUNK.length,
    )
    return this.#lastBytes === LAST_CHUNK
  }
}

const LAST_CHUNK = '\r\n0\r\n\r\n'

export interface Load {
  readonly clients: number
  readonly warmUpMs: number
  readonly durationMs: number
  /** `turn` counts up over all clients. */
  readonly request: (turn: number) => Buffer
}

export interface LoadResult {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Processor time of the server for one request, in microseconds. */
  readonly cpuMicros: number
  /** Bytes of the last body. */
  readonly bytes: number
}

/** Every client sends its next request when the last is answered. Throws on an answer that is an error. */
export async function runLoad(server: ServerUnderTest, load: Load): Promise<LoadResult> {
  const connections = await Promise.all(Array.from({ length: load.clients }, () => openConnection(server)))
  const state = { turn: 0, counting: false, stopped: false, bytes: 0 }
  const took: number[] = []
  const client = async ({ send }: Connection): Promise<void> => {
    while (!state.stopped) {
      const start = performance.now()
      const { status, bytes, text } = await send(load.request(state.turn++))
      if (status >= 400) throw new Error(`The server answered ${status}: ${text.slice(0, 500)}`)
      if (state.counting) took.push(performance.now() - start)
      state.bytes = bytes
    }
  }
  const running = Promise.all(connections.map(client))
  await Promise.race([running, pause(load.warmUpMs)])
  const before = await server.usage()
  state.counting = true
  const start = performance.now()
  await Promise.race([running, pause(load.durationMs)])
  const spentMs = performance.now() - start
  state.counting = false
  const after = await server.usage()
  state.stopped = true
  await running
  for (const { socket } of connections) socket.destroy()
  return {
    perSecond: (took.length * 1000) / spentMs,
    p50Ms: quantile(took, 0.5),
    p99Ms: quantile(took, 0.99),
    cpuMicros: ((after.cpuMs - before.cpuMs) * 1000) / took.length,
    bytes: state.bytes,
  }
}

/** Sends each request once, over a few connections. */
export async function sendAll(
  server: Pick<ServerUnderTest, 'port' | 'tls'>,
  requests: readonly Buffer[],
): Promise<void> {
  const queue = requests.values()
  const worker = async (): Promise<void> => {
    const { send, socket } = await openConnection(server)
    for (const request of queue) {
      const { status, text } = await send(request)
      if (status >= 400 && status !== 409) throw new Error(`The server answered ${status}: ${text.slice(0, 500)}`)
    }
    socket.destroy()
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
