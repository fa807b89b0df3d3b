/**
 * A raw HTTP/1.1 client on a TLS socket: sends bytes unchanged, even invalid ones, and parses responses strictly. It
 * sends one request at a time.
 */
import { connect, type TLSSocket } from 'node:tls'

import type { Target } from './program.ts'

export interface RawRequest {
  readonly method?: string
  /** As it goes on the request line, nothing encoded. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Default 65 s: what no answer of the server's may take. */
  readonly timeoutMs?: number
}

export interface RawAnswer {
  readonly status: number
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

/** The response is incomplete. The server may or may not have executed the request. */
export class BrokenError extends Error {
  override readonly name = 'BrokenError'
}

const TIMEOUT_MS = 65_000

/** Encodes a request. Adds Content-Length if there is a body without another framing. */
export function encodeRequest({ method = 'GET', path, headers = {}, body }: RawRequest): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : (body ?? EMPTY)
  const isFramed = Object.keys(headers).some((name) => /^(content-length|transfer-encoding)$/i.test(name))
  const length = isFramed || bytes.length === 0 ? {} : { 'content-length': String(bytes.length) }
  const lines = Object.entries({ host: 'reliability', ...headers, ...length }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'), bytes])
}

const EMPTY = Buffer.alloc(0)

export async function openSocket({ port, ca }: Target, protocol = 'http/1.1'): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, ca, servername: 'localhost', ALPNProtocols: [protocol] })
  socket.setNoDelay(true)
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.once('error', reject)
    socket.once('close', () => reject(new BrokenError('The connection was closed in its handshake')))
  })
  // From here on 'close' says all there is to know.
  socket.on('error', () => undefined)
  return socket
}

export interface RawConnection {
  readonly socket: TLSSocket
  /** False once the server, or we, have closed it. */
  readonly isOpen: boolean
  /** Rejects with BrokenError when the connection breaks first or time is up. */
  send(request: RawRequest): Promise<RawAnswer>
  /** Sends a request whose answer goes on; pieces of its body are handed over as they come, until it ends. */
  follow(request: RawRequest, take: (piece: Buffer) => void): Promise<number>
  close(): void
}

export async function openConnection(target: Target): Promise<RawConnection> {
  const socket = await openSocket(target)
  let reader: AnswerReader | undefined
  let isOpen = true
  socket.on('data', (piece: Buffer) => reader?.take(piece))
  socket.on('close', () => {
    isOpen = false
    reader?.closed()
  })
  const ask = async (request: RawRequest, take?: (piece: Buffer) => void): Promise<RawAnswer> => {
    if (!isOpen) throw new BrokenError('The connection is closed')
    reader = new AnswerReader(request.method ?? 'GET', take)
    const timer = setTimeout(() => reader?.fail('No answer in time'), request.timeoutMs ?? TIMEOUT_MS)
    socket.write(encodeRequest(request))
    try {
      const answer = await reader.answer
      if (/close/i.test(answer.headers.get('connection') ?? '')) socket.end()
      return answer
    } catch (error) {
      socket.destroy()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
  return {
    socket,
    get isOpen() {
      return isOpen && !socket.destroyed && !socket.writableEnded
    },
    send: (request) => ask(request),
    follow: async (request, take) => (await ask(request, take)).status,
    close: () => void socket.destroy(),
  }
}

/** Takes one answer apart. */
class AnswerReader {
  readonly #whole = Promise.withResolvers<RawAnswer>()
  readonly #method: string
  readonly #hand: ((piece: Buffer) => void) | undefined
  readonly #body: Buffer[] = []
  #waiting: Buffer = EMPTY
  #status = 0
  #headers: Map<string, string> | undefined
  /** Bytes of the body, or of the current chunk, that are still to come; -1: the head of a chunk is. */
  #left = 0
  #isChunked = false
  #untilClose = false

  constructor(method: string, hand?: (piece: Buffer) => void) {
    this.#method = method
    this.#hand = hand
  }

  get answer(): Promise<RawAnswer> {
    return this.#whole.promise
  }

  take(piece: Buffer): void {
    this.#waiting = this.#waiting.length === 0 ? piece : Buffer.concat([this.#waiting, piece])
    while (this.#headers === undefined) if (!this.#readHead()) return
    if (this.#untilClose) return this.#takeBytes(this.#waiting.length)
    if (!this.#isChunked) {
      this.#takeBytes(Math.min(this.#left, this.#waiting.length))
      if (this.#left === 0) this.#end()
      return
    }
    while (this.#readChunk());
  }

  closed(): void {
    if (this.#headers !== undefined && this.#untilClose) this.#end()
    else this.fail(this.#headers === undefined ? 'Closed before an answer' : 'Closed within an answer')
  }

  fail(reason: string): void {
    this.#whole.reject(new BrokenError(reason))
  }

  /** True when a head was there. An answer that is not the last word (1xx) is passed over. */
  #readHead(): boolean {
    const end = this.#waiting.indexOf('\r\n\r\n')
    if (end < 0) return false
    const [first = '', ...lines] = this.#waiting.subarray(0, end).toString('latin1').split('\r\n')
    this.#waiting = this.#waiting.subarray(end + 4)
    this.#status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1] ?? Number.NaN)
    if (this.#status < 200) return true
    const headers = new Map(lines.map((line) => splitHeader(line)))
    this.#headers = headers
    const length = headers.get('content-length')
    const hasNone = this.#method === 'HEAD' || this.#status === 204 || this.#status === 304
    this.#isChunked = !hasNone && headers.get('transfer-encoding') === 'chunked'
    this.#untilClose = !hasNone && !this.#isChunked && length === undefined
    this.#left = this.#isChunked ? -1 : hasNone ? 0 : Number(length ?? 0)
    return true
  }

  /** True when there may be more to read. */
  #readChunk(): boolean {
    if (this.#left >= 0) {
      // The line end behind a chunk is counted with it, and cut off.
      const taken = Math.min(this.#left, this.#waiting.length)
      this.#takeBytes(taken)
      if (this.#left > 0 || this.#waiting.length < 2) return false
      this.#waiting = this.#waiting.subarray(2)
      this.#left = -1
    }
    const end = this.#waiting.indexOf('\r\n')
    if (end < 0) return false
    const size = Number.parseInt(this.#waiting.subarray(0, end).toString('latin1'), 16)
    if (size === 0) {
      this.#end()
      return false
    }
    this.#waiting = this.#waiting.subarray(end + 2)
    this.#left = size
    return true
  }

  #takeBytes(count: number): void {
    if (count === 0) return
    const piece = this.#waiting.subarray(0, count)
    this.#waiting = this.#waiting.subarray(count)
    if (!this.#untilClose) this.#left -= count
    if (this.#hand === undefined) this.#body.push(piece)
    else this.#hand(piece)
  }

  #end(): void {
    const headers = this.#headers ?? new Map<string, string>()
    this.#whole.resolve({ status: this.#status, headers, body: Buffer.concat(this.#body) })
  }
}

function splitHeader(line: string): [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
}

/** A client that opens a new connection when the last was closed, as well-behaved clients do. */
export class RawClient {
  readonly #target: Target
  readonly #headers: Readonly<Record<string, string>>
  #connection: RawConnection | undefined

  constructor(target: Target, headers: Readonly<Record<string, string>>) {
    this.#target = target
    this.#headers = headers
  }

  async send(request: RawRequest): Promise<RawAnswer> {
    if (this.#connection?.isOpen !== true) this.#connection = await openConnection(this.#target)
    const ofBody = request.body === undefined ? {} : { 'content-type': 'application/json' }
    return this.#connection.send({ ...request, headers: { ...this.#headers, ...ofBody, ...request.headers } })
  }

  close(): void {
    this.#connection?.close()
  }
}
