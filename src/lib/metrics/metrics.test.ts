import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { createRegistry, DEFAULT_BUCKETS, exponentialBuckets, linearBuckets } from './metrics.ts'
import { formatFloat } from './text.ts'

describe('numbers in Prometheus text format', () => {
  const table: readonly [number, string][] = [
    [0, '0'],
    [-0, '-0'],
    [1, '1'],
    [-1, '-1'],
    [0.005, '0.005'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [123456, '123456'],
    [999999.5, '999999.5'],
    [1000000, '1e+06'],
    [-1234567, '-1.234567e+06'],
    [1113174016, '1.113174016e+09'],
    [1.64275784724e9, '1.64275784724e+09'],
    [1.8446744073709552e19, '1.8446744073709552e+19'],
    [1e100, '1e+100'],
    [5e-324, '5e-324'],
    [Infinity, '+Inf'],
    [-Infinity, '-Inf'],
    [NaN, 'NaN'],
  ]
  for (const [value, text] of table) it(`writes ${text}`, () => assert.equal(formatFloat(value), text))

  it('are parsed back to the same values', () => {
    fc.assert(
      fc.property(fc.double({ noDefaultInfinity: true }), (value) => assert.equal(Number(formatFloat(value)), value)),
    )
  })
})

describe('metrics counter', () => {
  it('starts at 0 and counts increments', () => {
    const registry = createRegistry()
    const requests = registry.counter({ name: 'requests_total', help: 'Requests.' }).labels()
    assert.equal(
      registry.render(),
      '# HELP requests_total Requests.\n# TYPE requests_total counter\nrequests_total 0\n',
    )
    requests.inc()
    requests.inc(2.5)
    assert.equal(requests.value, 3.5)
    assert.match(registry.render(), /^requests_total 3\.5$/m)
  })

  it('throws for a negative increment', () => {
    const counter = createRegistry().counter({ name: 'requests_total', help: 'Requests.' }).labels()
    assert.throws(() => counter.inc(-1), /"requests_total" cannot grow by "-1"/)
    assert.throws(() => counter.inc(NaN), RangeError)
    assert.equal(counter.value, 0)
  })
})

describe('metrics gauge', () => {
  it('goes up and down', () => {
    const gauge = createRegistry().gauge({ name: 'depth', help: 'Depth.' }).labels()
    gauge.set(10)
    gauge.inc()
    gauge.dec(3)
    assert.equal(gauge.value, 8)
  })
})

describe('metrics labels', () => {
  it('are ordered by name, and series by value, whatever the order of declaration and use', () => {
    const registry = createRegistry()
    const family = registry.counter({ name: 'x_total', help: 'X.', labels: ['verb', 'code'] })
    family.labels('LIST', '200').inc()
    family.labels('GET', '404').inc(2)
    family.labels('GET', '200').inc(3)
    assert.equal(
      registry.render(),
      [
        '# HELP x_total X.',
        '# TYPE x_total counter',
        'x_total{code="200",verb="GET"} 3',
        'x_total{code="200",verb="LIST"} 1',
        'x_total{code="404",verb="GET"} 2',
        '',
      ].join('\n'),
    )
  })

  it('map equal values to one handle and different values to different ones', () => {
    const words = fc.string({ maxLength: 3, unit: fc.constantFrom('a', ':', '1', '"', '\n') })
    fc.assert(
      fc.property(fc.tuple(words, words), fc.tuple(words, words), (one, other) => {
        const family = createRegistry().gauge({ name: 'x', help: 'X.', labels: ['a', 'b'] })
        const same = one[0] === other[0] && one[1] === other[1]
        assert.equal(family.labels(...one) === family.labels(...other), same)
      }),
    )
  })

  it('are escaped, like the help text', () => {
    const registry = createRegistry()
    registry
      .gauge({ name: 'x', help: 'Back\\slash\nand "quotes".', labels: ['path'] })
      .labels('C:\\a\n"b"')
      .set(1)
    assert.equal(
      registry.render(),
      '# HELP x Back\\\\slash\\nand "quotes".\n# TYPE x gauge\nx{path="C:\\\\a\\n\\"b\\""} 1\n',
    )
  })

  it('disappear when their series is removed, and a family without series is not written', () => {
    const registry = createRegistry()
    const family = registry.gauge({ name: 'x', help: 'X.', labels: ['node'] })
    assert.equal(registry.render(), '')
    family.labels('a').set(1)
    family.labels('b').set(2)
    family.remove('a')
    assert.doesNotMatch(registry.render(), /node="a"/)
    assert.match(registry.render(), /^x\{node="b"\} 2$/m)
    family.clear()
    assert.equal(registry.render(), '')
  })

  it('must have the declared number of values', () => {
    const family = createRegistry().gauge({ name: 'x', help: 'X.', labels: ['a', 'b'] })
    assert.throws(() => family.labels(...(['only one'] as unknown as ['a', 'b'])), /takes 2 label values, not 1/)
  })

  it('escape quotes, backslashes and line breaks in values', () => {
    const registry = createRegistry()
    const family = registry.counter({ name: 'x_total', help: 'X.', labels: ['agent'] })
    family.labels('__proto__').inc()
    family.labels('constructor').inc(2)
    assert.equal(family.labels('toString').value, 0)
    assert.match(registry.render(), /agent="__proto__"\} 1\n[^]*agent="constructor"\} 2\n/)
  })
})

describe('metrics histogram', () => {
  it('counts each observation in every bucket that contains it', () => {
    const registry = createRegistry()
    const family = registry.histogram({
      name: 'took_seconds',
      help: 'Took.',
      labels: ['verb'],
      buckets: [0.1, 1, Infinity],
    })
    const took = family.labels('GET')
    for (const seconds of [0.05, 0.1, 0.5, 3]) took.observe(seconds)
    assert.equal(
      registry.render(),
      [
        '# HELP took_seconds Took.',
        '# TYPE took_seconds histogram',
        'took_seconds_bucket{verb="GET",le="0.1"} 2',
        'took_seconds_bucket{verb="GET",le="1"} 3',
        'took_seconds_bucket{verb="GET",le="+Inf"} 4',
        'took_seconds_sum{verb="GET"} 3.65',
        'took_seconds_count{verb="GET"} 4',
        '',
      ].join('\n'),
    )
    assert.equal(took.count, 4)
    assert.equal(took.sum, 3.65)
  })

  it('has default buckets, and only the label le without other labels', () => {
    const registry = createRegistry()
    registry.histogram({ name: 'took_seconds', help: 'Took.' }).labels().observe(7)
    const text = registry.render()
    for (const bound of DEFAULT_BUCKETS)
      assert.ok(text.includes(`took_seconds_bucket{le="${bound}"} ${bound < 7 ? 0 : 1}\n`))
    assert.match(text, /^took_seconds_sum 7\ntook_seconds_count 1$/m)
  })

  it('counts NaN only in the bucket +Inf', () => {
    const registry = createRegistry()
    const took = registry.histogram({ name: 'took_seconds', help: 'Took.', buckets: [1] }).labels()
    took.observe(NaN)
    assert.match(registry.render(), /le="1"\} 0\ntook_seconds_bucket\{le="\+Inf"\} 1\ntook_seconds_sum NaN\n/)
  })

  it('rejects buckets that are not ascending', () => {
    assert.throws(
      () => createRegistry().histogram({ name: 'x', help: 'X.', buckets: [1, 1] }),
      /must ascend, got "1, 1"/,
    )
  })

  it('agrees with a simple count', () => {
    const bounds = fc.uniqueArray(fc.double({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 8 })
    const values = fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { maxLength: 30 })
    fc.assert(
      fc.property(bounds, values, (unsorted, observed) => {
        const buckets = [...new Set(unsorted.map((bound) => bound + 0))].sort((a, b) => a - b)
        const registry = createRegistry()
        const series = registry.histogram({ name: 'x', help: 'X.', buckets }).labels()
        for (const value of observed) series.observe(value)
        const text = registry.render()
        for (const bound of buckets) {
          const below = observed.filter((value) => value <= bound).length
          assert.ok(text.includes(`x_bucket{le="${formatFloat(bound)}"} ${below}\n`))
        }
      }),
    )
  })
})

describe('metrics bucket functions', () => {
  it('have the same rounding as upstream', () => {
    assert.deepEqual(exponentialBuckets(10e-7, 10, 4).map(formatFloat), [
      '1e-06',
      '9.999999999999999e-06',
      '9.999999999999999e-05',
      '0.001',
    ])
    assert.deepEqual(linearBuckets(0, 5, 4), [0, 5, 10, 15])
  })
})

describe('metrics registry', () => {
  it('writes the stability and deprecation of a metric into its help text', () => {
    const registry = createRegistry()
    registry.gauge({ name: 'a', help: 'A.', stability: 'STABLE' })
    registry.gauge({ name: 'b', help: 'B.', stability: 'ALPHA', deprecatedSince: '1.35.0' })
    assert.match(registry.render(), /^# HELP a \[STABLE\] A\.$/m)
    assert.match(registry.render(), /^# HELP b \[ALPHA\] \(Deprecated since 1\.35\.0\) B\.$/m)
  })

  it('writes families in order of name, in one chunk each', () => {
    const registry = createRegistry()
    for (const name of ['c', 'a', 'b']) registry.gauge({ name, help: name })
    const chunks = [...registry.chunks()]
    assert.deepEqual(
      chunks.map((chunk) => chunk.split(' ')[2]),
      ['a', 'b', 'c'],
    )
    assert.equal(chunks.join(''), registry.render())
  })

  it('rejects a repeated name, an invalid name and an invalid label', () => {
    const registry = createRegistry()
    registry.counter({ name: 'x_total', help: 'X.' })
    assert.throws(() => registry.gauge({ name: 'x_total', help: 'X.' }), /"x_total" is declared twice/)
    assert.throws(() => registry.gauge({ name: '0x', help: 'X.' }), /"0x" cannot name a metric/)
    for (const labels of [['a-b'], ['le'], ['__name__'], ['a', 'a']]) {
      assert.throws(() => registry.gauge({ name: 'y', help: 'Y.', labels }), /cannot name a label of metric "y"/)
    }
  })

  it('calls callbacks at each scrape, and writes only series that they emit', () => {
    const registry = createRegistry()
    const depths = new Map([
      ['b', 2],
      ['a', 1],
    ])
    registry.callback({
      type: 'gauge',
      name: 'depth',
      help: 'Depth.',
      labels: ['queue'],
      stability: 'BETA',
      collect(emit) {
        for (const [queue, depth] of depths) emit(depth, queue)
      },
    })
    const head = '# HELP depth [BETA] Depth.\n# TYPE depth gauge\n'
    assert.equal(registry.render(), `${head}depth{queue="a"} 1\ndepth{queue="b"} 2\n`)
    depths.delete('b')
    depths.set('a', 7)
    assert.equal(registry.render(), `${head}depth{queue="a"} 7\n`)
    depths.clear()
    assert.equal(registry.render(), '')
  })

  it('rejects a callback that emits one series twice', () => {
    const registry = createRegistry()
    const collect = (emit: (value: number) => void): void => {
      emit(1)
      emit(2)
    }
    registry.callback({ type: 'counter', name: 'x_total', help: 'X.', collect })
    assert.throws(() => registry.render(), /"x_total" was collected twice/)
  })
})

describe('metrics reset', () => {
  it('resets counts, and existing handles continue to count', () => {
    const registry = createRegistry()
    const requests = registry.counter({ name: 'requests_total', help: 'Requests.', labels: ['code'] }).labels('200')
    const times = registry.histogram({ name: 'seconds', help: 'Times.', labels: ['code'] }).labels('200')
    const errors = registry.counter({ name: 'errors_total', help: 'Errors.' }).labels()
    const running = registry.gauge({ name: 'running', help: 'Running.', labels: ['kind'] }).labels('read')
    for (const handle of [requests, errors, running]) handle.inc()
    times.observe(1)
    registry.reset()
    assert.deepEqual(registry.render().match(/^\w.*$/gm), ['errors_total 0', 'running{kind="read"} 1'])
    requests.inc()
    times.observe(2)
    assert.match(registry.render(), /^requests_total\{code="200"\} 1$/m)
    assert.match(registry.render(), /^seconds_sum\{code="200"\} 2$/m)
  })
})

describe('metrics rules', () => {
  it('omit hidden families, whose handles have no effect', () => {
    const registry = createRegistry({ isHidden: ({ name }) => name === 'old' })
    registry.counter({ name: 'old', help: 'Old.' }).labels().inc()
    registry.counter({ name: 'new', help: 'New.' }).labels().inc()
    assert.deepEqual(registry.render().match(/^\w.*$/gm), ['new 1'])
    assert.deepEqual(
      [...registry.declared()].map(({ name }) => name),
      ['old', 'new'],
    )
    assert.throws(() => registry.counter({ name: 'old', help: 'Again.' }), /declared twice/)
  })

  it('write label values that are not allowed as "unexpected"', () => {
    let surprises = 0
    const registry = createRegistry({
      allowedValues: (metric, label) => (metric === 'hits' && label === 'code' ? new Set(['200']) : undefined),
      onUnexpected: () => surprises++,
    })
    const hits = registry.counter({ name: 'hits', help: 'Hits.', labels: ['verb', 'code'] })
    for (const code of ['200', '404', '500']) hits.labels('GET', code).inc()
    assert.deepEqual(registry.render().match(/^\w.*$/gm), [
      'hits{code="200",verb="GET"} 1',
      'hits{code="unexpected",verb="GET"} 2',
    ])
    assert.equal(surprises, 2)
  })
})
