/**
 * Sends spans to a collector, in batches, by OTLP over gRPC. Spans are dropped if the collector is too slow or too many
 * wait: tracing never blocks anything.
 */
import type { Clock, Timer } from '../clock.ts'
import { createGrpcClient } from '../grpc/client.ts'
import type { GrpcTarget } from '../grpc/connection.ts'
import type { Input } from '../protobuf/message.ts'
import type { Random } from '../random.ts'
import { withScope } from '../tracing/active.ts'
import { type Attributes, type AttributeValue, type Span, SPAN_KIND } from '../tracing/span.ts'
import type { SpanContext } from '../tracing/trace-context.ts'
import { EXPORT, type ExportRequest, type OtlpKeyValue, type OtlpSpan } from './otlp.ts'

export interface ExporterOptions {
  readonly clock: Clock
  readonly random: Random
  readonly target: GrpcTarget
  /** The resource of all spans. */
  readonly resource: Attributes
  readonly onError: (error: unknown) => void
}

export interface SpanExporter {
  take(span: Span): void
  /** Sends what is there; resolves when it has been taken or lost. */
  close(): Promise<void>
}

/** OpenTelemetry's own figures. */
const DELAY_MS = 5000
const BATCH_SPANS = 512
const QUEUE_SPANS = 2048
const TIMEOUT_MS = 10_000
/** The limit for the last batch, so that an unreachable collector does not delay the end of a program. */
const LAST_TIMEOUT_MS = 1000

export function createSpanExporter(options: ExporterOptions): SpanExporter {
  const { clock, random, target, resource, onError } = options
  const client = createGrpcClient({ targets: [target], clock, random, userAgent: 'OTel OTLP Exporter hyperkube' })
  let queue: Span[] = []
  let timer: Timer | undefined
  let sending: Promise<void> | undefined
  const closing = new AbortController()
  const send = async (): Promise<void> => {
    timer?.cancel()
    timer = undefined
    while (queue.length > 0) {
      const batch = queue.slice(0, BATCH_SPANS)
      queue = queue.slice(BATCH_SPANS)
      try {
        const patience = closing.signal.aborted
          ? { timeoutMs: LAST_TIMEOUT_MS }
          : { timeoutMs: TIMEOUT_MS, waitForReady: true, signal: closing.signal }
        await client.unary(EXPORT, requestOf(batch, resource), patience)
      } catch (error) {
        onError(error)
      }
    }
  }
  // Not within the span that happens to be the last of a batch: sending is not part of what it is about.
  const start = (): Promise<void> =>
    (sending ??= withScope({ span: undefined }, send).finally(() => (sending = undefined)))
  return {
    take(span) {
      if (queue.length >= QUEUE_SPANS) return
      queue.push(span)
      if (queue.length >= BATCH_SPANS) void start()
      else timer ??= clock.after(DELAY_MS, () => void start(), { background: true })
    },
    async close() {
      closing.abort()
      await sending
      await start()
      client.close()
    },
  }
}

function requestOf(spans: readonly Span[], resource: Attributes): Input<ExportRequest> {
  const byScope = Map.groupBy(spans, ({ scope }) => scope)
  const scopeSpans = Array.from(byScope, ([scope, own]) => ({ scope, spans: own.map(spanOf) }))
  return { resourceSpans: [{ resource: { attributes: keyValues(resource) }, scopeSpans }] }
}

const STATUS_ERROR = 2

function spanOf(span: Span): Input<OtlpSpan> {
  const { name, kind, context, parent, links, failure } = span
  return {
    ...idsOf(context),
    parentSpanId: Buffer.from(parent?.spanId ?? '', 'hex'),
    name,
    kind: SPAN_KIND[kind],
    startNanos: nanos(span.startMs),
    endNanos: nanos(span.endMs ?? span.startMs),
    attributes: keyValues(span.attributes),
    events: span.events.map((event) => ({
      name: event.name,
      timeNanos: nanos(event.timeMs),
      attributes: keyValues(event.attributes),
    })),
    links: links.map((link) => ({ ...idsOf(link), flags: flagsOf(link.isSampled, link.isRemote) })),
    status: failure === undefined ? {} : { code: STATUS_ERROR, message: failure },
    // Of the parent: whether it is another program's.
    flags: flagsOf(context.isSampled, parent?.isRemote === true),
  }
}

function idsOf({ traceId, spanId, traceState }: SpanContext): { traceId: Buffer; spanId: Buffer; traceState: string } {
  return { traceId: Buffer.from(traceId, 'hex'), spanId: Buffer.from(spanId, 'hex'), traceState }
}

const SAMPLED = 0x1
const KNOWS_REMOTE = 0x100
const IS_REMOTE = 0x200

function flagsOf(isSampled: boolean, isRemote: boolean): number {
  return (isSampled ? SAMPLED : 0) | KNOWS_REMOTE | (isRemote ? IS_REMOTE : 0)
}

function nanos(ms: number): bigint {
  const whole = Math.floor(ms)
  return BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6))
}

function keyValues(attributes: Attributes): Input<OtlpKeyValue>[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }))
}

function valueOf(value: AttributeValue): Input<NonNullable<OtlpKeyValue['value']>> {
  if (typeof value === 'string') return { string: value }
  if (typeof value === 'boolean') return { bool: value }
  return Number.isInteger(value) ? { int: value } : { double: value }
}
