/**
 * One request and its response, over HTTP/1.1 or HTTP/2. A handler responds exactly once: by `respond`,
 * `respondPieces`, `stream` or `upgrade`.
 */
import type { X509Certificate } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'

import { createSlab } from '../collections/slab.ts'

/** The peer of a connection. */
export interface Peer {
  /** IP address; empty for a unix socket. */
  readonly address: string
  readonly port: number
  readonly isEncrypted: boolean
  /** The server name of the TLS handshake (SNI). */
  readonly serverName: string | undefined
  /** The client's certificate, if it showed one. Showing is not being trusted: see `isTrusted` and `verifyChain`. */
  readonly certificate: X509Certificate | undefined
  /**
   * True if signatures led from the certificate to one of the server's client authorities when the client connected.
   * Validity and purpose are for `verifyChain` to check.
   */
  readonly isTrusted: boolean
  /** The certificate and what the client sent along with it, encoded; empty when it sent none. */
  chain(): Buffer[]
}

/** Alternating header names and values: `['Content-Type', 'text/plain', …]`. */
export type HeaderList = readonly string[]

export interface Exchange {
  readonly version: '1.1' | '2'
  readonly method: string
  /** The request target as it came: path and query, nothing decoded. */
  readonly path: string
  /** The host of the request; empty if it has none. */
  readonly authority: string
  /** By lower-case name, on an object without prototype; several values of one name are joined by commas. */
  readonly headers: IncomingHttpHeaders
  /** Alternating names and values, unmodified: for headers whose values may contain commas (see `headerValues`). */
  readonly rawHeaders: HeaderList
  readonly peer: Peer
  /** Aborted when the client leaves before the response is complete. Made on demand. */
  readonly signal: AbortSignal
  /** True once the head of an answer is on its way: from then on an error can only break the connection. */
  readonly isAnswered: boolean
  /**
   * The whole body. Rejects with `BodyError` when it is larger than `limitBytes`, comes too slowly, or the client
   * goes away. Call at most once, and not together with `body`.
   */
  readBody(limitBytes: number, growing?: Growing): Promise<Buffer>
  /** The body piece by piece, with backpressure. */
  body(): AsyncIterable<Buffer>
  /**
   * Answers in one go. A string has one character per byte (latin1), which is the fastest way. `Date` and
   * `Content-Length` are added. Without effect when the client has gone.
   */
  respond(status: number, headers: HeaderList, body?: string | Buffer): void
  /**
   * Answers with pieces, no faster than the client takes them; resolves when all are handed over or the client has
   * gone. Give `lengthBytes`, the sum of the pieces, to have `Content-Length`.
   */
  respondPieces(status: number, headers: HeaderList, body: Pieces): Promise<void>
  /** Sends the head, with the first piece if that is written in the same turn, and leaves the body to the caller. */
  stream(status: number, headers: HeaderList): ResponseWriter
  /** For what went wrong on our side: answers 500, or breaks off an answer that has begun. Harmless after a complete one. */
  fail(): void
  /** The protocol the client wants to go on with (lower case), if the server allows it. */
  readonly upgradeProtocol: string | undefined
  /**
   * Hands over the connection (or, on HTTP/2, the stream), after an answer with `headers`: 101, on HTTP/2 200. Without
   * `headers` the caller writes the answer on HTTP/1.1, 101 or other, on the socket. The socket is the caller's to end.
   */
  upgrade(headers?: HeaderList): Upgraded
}

/** For bodies whose size is not known before they are there. */
export interface Growing {
  /** So much is read without asking. */
  readonly freeBytes: number
  /** Called once, when there is more data. The body is read further when it resolves, and not at all if it rejects. */
  mayGrow(): Promise<void>
}

export interface Pieces {
  readonly pieces: Iterable<Buffer> | AsyncIterable<Buffer>
  readonly lengthBytes?: number
}

export interface Upgraded {
  readonly socket: Duplex
  /** Bytes that the client sent before the upgrade was accepted. */
  readonly head: Buffer
}

/** Bytes for many receivers, framed once for HTTP/1.1. */
export interface SharedFrame {
  readonly body: Buffer
  readonly chunked: Buffer
}

/** An answer that goes on. */
export interface ResponseWriter {
  /**
   * True if the reader is in this process. It receives frames by identity, so that all readers share data derived
   * from a frame; joined frames are not shared.
   */
  readonly sharesFrames?: boolean
  /** False when the client is behind: what is written is kept, but no more should follow before `drained`. */
  write(piece: Buffer): boolean
  /** The same for a frame that goes to many receivers; cheaper than `write` on HTTP/1.1. Never empty. */
  writeFrame(frame: SharedFrame): boolean
  /** Resolves when the client has caught up, or has gone. */
  drained(): Promise<void>
  /** The client may stop reading for as long as it likes; others who do are cut off. */
  bePatient(): void
  end(): void
  /** Breaks the connection (HTTP/1.1) or stream (HTTP/2), so that the client cannot take what it has for complete. */
  abort(): void
  /** True once the client has gone or the answer is complete. */
  readonly isClosed: boolean
  /** Runs `task` when that happens, at once if it has. */
  onClose(task: () => void): void
}

/** Answer `too-large` with 413 and `timeout` with 408; after `gone` there is no client to answer. */
export type BodyErrorCode = 'too-large' | 'timeout' | 'gone'

export class BodyError extends Error {
  override readonly name = 'BodyError'
  readonly code: BodyErrorCode

  constructor(code: BodyErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

const CHUNK_END = '\r\n'
/** Those that are kept are kept for a while, in order. */
const takeForFrame = createSlab()

/** A frame for `writeFrame`. */
export function shareFrame(body: Buffer): SharedFrame {
  const head = `${body.length.toString(16)}${CHUNK_END}`
  const end = head.length + body.length
  const chunked = takeForFrame(end + CHUNK_END.length)
  chunked.write(head, 0, 'latin1')
  chunked.set(body, head.length)
  chunked.write(CHUNK_END, end, 'latin1')
  // The same memory, so that frames that are kept do not weigh twice.
  return { body: chunked.subarray(head.length, end), chunked }
}

/** Every value of a header, in order, by lower-case name. */
export function headerValues({ rawHeaders }: Pick<Exchange, 'rawHeaders'>, name: string): string[] {
  const values: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() === name) values.push(rawHeaders[at + 1] ?? '')
  }
  return values
}

/** By lower-case name; several values of one name are joined by commas, but for cookies. */
export function headersOf(list: HeaderList): IncomingHttpHeaders {
  const headers = Object.create(null) as Record<string, string | string[]>
  for (let at = 0; at + 1 < list.length; at += 2) {
    const name = (list[at] ?? '').toLowerCase()
    const value = list[at + 1] ?? ''
    const before = headers[name]
    if (name === 'set-cookie') headers[name] = [before ?? [], value].flat()
    else headers[name] = before === undefined ? value : `${String(before)}, ${value}`
  }
  return headers
}

export const PLAIN_TEXT: HeaderList = ['Content-Type', 'text/plain; charset=utf-8', 'X-Content-Type-Options', 'nosniff']
export const INTERNAL_ERROR = 'Internal Server Error\n'

/** Small pieces are joined up to about this size: fewer system calls, and still short turns. */
const PORTION_BYTES = 256 << 10
/** A piece this large is sent without copying, which would cost about as much as encrypting it. */
const LARGE_PIECE_BYTES = 32 << 10

/** Sends pieces in portions, waiting whenever the client is behind; a source that fails breaks the answer off. */
export async function sendPieces(writer: ResponseWriter, pieces: Pieces['pieces']): Promise<void> {
  const small = new Portion(writer)
  try {
    for await (const piece of pieces) {
      const isLarge = piece.length >= LARGE_PIECE_BYTES
      if (!isLarge && small.add(piece) < PORTION_BYTES) continue
      if (writer.isClosed) return
      let hasRoom = small.flush()
      if (isLarge) hasRoom = writer.write(piece)
      if (!hasRoom) await writer.drained()
    }
  } catch (error) {
    writer.abort()
    throw error
  }
  small.flush()
  writer.end()
}

/** Pieces that wait to be sent together. */
class Portion {
  readonly #writer: ResponseWriter
  #pieces: Buffer[] = []
  #size = 0

  constructor(writer: ResponseWriter) {
    this.#writer = writer
  }

  /** Returns how much is waiting now. */
  add(piece: Buffer): number {
    this.#pieces.push(piece)
    return (this.#size += piece.length)
  }

  flush(): boolean {
    if (this.#size === 0) return true
    const whole = Buffer.concat(this.#pieces, this.#size)
    this.#pieces = []
    this.#size = 0
    return this.#writer.write(whole)
  }
}
