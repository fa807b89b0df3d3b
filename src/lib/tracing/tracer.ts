/** Tracer: starts spans, samples them, and passes ended ones to the exporter. */
import type { Clock } from '../clock.ts'
import type { Random } from '../random.ts'
import { Span, type SpanHost, type SpanPlan } from './span.ts'
import type { SpanContext } from './trace-context.ts'

export interface TracerOptions {
  readonly clock: Clock
  readonly random: Random
  /** Of a million traces that begin here, so many are kept; of others, those that their beginner keeps. */
  readonly samplingRatePerMillion: number
  readonly take: (span: Span) => void
}

export interface Tracer {
  /**
   * A span that continues the trace of another program, or begins one. A stranger's trace is not continued, but pointed to.
   * `startMs`: by `clock.elapsed()`, when it began earlier.
   */
  begin(name: string, plan: SpanPlan, origin: TraceOrigin): Span
}

export interface TraceOrigin {
  readonly remote: SpanContext | undefined
  readonly isStranger: boolean
  readonly startMs?: number
}

export function createTracer({ clock, random, samplingRatePerMillion, take }: TracerOptions): Tracer {
  // The clock of the world has whole milliseconds only, and may jump.
  const epochMs = clock.now() - clock.elapsed()
  const host: SpanHost = {
    nowMs: () => epochMs + clock.elapsed(),
    newSpanId: () => random.bytes(8).toString('hex'),
    take,
  }
  const isKept = (traceId: string): boolean => {
    const drawn = BigInt(`0x${traceId.slice(16)}`) >> 1n
    return drawn < (BigInt(samplingRatePerMillion) << 63n) / 1_000_000n
  }
  return {
    begin(name, plan, { remote, isStranger, startMs }) {
      const parent = isStranger ? undefined : remote
      const traceId = parent?.traceId ?? random.bytes(16).toString('hex')
      const traceState = parent?.traceState ?? ''
      const baggage = remote?.baggage ?? ''
      const isSampled = parent?.isSampled ?? isKept(traceId)
      const context = { traceId, spanId: host.newSpanId(), isSampled, isRemote: false, traceState, baggage }
      return new Span(host, name, plan, {
        context,
        parent,
        ...(isStranger && remote !== undefined && { links: [remote] }),
        ...(startMs !== undefined && { startMs: epochMs + startMs }),
      })
    },
  }
}
