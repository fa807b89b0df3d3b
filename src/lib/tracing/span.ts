/** A span: an operation with its start, end and parent. Spans that are not sampled only propagate their context. */
import { formatTraceparent, type SpanContext } from './trace-context.ts'

export type AttributeValue = string | number | boolean
export type Attributes = Readonly<Record<string, AttributeValue>>

/** As OTLP numbers them. */
export const SPAN_KIND = { internal: 1, server: 2, client: 3 } as const

export interface SpanEvent {
  readonly name: string
  readonly timeMs: number
  readonly attributes: Attributes
}

export interface SpanPlan {
  readonly kind?: keyof typeof SPAN_KIND
  /** The library that upstream has such spans from. */
  readonly scope?: InstrumentationScope
  readonly attributes?: Attributes
  /** When it began, where that was before. */
  readonly startMs?: number | undefined
}

export interface InstrumentationScope {
  readonly name: string
  readonly version: string
}

/** Of spans that components make by themselves. */
export const COMPONENT_SCOPE: InstrumentationScope = { name: 'k8s.io/component-base/tracing', version: '' }

/** The dependencies of spans. */
export interface SpanHost {
  /** Of the world, with fractions. */
  nowMs(): number
  newSpanId(): string
  /** Takes a span that has ended. */
  take(span: Span): void
}

export interface SpanOrigin {
  readonly context: SpanContext
  readonly parent?: SpanContext | undefined
  readonly links?: readonly SpanContext[]
  readonly startMs?: number
}

export class Span {
  readonly name: string
  readonly kind: keyof typeof SPAN_KIND
  readonly scope: InstrumentationScope
  readonly context: SpanContext
  readonly parent: SpanContext | undefined
  readonly links: readonly SpanContext[]
  readonly startMs: number
  readonly attributes: Record<string, AttributeValue>
  readonly events: SpanEvent[] = []
  /** The error; undefined if none was recorded. */
  failure: string | undefined
  endMs: number | undefined
  readonly #host: SpanHost

  constructor(host: SpanHost, name: string, plan: SpanPlan, origin: SpanOrigin) {
    this.#host = host
    this.name = name
    this.kind = plan.kind ?? 'internal'
    this.scope = plan.scope ?? COMPONENT_SCOPE
    this.context = origin.context
    this.parent = origin.parent
    this.links = origin.links ?? []
    this.startMs = plan.startMs ?? origin.startMs ?? host.nowMs()
    this.attributes = { ...plan.attributes }
  }

  set(attributes: Attributes): void {
    Object.assign(this.attributes, attributes)
  }

  event(name: string, attributes: Attributes = {}): void {
    if (this.context.isSampled) this.events.push({ name, timeMs: this.#host.nowMs(), attributes })
  }

  fail(why: string): void {
    this.failure = why
  }

  child(name: string, plan: SpanPlan = {}): Span {
    const context = { ...this.context, spanId: this.#host.newSpanId(), isRemote: false }
    return new Span(this.#host, name, plan, { context, parent: this.context })
  }

  /** Once; what comes after the first is ignored. */
  end(): void {
    if (this.endMs !== undefined) return
    this.endMs = this.#host.nowMs()
    if (this.context.isSampled) this.#host.take(this)
  }

  /** The context for outgoing requests. */
  headers(): Record<string, string> {
    const { traceState, baggage } = this.context
    return {
      traceparent: formatTraceparent(this.context),
      ...(traceState !== '' && { tracestate: traceState }),
      ...(baggage !== '' && { baggage }),
    }
  }
}
