/** W3C Trace Context: propagates a trace between programs in headers. */

export interface SpanContext {
  /** 32 and 16 hexadecimal digits. */
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
  /** Whether the span is another program's. */
  readonly isRemote: boolean
  /** The tracestate of other vendors, passed on unchanged; empty: none. */
  readonly traceState: string
  readonly baggage: string
}

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

const TRACEPARENT =
  /^(?<version>[\da-f]{2})-(?<traceId>[\da-f]{32})-(?<spanId>[\da-f]{16})-(?<flags>[\da-f]{2})(?<rest>-.*)?$/

/** Undefined where there is none, or none that makes sense. */
export function readTraceContext(headers: Headers): SpanContext | undefined {
  const { traceparent, tracestate, baggage } = headers
  const found = typeof traceparent === 'string' ? TRACEPARENT.exec(traceparent)?.groups : undefined
  if (found === undefined) return undefined
  const { version = '', traceId = '', spanId = '', flags = '', rest } = found
  // Later versions may say more; this one may not.
  if (version === 'ff' || (version === '00' && (rest !== undefined || Number.parseInt(flags, 16) > 2))) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1
  return { traceId, spanId, isSampled, isRemote: true, traceState: joined(tracestate), baggage: joined(baggage) }
}

function joined(value: string | readonly string[] | undefined): string {
  return typeof value === 'string' ? value : (value?.join(',') ?? '')
}

export function formatTraceparent({ traceId, spanId, isSampled }: SpanContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}
