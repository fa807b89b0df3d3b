import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { createBufferedSink } from './buffered.ts'
import { exampleEvent } from './event.fixture.ts'
import type { AuditEvent } from './event.ts'
import { createLogSink } from './log-sink.ts'
import { ignoringErrors, type ReportLoss, type Sink, unionOf } from './sink.ts'
import { createTruncatingSink } from './truncate.ts'
import { createWebhookSink } from './webhook-sink.ts'

const events = (count: number, changes: Partial<AuditEvent> = {}): AuditEvent[] =>
  Array.from({ length: count }, (_, at) => exampleEvent({ auditId: String(at), ...changes }))

interface Collecting extends Sink {
  readonly batches: string[][]
  closed: boolean
}

function collecting(outcome: boolean | (() => Promise<boolean>) = true): Collecting {
  const batches: string[][] = []
  return {
    name: 'test',
    isStrict: true,
    batches,
    closed: false,
    process(batch) {
      batches.push(batch.map(({ auditId }) => auditId))
      return typeof outcome === 'boolean' ? outcome : outcome()
    },
    close() {
      this.closed = true
      return Promise.resolve()
    },
  }
}

function losses(): { readonly lost: string[]; readonly report: ReportLoss } {
  const lost: string[] = []
  return {
    lost,
    report: (plugin, error, list) => void lost.push(`${plugin}: ${(error as Error).message} ${list.length}`),
  }
}

describe('several audit sinks combined', () => {
  it('report success only if all sinks stored the events', async () => {
    const [good, bad] = [collecting(), collecting(() => Promise.resolve(false))]
    assert.equal(unionOf([good, collecting()]).process(events(1)), true)
    assert.equal(await unionOf([good, bad]).process(events(1)), false)
    assert.equal(unionOf([bad]), bad)
    assert.equal(unionOf([good, bad]).name, 'union[test,test]')
  })

  it('close one after the other', async () => {
    const sinks = [collecting(), collecting()]
    await unionOf(sinks).close()
    assert.deepEqual(
      sinks.map(({ closed }) => closed),
      [true, true],
    )
  })

  it('report success despite a failure if they are configured to ignore errors', async () => {
    const sink = ignoringErrors(collecting(() => Promise.resolve(false)))
    assert.equal(await sink.process(events(1)), true)
    assert.equal(sink.isStrict, false)
  })
})

describe('buffered audit sink', () => {
  const options = { bufferSize: 10, maxBatchSize: 3, maxBatchWaitMs: 1000, isConcurrent: true }

  it('sends a full batch at once and a partial batch after a wait', async () => {
    const clock = createVirtualClock()
    const sink = collecting()
    const buffered = createBufferedSink(sink, options, { clock, reportLoss: losses().report })
    assert.equal(buffered.process(events(4)), true)
    await clock.advance(1)
    assert.deepEqual(sink.batches, [['0', '1', '2']])
    await clock.advance(1000)
    assert.deepEqual(sink.batches, [['0', '1', '2'], ['3']])
  })

  it('drops and reports events that exceed its buffer', async () => {
    const clock = createVirtualClock()
    const { lost, report } = losses()
    const sink = collecting()
    const buffered = createBufferedSink(sink, options, { clock, reportLoss: report })
    assert.equal(buffered.process(events(12)), true)
    assert.deepEqual(lost, ['buffered: audit buffer queue blocked 2'])
    await clock.advance(2000)
    assert.equal(sink.batches.flat().length, 10)
  })

  it('limits the number of batches per second', async () => {
    const clock = createVirtualClock()
    const sink = collecting()
    const throttle = { qps: 2, burst: 1 }
    const buffered = createBufferedSink(sink, { ...options, throttle }, { clock, reportLoss: losses().report })
    void buffered.process(events(9))
    await clock.advance(0)
    assert.equal(sink.batches.length, 1)
    await clock.advance(500)
    assert.equal(sink.batches.length, 2)
    await clock.advance(500)
    assert.equal(sink.batches.length, 3)
  })

  it('sends one batch at a time if batches must stay in order', async () => {
    const clock = createVirtualClock()
    const gate = Promise.withResolvers<boolean>()
    const sink = collecting(() => gate.promise)
    const buffered = createBufferedSink(
      sink,
      { ...options, isConcurrent: false },
      { clock, reportLoss: losses().report },
    )
    void buffered.process(events(6))
    await clock.advance(5000)
    assert.equal(sink.batches.length, 1)
    gate.resolve(true)
    await clock.advance(1)
    assert.equal(sink.batches.length, 2)
  })

  it('flushes its buffer on close and accepts no events afterwards', async () => {
    const clock = createVirtualClock()
    const { lost, report } = losses()
    const sink = collecting()
    const buffered = createBufferedSink(sink, options, { clock, reportLoss: report })
    void buffered.process(events(2))
    await buffered.close()
    assert.deepEqual([sink.batches, sink.closed], [[['0', '1']], true])
    void buffered.process(events(1))
    assert.deepEqual(lost, ['buffered: audit backend shut down 1'])
  })
})

describe('truncating audit sink', () => {
  it('removes the objects of events that are too large, and drops events that are still too large', async () => {
    const { lost, report } = losses()
    const kept: AuditEvent[] = []
    const sink: Sink = { ...collecting(), process: (list) => (kept.push(...list), true) }
    const truncating = createTruncatingSink(sink, { maxEventBytes: 1000, maxBatchBytes: 10_000 }, report)
    const large = `"${'x'.repeat(1000)}"`
    const [small, cut] = [exampleEvent(), exampleEvent({ level: 'Request', requestObject: large })]
    const hopeless = exampleEvent({ level: 'Request', annotations: new Map([['a', 'x'.repeat(1000)]]) })
    const metadata = exampleEvent({ annotations: new Map([['a', 'x'.repeat(1000)]]) })
    assert.equal(await truncating.process([small, cut, hopeless, metadata]), true)
    assert.deepEqual(
      kept.map(({ requestObject, annotations }) => [requestObject, annotations.get('audit.k8s.io/truncated')]),
      [
        [undefined, undefined],
        [undefined, 'true'],
      ],
    )
    assert.deepEqual(lost, ['truncate: event is too large even after truncating 2'])
  })

  it('splits batches that are too large', async () => {
    const sink = collecting()
    const truncating = createTruncatingSink(sink, { maxEventBytes: 1000, maxBatchBytes: 1500 }, losses().report)
    await truncating.process(events(4))
    assert.ok(sink.batches.length > 1)
    assert.deepEqual(sink.batches.flat(), ['0', '1', '2', '3'])
  })
})

describe('audit sink for logs', () => {
  const writer = (outcome: (line: string) => Promise<void>) => ({ write: outcome, close: () => Promise.resolve() })

  it('writes a line for each event in the configured format', async () => {
    const lines: string[] = []
    const write = (line: string): Promise<void> => Promise.resolve(void lines.push(line))
    assert.equal(await createLogSink(writer(write), 'json', losses().report).process(events(2)), true)
    assert.equal(await createLogSink(writer(write), 'legacy', losses().report).process(events(1)), true)
    assert.deepEqual(
      lines.map((line) => line.at(-1)),
      ['\n', '\n', '\n'],
    )
    assert.deepEqual(
      lines.map((line) => line.slice(0, 10)),
      ['{"kind":"E', '{"kind":"E', '2026-01-02'],
    )
  })

  it('reports each event that it failed to write', async () => {
    const { lost, report } = losses()
    const sink = createLogSink(
      writer(() => Promise.reject(new Error('ENOSPC'))),
      'json',
      report,
    )
    assert.equal(await sink.process(events(2)), false)
    assert.deepEqual(lost, ['log: ENOSPC 1', 'log: ENOSPC 1'])
  })
})

describe('audit sink for webhooks', () => {
  function create(outcomes: readonly (Error | undefined)[]) {
    const clock = createVirtualClock()
    const { lost, report } = losses()
    const bodies: string[] = []
    const sink = createWebhookSink({
      clock,
      random: createSeededRandom(1),
      async post(body) {
        const outcome = outcomes[bodies.length]
        bodies.push(body.toString())
        if (outcome !== undefined) throw outcome
      },
      close: () => undefined,
      initialBackoffMs: 1000,
      reportLoss: report,
    })
    return { clock, sink, bodies, lost }
  }

  it('sends an EventList', async () => {
    const { sink, bodies } = create([])
    assert.equal(await sink.process(events(2)), true)
    const { kind, items } = JSON.parse(bodies[0]!) as { kind: string; items: unknown[] }
    assert.deepEqual([kind, items.length], ['EventList', 2])
  })

  it('retries with exponential backoff', async () => {
    const away = new Error('away')
    const { clock, sink, bodies } = create([away, away])
    const done = Promise.resolve(sink.process(events(1)))
    await clock.advance(999)
    assert.equal(bodies.length, 1)
    await clock.advance(201)
    assert.equal(bodies.length, 2)
    await clock.advance(1800)
    assert.deepEqual([bodies.length, await done], [3, true])
  })

  it('drops events after five attempts', async () => {
    const { clock, sink, bodies, lost } = create(Array.from({ length: 9 }, () => new Error('away')))
    const done = Promise.resolve(sink.process(events(3)))
    await clock.advance(60_000)
    assert.deepEqual([await done, bodies.length, lost], [false, 5, ['webhook: away 3']])
  })
})
