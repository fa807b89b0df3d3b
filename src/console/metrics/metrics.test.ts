/** Tests what charts of CPU and memory show, also with absurd answers of a metrics API. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { RequestError } from '../api/request.ts'
import { amountOf, amountText, shareText } from './amount.ts'
import { planChart, rangeOf } from './chart-plan.ts'
import { demandOf } from './demand.ts'
import { MAX_POINTS, type Point, withPoint } from './history.ts'
import { stateAfter } from './meter-state.ts'
import { nodeShares } from './node-shares.ts'
import { type Reading, readingOf } from './reading.ts'
import { chartOf, useSourceOf } from './use-source.ts'

const use = (cpu: number, memory = 0): { cpu: number; memory: number } => ({ cpu, memory })

describe('amounts', () => {
  const texts: readonly (readonly [resource: 'cpu' | 'memory', amount: number, text: string])[] = [
    ['cpu', 0, '0m'],
    ['cpu', 0.0002, '<1m'],
    ['cpu', 0.25, '250m'],
    ['cpu', 0.9999, '1'],
    ['cpu', 1.5, '1.5'],
    ['cpu', 1234.5, '1,235'],
    ['memory', 0, '0'],
    ['memory', 64 * 2 ** 20, '64Mi'],
    ['memory', 1.5 * 2 ** 30, '1.5Gi'],
    ['memory', 2 ** 63, '8Ei'],
  ]
  for (const [resource, amount, text] of texts) {
    it(`writes ${amount} of ${resource} as ${text}`, () => assert.equal(amountText(resource, amount), text))
  }

  it('takes no absurd values', () => {
    for (const absurd of ['', '-1', 'NaN', '1e99999999', 'x'.repeat(100), '9'.repeat(5000), 7, null, {}, '<b>1</b>']) {
      assert.equal(amountOf(absurd), undefined)
    }
    assert.equal(amountOf('9'.repeat(60)), 2 ** 63)
    assert.equal(amountOf('1500m'), 1.5)
  })

  it('writes shares without a false zero', () => {
    assert.deepEqual(
      [shareText(1, 4), shareText(1, 1000), shareText(1e9, 1), shareText(1, 0), shareText(0, 4)],
      ['25 %', '<1 %', '>999 %', undefined, '0 %'],
    )
  })
})

describe('readings', () => {
  it('adds up containers of a pod, pods of a list and nodes', () => {
    const pod = {
      metadata: { name: 'web' },
      containers: [
        { name: 'app', usage: { cpu: '250m', memory: '64Mi' } },
        { name: 'side', usage: { cpu: '1n', memory: '1Mi' } },
      ],
    }
    assert.deepEqual(
      readingOf(pod)?.parts.map(({ name }) => name),
      ['app', 'side'],
    )
    assert.equal(readingOf({ items: [pod, pod] })?.total.memory, 130 * 2 ** 20)
    assert.deepEqual(readingOf({ usage: { cpu: '1', memory: '1Gi' } }), { total: use(1, 2 ** 30), parts: [] })
  })

  it('skips what is no measurement', () => {
    for (const body of [undefined, null, 'x', {}, { items: [] }, { items: [null, 1, { metadata: null }] }]) {
      assert.equal(readingOf(body), undefined)
    }
    const hostile = { containers: [null, { name: '__proto__', usage: { cpu: '1', memory: '1' } }, { name: 'a' }] }
    assert.deepEqual(readingOf(hostile)?.parts, [{ name: '__proto__', use: use(1, 1) }])
  })
})

describe('history', () => {
  it('keeps the last hour', () => {
    const reading: Reading = { total: use(1), parts: [{ name: '__proto__', use: use(2) }] }
    let points: readonly Point[] = []
    for (let at = 0; at < MAX_POINTS + 10; at++) points = withPoint(points, at, reading)
    assert.equal(points.length, MAX_POINTS)
    assert.equal(points.at(-1)?.timeMs, MAX_POINTS + 9)
    assert.deepEqual(Object.keys(points[0]?.parts ?? {}), ['__proto__'])
  })
})

describe('charts', () => {
  const plan = (values: readonly (number | undefined)[], stepMs = 15_000, marks: readonly number[] = []) =>
    planChart({
      resource: 'cpu',
      timesMs: values.map((_, at) => at * stepMs),
      lines: [{ name: 'Use', values }],
      marks: marks.map((value) => ({ name: String(value), value })),
    })

  it('draws a reading as the time that it measures', () => assert.deepEqual(plan([0.5]).paths, ['M570 0H600']))

  it('breaks the line where readings are missing', () => {
    assert.deepEqual(plan([1, 1], 300_000).paths, ['M-30 0H0M570 0H600'])
    assert.equal(plan([1, undefined, 1]).paths[0]?.match(/M/g)?.length, 1)
  })

  it('hides marks far above the use', () => {
    assert.deepEqual(
      plan([1], 15_000, [2, 100, 0]).marks.map(({ name }) => name),
      ['2'],
    )
  })

  it('reaches up to all that there is', () => {
    const marks = [{ name: 'Allocatable', value: 100, isWhole: true }]
    const { top, marks: shown } = planChart({ resource: 'cpu', timesMs: [0], lines: [], marks })
    assert.deepEqual([top, shown.map(({ name, y }) => [name, y])], [100, [['Allocatable', 0]]])
  })

  it('has round amounts at its edge', () => {
    assert.equal(plan([0.23]).top, 0.25)
    const memory = planChart({
      resource: 'memory',
      timesMs: [0],
      lines: [{ name: 'Use', values: [1.3 * 2 ** 30] }],
      marks: [],
    })
    assert.equal(amountText('memory', memory.top), '1.5Gi')
  })

  it('draws finite numbers for any amounts', () => {
    for (const value of [0, 1e-9, 2 ** 63, 1e23]) assert.doesNotMatch(plan([value, 0]).paths.join(), /NaN|Infinity/)
    assert.doesNotMatch(JSON.stringify(plan([])), /NaN|Infinity|null/)
    assert.equal(rangeOf({ name: 'Use', values: [undefined] }), undefined)
  })
})

describe('the use of an object', () => {
  const container = { name: 'app', resources: { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '2' } } }
  const pod = (phase: string) => ({
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { containers: [container] },
    status: { phase },
  })

  it('asks for the pod, the node, or the pods of a workload', () => {
    assert.equal(useSourceOf(pod('Running'))?.path, '/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods/web')
    assert.equal(useSourceOf(pod('Succeeded')), undefined)
    assert.equal(useSourceOf({ kind: 'Node', metadata: { name: 'n1' } })?.path, '/apis/metrics.k8s.io/v1beta1/nodes/n1')
    const spec = { selector: { matchLabels: { app: 'web' } } }
    const workload = { kind: 'Deployment', metadata: { name: 'web', namespace: 'shop' }, spec }
    assert.equal(
      useSourceOf(workload)?.path,
      '/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Dweb',
    )
    assert.equal(useSourceOf({ ...workload, kind: 'Service' }), undefined)
    const ended = { ...workload, kind: 'Job', status: { conditions: [{ type: 'Complete', status: 'True' }] } }
    assert.equal(useSourceOf(ended), undefined)
  })

  it('counts requests and limits of pods that have not ended', () => {
    const pods = [pod('Running'), pod('Pending'), pod('Failed')] as never
    assert.deepEqual(demandOf(pods).requests, use(2, 2 ** 31))
    const wrong = { ...pod('Running'), spec: { containers: [{ name: 'a', resources: { requests: { cpu: 'x' } } }] } }
    assert.deepEqual(demandOf([wrong] as never).requests, use(0))
  })

  it('shows limits only where every container has one', () => {
    const reading: Reading = { total: use(1), parts: [] }
    const marks = (resource: 'cpu' | 'memory'): readonly string[] =>
      chartOf(resource, pod('Running'), { points: [], reading, pods: [pod('Running')] as never }).marks.map(
        ({ name }) => name,
      )
    assert.deepEqual([marks('cpu'), marks('memory')], [['Requests', 'Limits'], ['Requests']])
  })

  it('draws a line for each of several containers', () => {
    const reading: Reading = {
      total: use(3),
      parts: [
        { name: 'a', use: use(1) },
        { name: 'b', use: use(2) },
      ],
    }
    const points = withPoint([], 0, reading)
    const { lines } = chartOf('cpu', pod('Running'), { points, reading, pods: [] })
    assert.deepEqual(lines, [
      { name: 'a', values: [1] },
      { name: 'b', values: [2] },
    ])
  })

  it('has the fullest nodes first', () => {
    const nodes = ['n1', 'n2'].map((name) => ({
      metadata: { name },
      status: { allocatable: { cpu: '4', memory: '4' } },
    }))
    const parts = [
      { name: 'n1', use: use(1, 1) },
      { name: 'n2', use: use(0, 3) },
      { name: 'gone', use: use(1) },
    ]
    assert.deepEqual(
      nodeShares(parts, nodes as never).map(({ name }) => name),
      ['n2', 'n1'],
    )
  })

  it('tells a missing API from a missing measurement', () => {
    assert.equal(stateAfter(new RequestError({ code: 404, message: '404 page not found' })).type, 'absent')
    assert.equal(stateAfter(new RequestError({ code: 404, reason: 'NotFound', message: 'x' })).type, 'unmeasured')
    assert.equal(stateAfter(new RequestError({ code: 403, message: 'x' })).type, 'failed')
  })
})
