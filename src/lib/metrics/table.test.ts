import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createRegistry } from './metrics.ts'
import { createMeters, type FamilyRow, parseFamily } from './table.ts'

const TABLE = {
  requests_total: `counter STABLE [verb code] Requests by verb and code.`,
  request_seconds: `histogram:short ALPHA [] How long "[verb] x" took.`,
  old_requests: `gauge BETA/1.34.0 [verb] Use requests_total.`,
} as const

describe('parseFamily() of a metrics table', () => {
  it('reads type, stability, labels and help text', () => {
    const expected = {
      type: 'counter',
      stability: 'STABLE',
      labels: ['verb', 'code'],
      help: 'Requests by verb and code.',
    }
    assert.deepEqual(parseFamily(TABLE.requests_total), expected)
  })

  it('reads the buckets of a histogram and keeps brackets of the help text', () => {
    const help = 'How long "[verb] x" took.'
    assert.deepEqual(parseFamily(TABLE.request_seconds), {
      type: 'histogram',
      buckets: 'short',
      stability: 'ALPHA',
      labels: [],
      help,
    })
  })

  it('reads the release of a deprecation', () => {
    assert.equal(parseFamily(TABLE.old_requests).deprecatedSince, '1.34.0')
  })

  it('throws for an invalid row', () => {
    assert.throws(() => parseFamily('counter' as FamilyRow), /does not describe a metric family/)
  })
})

describe('createMeters() of a metrics table', () => {
  it('accepts exactly the labels of the row', () => {
    const meters = createMeters(createRegistry(), TABLE, { short: [1, 2] })
    meters.family('requests_total').labels('get', '200').inc()
    meters.family('request_seconds').labels().observe(1.5)
    assert.match(meters.registry.render(), /^requests_total\{code="200",verb="get"\} 1$/m)
    assert.match(meters.registry.render(), /^request_seconds_bucket\{le="2"\} 1$/m)
    // @ts-expect-error: one label value is missing
    assert.throws(() => meters.family('requests_total').labels('get'), /takes 2 label values, not 1/)
    // @ts-expect-error: a counter does not observe
    assert.equal(meters.family('requests_total').labels('get', '200').observe, undefined)
  })

  it('accepts only named buckets that exist', () => {
    // @ts-expect-error: there are no bounds named "short"
    const meters = createMeters(createRegistry(), TABLE, { long: [1, 2] })
    assert.throws(() => meters.family('missing' as 'request_seconds'))
  })
})
