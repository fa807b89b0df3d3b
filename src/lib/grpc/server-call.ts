/** One call of a gRPC server: incoming requests, outgoing responses and the status. */
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'

import type { Clock } from '../clock.ts'
import { HTTP2_CODES } from '../http/http2-reset.ts'
import { Ending } from './ending.ts'
import { Deframer } from './frame.ts'
import { Inbox } from './inbox.ts'
import type { Metadata } from './method.ts'
import { CONTENT_TYPE, parseTimeout, readMetadata } from './method.ts'
import { GrpcError, statusHeaders } from './status.ts'

/** The context of a call for its handler. */
export interface CallContext {
  readonly path: string
  readonly metadata: Metadata
  /** Aborted when the caller has gone, the deadline has passed or the server stops; the reason is a `GrpcError`. */
  readonly signal: AbortSignal
  /** Fill before the last answer: goes out after it. */
  readonly trailers: Map<string, string | Buffer>
}

export interface ServerCall {
  readonly context: CallContext
  readonly ending: Ending
  /** The one request of a call that takes one. */
  only(): Promise<Buffer>
  /** Requests one by one, read from the peer as they are wanted. */
  messages(): AsyncIterable<Buffer>
  /** Resolves when there is room for the next one; rejects when the call was ended from outside. */
  send(frame: Buffer): Promise<void>
  /** Sends the last answer, if any, and status OK. */
  finish(frame: Buffer | undefined, trailers: Record<string, string>): void
  /** Ends the call with an error; without effect when it has ended. */
  fail(error: GrpcError): void
}

interface Limits {
  readonly clock: Clock
  readonly maxReceiveBytes: number
  /** Ends all calls of the server. */
  readonly stopping: Ending
}

/** Throws `GrpcError` for a deadline that makes no sense. */
export function openServerCall(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, limits: Limits): ServerCall {
  const ending = new Ending()
  const timeoutMs = parseTimeout(headers['grpc-timeout'] as string | undefined)
  const timer =
    timeoutMs === undefined
      ? undefined
      : limits.clock.after(timeoutMs, () => ending.end(new GrpcError('deadlineExceeded', 'context deadline exceeded')))
  const release = limits.stopping.onEnd((error) => ending.end(error))
  const answer = answerOn(stream)
  stream.on('close', () => {
    timer?.cancel()
    release()
    if (!answer.isOver) ending.end(new GrpcError('cancelled', 'context canceled'))
  })
  // The status of an externally ended call is sent at once, even if its handler still waits.
  ending.onEnd(answer.fail)
  return {
    context: createContext(headers, ending),
    ending,
    only: () => readOnly(stream, limits.maxReceiveBytes, ending),
    messages: () => readAll(stream, limits.maxReceiveBytes, ending),
    send: (frame) => answer.send(frame, ending),
    finish: answer.finish,
    fail: answer.fail,
  }
}

function createContext(headers: IncomingHttpHeaders, ending: Ending): CallContext {
  let metadata: Metadata | undefined
  return {
    path: headers[':path'] ?? '',
    get metadata() {
      metadata ??= readMetadata(headers)
      return metadata
    },
    get signal() {
      return ending.signal
    },
    trailers: new Map(),
  }
}

interface Answer extends Pick<ServerCall, 'finish' | 'fail'> {
  readonly isOver: boolean
  send(frame: Buffer, ending: Ending): Promise<void>
}

function answerOn(stream: ServerHttp2Stream): Answer {
  let trailers: Record<string, string> | undefined
  let isOver = false
  const begin = (): void => {
    if (stream.headersSent) return
    stream.respond({ ':status': 200, 'content-type': CONTENT_TYPE }, { waitForTrailers: true })
    stream.on('wantTrailers', () => {
      stream.sendTrailers(trailers ?? statusHeaders(undefined))
      dropUnread(stream)
    })
  }
  return {
    get isOver() {
      return isOver
    },
    async send(frame, ending) {
      if (ending.error !== undefined) throw ending.error
      if (isOver || stream.destroyed) return
      begin()
      if (!stream.write(frame)) await drained(stream, ending)
    },
    finish(frame, extra) {
      if (isOver || stream.destroyed) return
      isOver = true
      begin()
      trailers = { ...extra, ...statusHeaders(undefined) }
      stream.end(frame)
    },
    fail(error) {
      if (isOver || stream.destroyed) return
      isOver = true
      if (!stream.headersSent) return refuse(stream, error)
      trailers = statusHeaders(error)
      stream.end()
    },
  }
}

/** A status without any answer: one header block. */
export function refuse(stream: ServerHttp2Stream, error: GrpcError): void {
  stream.respond({ ':status': 200, 'content-type': CONTENT_TYPE, ...statusHeaders(error) }, { endStream: true })
  dropUnread(stream)
}

/** Resets a stream whose peer is still sending, after the answer was sent: a reset would overtake queued data. */
function dropUnread(stream: ServerHttp2Stream): void {
  if (stream.readableEnded) return
  setImmediate(() => {
    if (!stream.destroyed) stream.close(HTTP2_CODES.noError)
  })
}

function drained(stream: ServerHttp2Stream, ending: Ending): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (): void => {
      release()
      stream.off('drain', done)
      resolve()
    }
    const release = ending.onEnd((error) => {
      stream.off('drain', done)
      reject(error)
    })
    stream.on('drain', done)
  })
}

/** By events instead of an iterator: unary calls are the many ones. */
function readOnly(stream: ServerHttp2Stream, limitBytes: number, ending: Ending): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const deframer = new Deframer(limitBytes)
    let request: Buffer | undefined
    const fail = (error: GrpcError): void => {
      stream.removeAllListeners('data')
      stream.resume()
      reject(error)
    }
    const release = ending.onEnd(reject)
    stream.on('data', (piece: Buffer) => {
      try {
        deframer.push(piece, (message) => {
          if (request !== undefined) throw new GrpcError('internal', 'More than one request for a call that takes one')
          request = message
        })
      } catch (error) {
        fail(error as GrpcError)
      }
    })
    stream.on('end', () => {
      release()
      if (request === undefined || deframer.isInside)
        fail(new GrpcError('internal', 'The request is missing or cut off'))
      else resolve(request)
    })
  })
}

function readAll(stream: ServerHttp2Stream, limitBytes: number, ending: Ending): AsyncIterable<Buffer> {
  const deframer = new Deframer(limitBytes)
  const inbox = new Inbox<Buffer>(
    (message) => message,
    () => stream.pause(),
  )
  inbox.attach(stream)
  stream.on('data', (piece: Buffer) => {
    try {
      deframer.push(piece, (message) => inbox.put(message))
    } catch (error) {
      stream.pause()
      inbox.finish(error as GrpcError)
    }
  })
  stream.on('end', () => {
    inbox.finish(deframer.isInside ? new GrpcError('internal', 'The last request is cut off') : undefined)
  })
  ending.onEnd((error) => inbox.finish(error))
  return inbox
}
