/** Status codes of gRPC, their error class, and their encoding in headers. */
import { HTTP2_CODES } from '../http/http2-reset.ts'

export const STATUS = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const

export type StatusName = Exclude<keyof typeof STATUS, 'ok'>

const NAMES: readonly string[] = Object.keys(STATUS)

/** The error of every failed call; thrown by a handler it becomes the status of the call. */
export class GrpcError extends Error {
  override readonly name = 'GrpcError'
  readonly code: StatusName
  /** The whole header block that carried the status (lower-case names), for details beyond code and message. */
  readonly trailers: Readonly<Record<string, unknown>>

  constructor(code: StatusName, message: string, options?: ErrorOptions & { trailers?: Record<string, unknown> }) {
    super(message, options)
    this.code = code
    this.trailers = options?.trailers ?? {}
  }
}

/** Whether `error` is a failed call with this status. */
export function hasStatus(error: unknown, code: StatusName): boolean {
  return error instanceof GrpcError && error.code === code
}

/** The status a header block states: undefined when it states none, `ok`, or the error. */
export function readStatus(headers: Record<string, unknown>): GrpcError | 'ok' | undefined {
  const stated = headers['grpc-status']
  if (stated === undefined) return undefined
  const name =
    NAMES[typeof stated === 'string' && /^\d{1,2}$/.test(stated) ? Number(stated) : STATUS.unknown] ?? 'unknown'
  if (name === 'ok') return 'ok'
  const text = headers['grpc-message']
  const message = typeof text === 'string' ? decodeMessage(text) : ''
  return new GrpcError(name as StatusName, message, { trailers: headers })
}

export function statusHeaders(error: GrpcError | undefined): Record<string, string> {
  if (error === undefined) return { 'grpc-status': '0' }
  const status = { 'grpc-status': String(STATUS[error.code]) }
  return error.message === '' ? status : { ...status, 'grpc-message': encodeMessage(error.message) }
}

/** Percent-encodes everything but printable ASCII, and the percent sign. */
export function encodeMessage(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\x20-\x24\x26-\x7e]/gu, (character) =>
      [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
    )
}

/** Never fails: badly encoded text stays unchanged. */
export function decodeMessage(text: string): string {
  if (!text.includes('%')) return text
  const bytes: number[] = []
  for (let at = 0; at < text.length; at++) {
    const hex = /^%[0-9a-fA-F]{2}/.test(text.slice(at, at + 3)) ? text.slice(at + 1, at + 3) : undefined
    bytes.push(hex === undefined ? text.charCodeAt(at) & 0xff : Number.parseInt(hex, 16))
    if (hex !== undefined) at += 2
  }
  return Buffer.from(bytes).toString()
}

/** Status for an HTTP answer that did not come from a gRPC server, by the mapping of the gRPC specification. */
export function statusOfHttp(httpStatus: number): StatusName {
  switch (httpStatus) {
    case 400:
      return 'internal'
    case 401:
      return 'unauthenticated'
    case 403:
      return 'permissionDenied'
    case 404:
      return 'unimplemented'
    case 429:
    case 502:
    case 503:
    case 504:
      return 'unavailable'
    default:
      return 'unknown'
  }
}

/** Status for a stream that was reset, likewise. */
export function statusOfReset(code: number): StatusName {
  switch (code) {
    case HTTP2_CODES.refusedStream:
      return 'unavailable'
    case HTTP2_CODES.cancel:
      return 'cancelled'
    case HTTP2_CODES.enhanceYourCalm:
      return 'resourceExhausted'
    case HTTP2_CODES.inadequateSecurity:
      return 'permissionDenied'
    default:
      return 'internal'
  }
}
