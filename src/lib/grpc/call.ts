/** One call of a gRPC client: its stream, deadline, messages and status. */
import type { ClientHttp2Stream, IncomingHttpHeaders, IncomingHttpStatusHeader } from 'node:http2'

import { HTTP2_CODES, resetStream } from '../http/http2-reset.ts'
import type { CallSession } from './connection.ts'
import type { Ending } from './ending.ts'
import { Deframer } from './frame.ts'
import { checkEncoding, isGrpcContentType } from './method.ts'
import { GrpcError, readStatus, statusOfHttp, statusOfReset } from './status.ts'

/** Events of a call. `onEnd` comes last, exactly once; with an error unless the status was OK. */
export interface CallListener {
  onHeaders?(headers: IncomingHttpHeaders): void
  onMessage(message: Buffer): void
  onEnd(error: GrpcError | undefined, trailers: IncomingHttpHeaders): void
}

export interface CallStart {
  readonly headers: Record<string, string>
  readonly maxReceiveBytes: number
  readonly ending: Ending
}

export class Call {
  readonly #stream: ClientHttp2Stream
  readonly #listener: CallListener
  readonly #deframer: Deframer
  readonly #release: () => void
  #status: GrpcError | 'ok' | undefined
  #trailers: IncomingHttpHeaders = {}
  #ended = false
  #hasResponse = false

  /** Throws `GrpcError` if the call cannot even begin; the listener is then not called. */
  constructor(session: CallSession, start: CallStart, listener: CallListener) {
    this.#listener = listener
    this.#deframer = new Deframer(start.maxReceiveBytes)
    if (start.ending.error !== undefined) throw start.ending.error
    const stream = openStream(session, start.headers)
    this.#stream = stream
    session.openCalls++
    stream.on('response', (headers) => this.#guard(() => this.#onResponse(headers)))
    stream.on('data', (piece: Buffer) =>
      this.#guard(() => this.#deframer.push(piece, (one) => listener.onMessage(one))),
    )
    stream.on('trailers', (headers: IncomingHttpHeaders) => {
      this.#trailers = headers
      this.#status = readStatus(headers) ?? this.#status
    })
    stream.on('end', () => this.#onStreamEnd())
    stream.on('error', () => undefined) // 'close' follows, and knows why.
    stream.on('close', () => {
      session.openCalls--
      this.#onStreamClose()
    })
    this.#release = start.ending.onEnd((error) => this.cancel(error))
  }

  /** True when the server cannot have begun with the call, so that it may be sent once more. */
  get isUntouched(): boolean {
    return !this.#hasResponse && this.#stream.rstCode === HTTP2_CODES.refusedStream
  }

  /** False when the caller should wait for room before it sends more. */
  send(frame: Buffer): boolean {
    return this.#ended || this.#stream.write(frame)
  }

  /** Sends the last bytes, if any, and says that no more will come. */
  end(frame?: Buffer): void {
    if (!this.#ended) this.#stream.end(frame)
  }

  /** Runs `task` when there is room again; also when the call ends, so that no writer waits for ever. */
  onceDrained(task: () => void): void {
    const done = (): void => {
      this.#stream.off('drain', done)
      this.#stream.off('close', done)
      task()
    }
    this.#stream.on('drain', done)
    this.#stream.on('close', done)
  }

  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  /** Cancels the call at once and resets its stream, so that the server stops. */
  cancel(error: GrpcError): void {
    if (this.#ended) return
    this.#finish(error)
    resetStream(this.#stream, HTTP2_CODES.cancel)
  }

  #onResponse(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): void {
    this.#hasResponse = true
    this.#status = readStatus(headers)
    this.#trailers = headers
    const httpStatus = headers[':status'] ?? 0
    if (this.#status === undefined && (httpStatus !== 200 || !isGrpcContentType(headers['content-type']))) {
      const type = headers['content-type'] ?? 'no content type'
      const text = `unexpected HTTP status code received from server: ${httpStatus}; content type: "${type}"`
      throw new GrpcError(httpStatus === 200 ? 'unknown' : statusOfHttp(httpStatus), text, { trailers: headers })
    }
    checkEncoding(headers)
    this.#listener.onHeaders?.(headers)
  }

  /** Everything the server sent has been read. */
  #onStreamEnd(): void {
    if (this.#ended || this.#status === undefined) return
    if (this.#status === 'ok' && this.#deframer.isInside) this.#status = new GrpcError('internal', 'Message is cut off')
    this.#finish(this.#status === 'ok' ? undefined : this.#status)
    // The server is done although we may not be: nothing we could still send would be read.
    if (!this.#stream.writableEnded) this.#stream.close(HTTP2_CODES.noError)
  }

  #onStreamClose(): void {
    if (this.#ended) return
    if (this.#status !== undefined && this.#status !== 'ok') return this.#finish(this.#status)
    const { rstCode } = this.#stream
    const isLost = rstCode === undefined || rstCode === HTTP2_CODES.noError || this.#stream.session?.destroyed !== false
    const untouched = rstCode === HTTP2_CODES.refusedStream
    this.#finish(
      isLost && !untouched
        ? new GrpcError('unavailable', 'The connection was lost before the call was answered')
        : new GrpcError(statusOfReset(rstCode ?? 0), `The server reset the call with HTTP/2 code ${rstCode}`),
    )
  }

  #finish(error: GrpcError | undefined): void {
    this.#ended = true
    this.#release()
    this.#listener.onEnd(error, this.#trailers)
  }

  #guard(task: () => void): void {
    if (this.#ended) return
    try {
      task()
    } catch (error) {
      this.cancel(
        error instanceof GrpcError ? error : new GrpcError('internal', 'Cannot read the answer', { cause: error }),
      )
    }
  }
}

function openStream(session: CallSession, headers: Record<string, string>): ClientHttp2Stream {
  try {
    return session.http2.request(headers)
  } catch (cause) {
    // The session ended between the moment it was handed out and this one, or has run out of stream numbers.
    throw new GrpcError('unavailable', 'The connection was lost before the call was sent', { cause })
  }
}
