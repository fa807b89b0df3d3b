/** The OTLP messages that carry spans to a collector, by opentelemetry-proto v1. */
import { defineMethod, type Method } from '../grpc/method.ts'
import { defineMessage, type Input, type Message } from '../protobuf/message.ts'
import type { Int64 } from '../protobuf/wire.ts'

/** One of its fields. */
export interface OtlpValue {
  readonly string: string | undefined
  readonly bool: boolean | undefined
  readonly int: Int64 | undefined
  readonly double: number | undefined
}

export interface OtlpKeyValue {
  readonly key: string
  readonly value: OtlpValue | undefined
}

export interface OtlpEvent {
  readonly timeNanos: Int64
  readonly name: string
  readonly attributes: OtlpKeyValue[]
}

export interface OtlpLink {
  readonly traceId: Buffer
  readonly spanId: Buffer
  readonly traceState: string
  readonly flags: number
}

export interface OtlpSpan extends OtlpLink {
  readonly parentSpanId: Buffer
  readonly name: string
  readonly kind: number
  readonly startNanos: Int64
  readonly endNanos: Int64
  readonly attributes: OtlpKeyValue[]
  readonly events: OtlpEvent[]
  readonly links: OtlpLink[]
  readonly status: { readonly message: string; readonly code: number } | undefined
}

export interface ScopeSpans {
  readonly scope: { readonly name: string; readonly version: string } | undefined
  readonly spans: OtlpSpan[]
}

export interface ResourceSpans {
  readonly resource: { readonly attributes: OtlpKeyValue[] } | undefined
  readonly scopeSpans: ScopeSpans[]
}

export interface ExportRequest {
  readonly resourceSpans: ResourceSpans[]
}

const value: Message<OtlpValue> = defineMessage({
  string: [1, 'string', 'optional'],
  bool: [2, 'bool', 'optional'],
  int: [3, 'int64', 'optional'],
  double: [4, 'double', 'optional'],
})
const keyValue: Message<OtlpKeyValue> = defineMessage({ key: [1, 'string'], value: [2, value] })
const event: Message<OtlpEvent> = defineMessage({
  timeNanos: [1, 'fixed64'],
  name: [2, 'string'],
  attributes: [3, keyValue, 'repeated'],
})
const link: Message<OtlpLink> = defineMessage({
  traceId: [1, 'bytes'],
  spanId: [2, 'bytes'],
  traceState: [3, 'string'],
  flags: [6, 'fixed32'],
})
const span: Message<OtlpSpan> = defineMessage({
  traceId: [1, 'bytes'],
  spanId: [2, 'bytes'],
  traceState: [3, 'string'],
  parentSpanId: [4, 'bytes'],
  name: [5, 'string'],
  kind: [6, 'enum'],
  startNanos: [7, 'fixed64'],
  endNanos: [8, 'fixed64'],
  attributes: [9, keyValue, 'repeated'],
  events: [11, event, 'repeated'],
  links: [13, link, 'repeated'],
  status: [15, defineMessage({ message: [2, 'string'], code: [3, 'enum'] })],
  flags: [16, 'fixed32'],
})
const scopeSpans: Message<ScopeSpans> = defineMessage({
  scope: [1, defineMessage({ name: [1, 'string'], version: [2, 'string'] })],
  spans: [2, span, 'repeated'],
})
const resourceSpans: Message<ResourceSpans> = defineMessage({
  resource: [1, defineMessage({ attributes: [1, keyValue, 'repeated'] })],
  scopeSpans: [2, scopeSpans, 'repeated'],
})

export const EXPORT: Method<ExportRequest, Input<ExportRequest>, object, object> = defineMethod(
  '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
  defineMessage({ resourceSpans: [1, resourceSpans, 'repeated'] }),
  defineMessage({}),
)
