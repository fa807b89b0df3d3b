/** The response to a request of the HTTP client: status, headers, and the body as a stream or as a whole. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'

import { HttpError } from './http-error.ts'
import type { LoopbackBody } from './loopback-body.ts'

export interface ResponseHead {
  readonly status: number
  /** By lower-case name, on an object without prototype. */
  readonly headers: IncomingHttpHeaders
  readonly version: '1.1' | '2'
}

/** The body must be read or discarded, once, in one of these ways; until then it holds its connection. */
export interface HttpResponse extends ResponseHead {
  /** Pieces as they arrive, no faster than they are read. Leaving the loop ends the request. */
  readonly body: AsyncIterable<Buffer>
  /** The same of a server in this process: all that is there at once, pieces as it wrote them, the same for all it wrote them to. */
  readonly shared?: AsyncIterable<readonly Buffer[]>
  /** The whole body; rejects with `HttpError` `too-large` above the limit. */
  bytes(limitBytes: number): Promise<Buffer>
  text(limitBytes: number): Promise<string>
  /** Ends the request without reading its body. */
  discard(): void
}

/** `lengthBytes`: how long the body must be, if the source does not check that. */
export function createResponse(source: Readable, head: ResponseHead, lengthBytes?: number): HttpResponse {
  // A failure before the first read must not end the process; the reader receives it all the same.
  source.on('error', () => undefined)
  return responseOf(head, { read: () => readPieces(source, { lengthBytes }), discard: () => source.destroy() })
}

/** An answer of this very process. */
export function sharedResponse(source: LoopbackBody, head: ResponseHead): HttpResponse {
  const response = responseOf(head, { read: () => singly(readShared(source)), discard: () => source.close() })
  return { ...response, shared: readShared(source) }
}

interface Source {
  readonly read: () => AsyncGenerator<Buffer>
  readonly discard: () => void
}

function responseOf(head: ResponseHead, { read, discard }: Source): HttpResponse {
  const bytes = (limitBytes: number): Promise<Buffer> => collect(read(), limitBytes)
  return {
    ...head,
    body: read(),
    bytes,
    text: async (limitBytes) => (await bytes(limitBytes)).toString(),
    discard,
  }
}

/** An answer that is there as a whole: it holds no connection. */
export function wholeResponse(body: Buffer, head: ResponseHead): HttpResponse {
  const bytes = async (limitBytes: number): Promise<Buffer> => {
    if (body.length > limitBytes) throw tooLarge(limitBytes)
    return body
  }
  return {
    ...head,
    body: onePiece(body),
    bytes,
    text: async (limitBytes) => (await bytes(limitBytes)).toString(),
    discard: () => undefined,
  }
}

async function* onePiece(body: Buffer): AsyncGenerator<Buffer> {
  if (body.length > 0) yield body
}

interface PieceOptions {
  readonly lengthBytes: number | undefined
  /** The source is not destroyed after its last piece, or when the reader leaves. */
  readonly isKept?: boolean
}

/**
 * Rejects if the source has not exactly `lengthBytes`, before it yields too many. Not by the stream's own iterator: that
 * treats an HTTP/2 stream which was complete before the first read as aborted.
 */
export async function* readPieces(
  source: Readable,
  { lengthBytes, isKept = false }: PieceOptions,
): AsyncGenerator<Buffer> {
  let left = lengthBytes ?? Infinity
  let wake = (): void => undefined
  const onChange = (): void => wake()
  for (const event of CHANGES) source.on(event, onChange)
  try {
    for (;;) {
      const piece = source.read() as Buffer | null
      if (piece !== null) {
        left = remaining(left, piece)
        yield piece
      } else if (source.readableEnded) return checkEnd(left)
      else if (source.destroyed) throw brokenOff(source.errored)
      else await new Promise<void>((resolve) => (wake = resolve))
    }
  } finally {
    for (const event of CHANGES) source.off(event, onChange)
    if (!isKept) source.destroy()
  }
}

/** Throws if the piece has more than `left` bytes. */
function remaining(left: number, { length }: Buffer): number {
  if (length > left) throw brokenOff(new Error('More bytes than announced'))
  return left - length
}

function checkEnd(left: number): void {
  if (left > 0 && left !== Infinity) throw brokenOff(new Error(`${left} bytes fewer than announced`))
}

async function* singly(groups: AsyncIterable<readonly Buffer[]>): AsyncGenerator<Buffer> {
  for await (const pieces of groups) yield* pieces
}

async function* readShared(source: LoopbackBody): AsyncGenerator<readonly Buffer[]> {
  for await (const pieces of source.read()) yield pieces
  if (!source.isEnded || source.error !== undefined) throw brokenOff(source.error)
}

const CHANGES = ['readable', 'end', 'error', 'close'] as const

function brokenOff(cause: Error | null | undefined): HttpError {
  if (cause instanceof HttpError) return cause
  return new HttpError('broken', `The answer broke off: ${cause?.message ?? 'Premature close'}`, { cause })
}

async function collect(source: AsyncIterable<Buffer>, limitBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of source) {
    pieces.push(piece)
    size += piece.length
    if (size > limitBytes) throw tooLarge(limitBytes)
  }
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, size)
}

function tooLarge(limitBytes: number): HttpError {
  return new HttpError('too-large', `The answer is larger than ${limitBytes} bytes`)
}
