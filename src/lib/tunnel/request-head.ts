/**
 * The heads of requests and responses on the streams of a tunnel. A stream with the protocol `request` carries one request:
 * a head (four bytes with its length, then JSON), then the body until the end of the stream. The response travels likewise.
 * After a response with status 101 both directions carry the bytes of the other protocol.
 */
import type { Readable } from 'node:stream'

import type { HeaderList } from '../http/exchange.ts'

export const REQUEST_PROTOCOL = 'request'

export interface TunnelRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: HeaderList
  /** Comes after the head. `end`: nothing. */
  readonly follows: 'end' | 'body' | 'upgrade'
}

export interface TunnelResponse {
  readonly status: number
  /** Names in lower case. */
  readonly headers: HeaderList
}

/** A head is malformed or too large, or the stream has ended before it was complete. */
export class HeadError extends Error {
  override readonly name = 'HeadError'
}

/** Twice what HTTP ports accept: the server adds the groups of the user. */
const MAX_HEAD_BYTES = 128 << 10
const LENGTH_BYTES = 4

/** Throws HeadError. */
export function encodeHead(head: TunnelRequest | TunnelResponse): Buffer {
  const text = JSON.stringify(head)
  const length = Buffer.byteLength(text)
  if (length > MAX_HEAD_BYTES) throw tooLarge(length)
  const bytes = Buffer.allocUnsafe(LENGTH_BYTES + length)
  bytes.writeUInt32BE(length)
  bytes.write(text, LENGTH_BYTES)
  return bytes
}

/** Takes the head off the stream and leaves all bytes after it there. Rejects with HeadError, or with the stream's error. */
export function readHead(stream: Readable): Promise<string> {
  return new Promise((resolve, reject) => {
    let length: number | undefined
    const settle = (finish: () => void): void => {
      stream.off('readable', look)
      stream.off('end', ended)
      stream.off('close', ended)
      finish()
    }
    const ended = (): void =>
      settle(() => reject(stream.errored ?? new HeadError('The stream has ended before the head was complete')))
    const look = (): void => {
      if (length === undefined) {
        const bytes = take(stream, LENGTH_BYTES)
        if (bytes === undefined) return
        length = bytes.readUInt32BE()
        if (length > MAX_HEAD_BYTES) return settle(() => reject(tooLarge(length ?? 0)))
      }
      const text = take(stream, length)
      if (text !== undefined) settle(() => resolve(text.toString()))
    }
    stream.on('readable', look)
    stream.on('end', ended)
    stream.on('close', ended)
    if (stream.closed) ended()
  })
}

/** Undefined: there are fewer. The end follows if there will be no more. */
function take(stream: Readable, bytes: number): Buffer | undefined {
  const piece = stream.read(bytes) as Buffer | null
  return piece === null || piece.length < bytes ? undefined : piece
}

/** Throws HeadError. */
export function decodeRequest(text: string): TunnelRequest {
  const { method, path, headers, follows } = parse(text)
  if (typeof method !== 'string' || !TOKEN.test(method)) throw new HeadError('The method is not valid')
  // eslint-disable-next-line no-control-regex
  if (typeof path !== 'string' || path === '' || /[^\u0021-\u007e\u0080-\u00ff]/.test(path))
    throw new HeadError('The path is not valid')
  if (follows !== 'end' && follows !== 'body' && follows !== 'upgrade')
    throw new HeadError('The head does not say what follows')
  return { method, path, headers: headersIn(headers), follows }
}

/** Throws HeadError. */
export function decodeResponse(text: string): TunnelResponse {
  const { status, headers } = parse(text)
  const isStatus = typeof status === 'number' && Number.isInteger(status) && status >= 200 && status <= 999
  if (!isStatus && status !== 101) throw new HeadError('The status is not valid')
  return { status, headers: headersIn(headers) }
}

/** The announced length of the body. Throws HeadError for several lengths, and for what is no length. */
export function announcedLength(contentLength: string | undefined): number | undefined {
  if (contentLength === undefined) return undefined
  if (!/^\d{1,15}$/.test(contentLength)) throw new HeadError('The content-length is not valid')
  return Number(contentLength)
}

const TOKEN = /^[\w!#$%&'*+.^`|~-]{1,256}$/
const NAME = /^[\da-z!#$%&'*+.^_`|~-]{1,256}$/
// As node:http: tab, and all characters of latin1 that are no control characters.
// eslint-disable-next-line no-control-regex
const BAD_VALUE = /[^\t\u0020-\u007e\u0080-\u00ff]/

function parse(text: string): Readonly<Record<string, unknown>> {
  let head: unknown
  try {
    head = JSON.parse(text)
  } catch {
    throw new HeadError('The head is not valid JSON')
  }
  if (typeof head !== 'object' || head === null) throw new HeadError('The head is not a JSON object')
  return head as Readonly<Record<string, unknown>>
}

function headersIn(list: unknown): HeaderList {
  if (!Array.isArray(list) || list.length % 2 > 0) throw new HeadError('The headers are no list of names and values')
  for (let at = 0; at < list.length; at += 2) {
    const [name, value] = [list[at] as unknown, list[at + 1] as unknown]
    if (typeof name !== 'string' || !NAME.test(name)) throw new HeadError('The name of a header is not valid')
    if (typeof value !== 'string' || BAD_VALUE.test(value)) throw new HeadError(`The header ${name} is not valid`)
  }
  return list as HeaderList
}

function tooLarge(bytes: number): HeadError {
  return new HeadError(`A head has ${bytes} bytes, more than ${MAX_HEAD_BYTES}`)
}
