/** Definitions that gRPC client and server share: methods with their codecs, metadata, and timeouts. */
import type { IncomingHttpHeaders } from 'node:http2'

import type { Input } from '../protobuf/message.ts'
import { GrpcError } from './status.ts'

/** Turns values into bytes and back; what it throws fails the call. `Message` of the protobuf folder is one. */
export interface Codec<Out, In = Out> {
  encode(value: In): Buffer
  decode(bytes: Buffer): Out
}

export interface Method<Request, RequestInput, Response, ResponseInput> {
  /** `/package.Service/Method` */
  readonly path: string
  readonly request: Codec<Request, RequestInput>
  readonly response: Codec<Response, ResponseInput>
}

/** A method whose messages are protobuf. */
export type Rpc<Request, Response> = Method<Request, Input<Request>, Response, Input<Response>>

export function defineMethod<Q, QIn, R, RIn>(
  path: `/${string}/${string}`,
  request: Codec<Q, QIn>,
  response: Codec<R, RIn>,
): Method<Q, QIn, R, RIn> {
  return { path, request, response }
}

/** Headers beside the messages, by lower-case name; names that end in `-bin` hold bytes, the others ASCII. */
export type Metadata = ReadonlyMap<string, string | Buffer>

/** Names that belong to the protocol. */
const RESERVED = /^(?::|grpc-|(?:te|content-type|user-agent|connection|host)$)/

export function metadataHeaders(metadata: Metadata | undefined): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of metadata ?? []) {
    if (!/^[a-z0-9_.-]+$/.test(name) || RESERVED.test(name)) {
      throw new GrpcError('internal', `Metadata cannot be called ${JSON.stringify(name)}`)
    }
    if (typeof value === 'string' && !/^[\x20-\x7e]*$/.test(value)) {
      throw new GrpcError('internal', `Metadata "${name}" is not ASCII; give it a name that ends in "-bin"`)
    }
    headers[name] = typeof value === 'string' ? value : value.toString('base64')
  }
  return headers
}

export function readMetadata(headers: IncomingHttpHeaders): Metadata {
  const metadata = new Map<string, string | Buffer>()
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || RESERVED.test(name)) continue
    const text = typeof value === 'string' ? value : value.join(', ')
    metadata.set(name, name.endsWith('-bin') ? Buffer.from(text, 'base64') : text)
  }
  return metadata
}

const UNITS_MS: readonly (readonly [unit: string, ms: number])[] = [
  ['n', 1e-6],
  ['u', 1e-3],
  ['m', 1],
  ['S', 1000],
  ['M', 60_000],
  ['H', 3_600_000],
]

/** Header `grpc-timeout` has at most eight digits: the finest unit that fits, rounded up, never below zero. */
export function encodeTimeout(ms: number): string {
  for (const [unit, size] of UNITS_MS.slice(2)) {
    const count = Math.max(0, Math.ceil(ms / size))
    if (count < 1e8) return `${count}${unit}`
  }
  return '99999999H'
}

/** Undefined when there is none. Throws `GrpcError` for one that makes no sense. */
export function parseTimeout(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? []
  const size = UNITS_MS.find(([name]) => name === unit)?.[1]
  if (digits === undefined || size === undefined) {
    throw new GrpcError('internal', `malformed grpc-timeout: ${JSON.stringify(text)}`)
  }
  return Number(digits) * size
}

/** Requests with content types other than this, or this with a suffix, are not gRPC. */
export const CONTENT_TYPE = 'application/grpc'

export function isGrpcContentType(value: string | undefined): boolean {
  return value !== undefined && /^application\/grpc(?:[+;]|$)/.test(value)
}

/** Compression other than `identity` is refused clearly instead of being misread. */
export function checkEncoding(headers: IncomingHttpHeaders): void {
  const encoding = headers['grpc-encoding']
  if (encoding === undefined || encoding === 'identity') return
  throw new GrpcError('unimplemented', `Compression ${JSON.stringify(encoding)} is not supported, only "identity"`)
}

/** As large as etcd and container runtimes answer; grpc-go's default of 4 MiB is too little for both. */
export const MAX_RECEIVE_BYTES: number = 16 << 20
