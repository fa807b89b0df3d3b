/** Sends a response: complete, in pieces, as an endless stream, or by handing over the connection. */
import type { Deadlines } from '#lib/deadlines.ts'
import type { Exchange, HeaderList } from '#lib/http/exchange.ts'

import {
  type Answer,
  type AnswerStream,
  isStream,
  isUpgrade,
  type StreamAnswer,
  type UpgradeAnswer,
  type WholeAnswer,
} from './call.ts'
import type { RequestMeter } from './request-meter.ts'
import { warningHeaders } from './warnings.ts'

export interface SendContext {
  readonly auditId: string
  readonly warnings: string[]
  /** The headers of every response. */
  readonly headers: string[]
  readonly streams: Streams
  readonly deadlines: Deadlines
  /** The timeout for producing the response, and then for sending it. */
  readonly limitMs: number
  readonly meter: Pick<RequestMeter, 'aborted'>
}

/** Undefined: the response was sent. */
export function send(exchange: Exchange, answer: Answer, context: SendContext): Promise<void> | undefined {
  if (isUpgrade(answer)) return upgradeTo(exchange, answer, context.streams)
  const headers = headersOf(answer, context)
  if (isStream(answer)) return streamTo(exchange, headers, answer, context.streams)
  const { status, body } = answer
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) return respondPieces(exchange, headers, answer, context)
  try {
    exchange.respond(status, headers, body)
  } finally {
    answer.sent?.()
  }
  return undefined
}

async function respondPieces(
  exchange: Exchange,
  headers: HeaderList,
  answer: WholeAnswer,
  { deadlines, limitMs, meter }: SendContext,
): Promise<void> {
  const { status, body, length } = answer
  // A client that reads a large response too slowly keeps its bytes in memory, so the time is limited.
  const deadline = deadlines(limitMs, () => {
    meter.aborted()
    exchange.fail()
  })
  try {
    const lengthBytes = length === undefined ? {} : { lengthBytes: length }
    await exchange.respondPieces(status, headers, { pieces: body as Iterable<Buffer>, ...lengthBytes })
  } finally {
    deadline.cancel()
    answer.sent?.()
  }
}

function headersOf(answer: WholeAnswer | StreamAnswer, { auditId, warnings, headers }: SendContext): string[] {
  const { contentType, headers: own } = answer
  const cacheControl = own?.['Cache-Control'] ?? 'no-cache, private'
  const all = ['Audit-Id', auditId, 'Cache-Control', cacheControl]
  if (contentType !== '') all.push('Content-Type', contentType)
  if ('passedOn' in answer) all.push(...(answer.passedOn ?? []))
  if (own !== undefined) {
    for (const [name, value] of Object.entries(own)) if (name !== 'Cache-Control') all.push(name, value)
  }
  if (warnings.length > 0) all.push(...warningHeaders(warnings))
  all.push(...headers)
  return all
}

/** The open streams. All of them end with the server. */
export interface Streams {
  /** `signal` is aborted when the stream must end. Call `release` when it has ended. */
  open(): AbortController
  release(stream: AbortController): void
}

/** One listener for all streams: a signal per stream, joined to the server's, would cost more than the watch itself. */
export function createStreams(draining: AbortSignal | undefined): Streams {
  const running = new Set<AbortController>()
  draining?.addEventListener('abort', () => running.forEach((stream) => stream.abort()), { once: true })
  return {
    open() {
      const stream = new AbortController()
      if (draining?.aborted) stream.abort()
      running.add(stream)
      return stream
    },
    release: (stream) => void running.delete(stream),
  }
}

async function streamTo(
  exchange: Exchange,
  headers: HeaderList,
  answer: StreamAnswer,
  streams: Streams,
): Promise<void> {
  const writer = exchange.stream(answer.status, headers)
  if (answer.isPatient === true) writer.bePatient()
  const gone = streams.open()
  writer.onClose(() => gone.abort())
  const out: AnswerStream = {
    sharesFrames: writer.sharesFrames,
    write(chunk) {
      if (typeof chunk === 'string') return writer.write(Buffer.from(chunk, 'latin1'))
      return Buffer.isBuffer(chunk) ? writer.write(chunk) : writer.writeFrame(chunk)
    },
    drained: () => writer.drained(),
    end: () => writer.end(),
    abort: () => writer.abort(),
    signal: gone.signal,
  }
  try {
    await answer.stream(out)
  } finally {
    streams.release(gone)
  }
}

async function upgradeTo(exchange: Exchange, answer: UpgradeAnswer, streams: Streams): Promise<void> {
  const gone = streams.open()
  try {
    await answer.upgrade(exchange, gone.signal)
  } finally {
    streams.release(gone)
  }
}
