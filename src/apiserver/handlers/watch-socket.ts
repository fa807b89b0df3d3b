/**
 * Watch by WebSocket: each event is one message, text for JSON and binary for protobuf. The handshake follows Go's: a
 * client must send an origin.
 */
import { TOKEN_PROTOCOL } from '#auth/credentials/protocol-token.ts'
import type { Answer, AnswerStream } from '#component/requests/call.ts'
import type { Clock } from '#lib/clock.ts'
import type { Exchange, SharedFrame } from '#lib/http/exchange.ts'
import { acceptWebSocket, offeredProtocols, type WebSocketConnection, WebSocketError } from '#lib/http/websocket.ts'
import { LENGTH_BYTES } from '#meta/codec/partial.ts'

import { asBuffer, type Frame } from './watch-frames.ts'

export interface SocketWatch {
  readonly clock: Clock
  /** True for JSON frames; others are protobuf, preceded by their length. */
  readonly isText: boolean
  readonly run: (out: AnswerStream) => Promise<void>
}

export function socketAnswer(exchange: Exchange, watch: SocketWatch): Answer {
  const protocols = offeredProtocols(exchange).filter((name) => !name.startsWith(TOKEN_PROTOCOL))
  if (!isOrigin(exchange.headers.origin ?? '')) return { status: 403, contentType: '', body: '' }
  if (protocols.length > 1) return { status: 400, contentType: '', body: '' }
  return {
    status: 101,
    async upgrade(own, signal) {
      try {
        await serve(await acceptWebSocket(own, { clock: watch.clock, choose: () => protocols[0] }), watch, signal)
      } catch (error) {
        // The client left or sent an invalid handshake; there is nothing to report.
        if (!(error instanceof WebSocketError)) throw error
      }
    },
  }
}

/** A URI with a scheme, or a path, as Go accepts. */
function isOrigin(text: string): boolean {
  return /^(?:[a-z][\d+.a-z-]*:|\/|\*$)/i.test(text)
}

async function serve(socket: WebSocketConnection, { isText, run }: SocketWatch, stopping: AbortSignal): Promise<void> {
  const gone = new AbortController()
  const signal = AbortSignal.any([gone.signal, stopping])
  void ignoreMessages(socket).then(() => gone.abort())
  let sending: Promise<void> = Promise.resolve()
  const closing = Promise.withResolvers<void>()
  const out: AnswerStream = {
    isMessages: true,
    write(frame) {
      sending = socket.send(messageOf(frame, isText))
      // A waiting writer gets the error; otherwise the abort signal reports that the client left.
      sending.catch(() => undefined)
      return socket.hasRoom
    },
    drained: () => sending.catch(() => undefined),
    end: () => void socket.close().then(closing.resolve, closing.resolve),
    abort: () => socket.destroy(),
    signal,
  }
  await run(out)
  await closing.promise
}

/** Reading detects that the client leaves. */
async function ignoreMessages(socket: WebSocketConnection): Promise<void> {
  try {
    for await (const _ of socket) void _
  } catch {
    // The client left without a close message.
  }
}

function messageOf(frame: Frame | SharedFrame, isText: boolean): string | Buffer {
  const bytes = typeof frame === 'object' && 'chunked' in frame ? frame.body : asBuffer(frame)
  return isText ? bytes.toString() : bytes.subarray(LENGTH_BYTES)
}
