import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '../clock.ts'
import { createSeededRandom } from '../random.ts'
import { activeSpan, withinSpan, withScope } from './active.ts'
import type { Span } from './span.ts'
import { readTraceContext } from './trace-context.ts'
import { createTracer, type Tracer } from './tracer.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'
const VALID = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331'

describe('header traceparent', () => {
  const table: readonly (readonly [header: string | undefined, isSampled: boolean | undefined])[] = [
    [`${VALID}-01`, true],
    [`${VALID}-00`, false],
    [`${VALID}-02`, false],
    [`${VALID}-03`, undefined],
    [`01-${TRACE}-${SPAN}-09-more`, true],
    [`ff-${TRACE}-${SPAN}-01`, undefined],
    [`${VALID}-01-more`, undefined],
    [`00-${TRACE.toUpperCase()}-${SPAN}-01`, undefined],
    [`00-${'0'.repeat(32)}-${SPAN}-01`, undefined],
    [`00-${TRACE}-${'0'.repeat(16)}-01`, undefined],
    [VALID, undefined],
    ['', undefined],
    [undefined, undefined],
  ]
  for (const [traceparent, isSampled] of table) {
    it(`${isSampled === undefined ? 'is ignored' : `has the sampling decision ${isSampled}`} if it is ${JSON.stringify(traceparent)}`, () => {
      assert.equal(readTraceContext({ traceparent })?.isSampled, isSampled)
    })
  }
})

function tracerFor(samplingRatePerMillion: number): { readonly tracer: Tracer; readonly taken: Span[] } {
  const taken: Span[] = []
  const clock = createVirtualClock()
  const random = createSeededRandom(7)
  return {
    tracer: createTracer({ clock, random, samplingRatePerMillion, take: (span) => void taken.push(span) }),
    taken,
  }
}

describe('a tracer', () => {
  const ours = { remote: undefined, isStranger: false }

  it('samples the configured share of new traces', () => {
    for (const [rate, least, most] of [
      [0, 0, 0],
      [1_000_000, 400, 400],
      [250_000, 60, 140],
    ] as const) {
      const { tracer, taken } = tracerFor(rate)
      for (let at = 0; at < 400; at++) tracer.begin('x', {}, ours).end()
      assert.ok(taken.length >= least && taken.length <= most, `${rate}: ${taken.length}`)
    }
  })

  it('follows the sampling decision of the parent, and always propagates the context', () => {
    const { tracer, taken } = tracerFor(1_000_000)
    const remote = readTraceContext({ traceparent: `00-${TRACE}-${SPAN}-00`, baggage: 'a=b' })
    const span = tracer.begin('x', {}, { remote, isStranger: false })
    span.event('unheard')
    span.end()
    assert.equal(taken.length, 0)
    assert.deepEqual(span.headers(), { traceparent: `00-${TRACE}-${span.context.spanId}-00`, baggage: 'a=b' })
  })

  it('exports each span once', () => {
    const { tracer, taken } = tracerFor(1_000_000)
    const span = tracer.begin('x', {}, ours)
    span.end()
    span.end()
    assert.equal(taken.length, 1)
  })
})

describe('the active span', () => {
  it('is the parent of operations inside it until it ends', async () => {
    const { tracer, taken } = tracerFor(1_000_000)
    assert.equal(activeSpan(), undefined)
    const scope = { span: tracer.begin('whole', {}, { remote: undefined, isStranger: false }) as Span | undefined }
    const whole = scope.span
    const later = Promise.withResolvers<void>()
    let seen: Span | undefined
    let straggler: Promise<Span | undefined> = Promise.resolve(undefined)
    await withScope(scope, async () => {
      straggler = later.promise.then(() => activeSpan())
      await withinSpan(
        'part',
        () => ({ a: 1 }),
        async () => void (seen = activeSpan()),
      )
    })
    scope.span = undefined
    later.resolve()
    assert.equal(await straggler, undefined)
    assert.equal(seen?.name, 'part')
    assert.deepEqual([seen?.parent, seen?.attributes], [whole?.context, { a: 1 }])
    assert.deepEqual(
      taken.map(({ name, events }) => [name, events.map((event) => event.name)]),
      [['part', ['Request completed']]],
    )
  })

  it('computes no attributes if it is absent', async () => {
    const attributes = (): never => assert.fail('asked for')
    assert.equal(await withinSpan('part', attributes, async () => 1), 1)
  })
})
