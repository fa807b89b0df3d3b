import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { Pod } from '#apis/core/v1.ts'
import { timeOf } from '#meta/time.ts'

import {
  countByAverage,
  countByRatio,
  countByUtilization,
  countPerPod,
  type PodMetrics,
  type Population,
} from './replica-count.ts'

const NOW = Date.UTC(2026, 0, 1, 12)
const TOLERANCE = { down: 0.1, up: 0.1 }
const MINUTE = 60_000

/** One pod: request and usage in thousandths, and its state. */
interface Row {
  readonly request?: number | 'none'
  readonly used?: number
  readonly phase?: string
  readonly ready?: 'True' | 'False' | 'unknown'
  readonly startedMs?: number
  readonly turnedMs?: number
  readonly deleted?: boolean
  /** The age of the measurement. */
  readonly measuredMs?: number
}

const podOf = (row: Row, at: number): Pod => {
  const { request = 1000, phase = 'Running', ready = 'True', startedMs = 60 * MINUTE, turnedMs = startedMs } = row
  const requests: Record<string, string> = request === 'none' ? {} : { cpu: `${request}m`, memory: `${request}Mi` }
  const condition = { type: 'Ready', status: ready, lastTransitionTime: timeOf(NOW - turnedMs) }
  const deletionTimestamp = row.deleted === true ? { deletionTimestamp: timeOf(NOW) } : {}
  return {
    metadata: { namespace: 'n', name: `p${at}`, ...deletionTimestamp },
    spec: { containers: [{ name: 'c', resources: { requests } }] },
    status: { phase, startTime: timeOf(NOW - startedMs), ...(ready !== 'unknown' && { conditions: [condition] }) },
  } as unknown as Pod
}

const populationOf = (rows: readonly Row[]): Population => ({
  pods: rows.map(podOf),
  nowMs: NOW,
  cpuInitializationMs: 5 * MINUTE,
  initialReadinessMs: 30_000,
})

const metricsOf = (rows: readonly Row[]): PodMetrics =>
  new Map(
    rows.flatMap(({ used, measuredMs = 0 }, at) =>
      used === undefined ? [] : [[`p${at}`, { value: used, atMs: NOW - measuredMs, windowMs: MINUTE }] as const],
    ),
  )

const used = (...values: (number | undefined)[]): Row[] =>
  values.map((value) => (value === undefined ? {} : { used: value }))

describe('replica count by utilization', () => {
  const cases: readonly [
    sentence: string,
    rows: readonly Row[],
    request: { readonly current: number; readonly target: number; readonly resource?: string },
    counted: readonly [replicas: number, utilization: number, usage: number],
  ][] = [
    ['scales up with higher usage', used(300, 500, 700), { current: 3, target: 30 }, [5, 50, 500]],
    ['scales down with lower usage', used(100, 300, 500, 250, 250), { current: 5, target: 50 }, [3, 28, 280]],
    [
      'keeps the size for a usage above the target within the tolerance',
      used(1010, 1030, 1020),
      { current: 3, target: 100 },
      [3, 102, 1020],
    ],
    [
      'keeps the size for a usage below the target within the tolerance',
      used(910, 930, 920),
      { current: 3, target: 100 },
      [3, 92, 920],
    ],
    [
      'keeps the size for a usage exactly at the tolerance',
      used(1100, 1100, 1100),
      { current: 3, target: 100 },
      [3, 110, 1100],
    ],
    ['rounds the utilization percentage down', used(999), { current: 1, target: 99 }, [1, 99, 999]],
    [
      'assumes 0 % usage of pods without metrics on scale-up',
      used(300, 500, 700, undefined),
      { current: 4, target: 30 },
      [5, 50, 500],
    ],
    [
      'keeps the size if pods without metrics prevent scale-up',
      used(400, undefined),
      { current: 2, target: 30 },
      [2, 40, 400],
    ],
    [
      'assumes 100 % usage of pods without metrics on scale-down',
      used(100, undefined, undefined),
      { current: 3, target: 50 },
      [3, 10, 100],
    ],
    [
      'scales down despite pods without metrics',
      used(10, 10, 10, 10, undefined),
      { current: 5, target: 50 },
      [2, 1, 10],
    ],
    [
      'assumes the target usage of pods without metrics if the target is above 100 %',
      used(100, undefined),
      { current: 2, target: 300 },
      [2, 10, 100],
    ],
    [
      'ignores failed and terminating pods',
      [...used(300, 300), { used: 9000, phase: 'Failed' }, { used: 9000, deleted: true }],
      { current: 2, target: 10 },
      [6, 30, 300],
    ],
    [
      'assumes 0 % usage of pending pods on scale-up',
      [...used(600, 600), { phase: 'Pending' }],
      { current: 3, target: 30 },
      [4, 60, 600],
    ],
    [
      'ignores pending pods on scale-down',
      [...used(100, 100), { phase: 'Pending' }],
      { current: 3, target: 40 },
      [1, 10, 100],
    ],
    [
      'assumes 0 % usage of starting pods on scale-up',
      [...used(600, 600), { used: 2000, startedMs: MINUTE, turnedMs: 10_000 }],
      { current: 3, target: 30 },
      [4, 60, 600],
    ],
    [
      'includes a young pod that was measured after it became ready',
      [...used(600, 600), { used: 600, startedMs: 4 * MINUTE, turnedMs: 2 * MINUTE }],
      { current: 3, target: 30 },
      [6, 60, 600],
    ],
    [
      'includes an old pod that is no longer ready',
      [...used(600, 600), { used: 600, ready: 'False', startedMs: 10 * MINUTE, turnedMs: MINUTE }],
      { current: 3, target: 30 },
      [6, 60, 600],
    ],
    [
      'ignores an old pod that was never ready',
      [...used(600, 600), { used: 600, ready: 'False', startedMs: 10 * MINUTE, turnedMs: 10 * MINUTE - 10_000 }],
      { current: 3, target: 30 },
      [4, 60, 600],
    ],
    [
      'ignores a pod without a Ready condition',
      [...used(600, 600), { used: 600, ready: 'unknown' }],
      { current: 3, target: 30 },
      [4, 60, 600],
    ],
    [
      'includes pods that are not ready for memory',
      [{ used: 600 * 2 ** 20 * 1000 }, { used: 600 * 2 ** 20 * 1000, startedMs: 1000, ready: 'False' }],
      { current: 2, target: 30, resource: 'memory' },
      [4, 60, 600 * 2 ** 20 * 1000],
    ],
    [
      'adds large amounts of memory exactly',
      [{ request: 2 ** 23, used: 2 ** 22 * 2 ** 20 * 1000 }],
      { current: 1, target: 50, resource: 'memory' },
      [1, 50, 2 ** 22 * 2 ** 20 * 1000],
    ],
  ]
  for (const [sentence, rows, { current, target, resource = 'cpu' }, counted] of cases) {
    it(sentence, () => {
      const request = { current, target, resource, container: '', tolerance: TOLERANCE, podLevel: true }
      const { replicas, utilization, usage } = countByUtilization(metricsOf(rows), populationOf(rows), request)
      assert.deepEqual([replicas, utilization, usage], counted)
    })
  }

  const refused: readonly [rows: readonly Row[], container: string, text: string][] = [
    [[], '', 'no pods returned by selector while calculating replica count'],
    [[{ used: 1, phase: 'Pending' }], '', 'did not receive metrics for targeted pods (pods might be unready)'],
    [[{ used: 1, request: 'none' }], '', 'missing request for cpu in container c of Pod p0'],
    [[{ used: 1 }], 'other', 'container other not found in Pod p0'],
    [[{ used: 1, request: 0 }], '', 'no metrics returned matched known pods'],
  ]
  for (const [rows, container, text] of refused) {
    it(`fails with "${text}"`, () => {
      const request = { current: 1, target: 50, resource: 'cpu', container, tolerance: TOLERANCE, podLevel: true }
      assert.throws(() => countByUtilization(metricsOf(rows), populationOf(rows), request), new Error(text))
    })
  }

  it('includes sidecars, but no other init containers', () => {
    const pod = podOf({}, 0)
    const requests = { cpu: '1' }
    pod.spec.initContainers = [
      { name: 'init', resources: { requests } },
      { name: 'side', restartPolicy: 'Always', resources: { requests } },
    ] as never
    const request = { current: 1, target: 50, resource: 'cpu', container: '', tolerance: TOLERANCE, podLevel: true }
    const population = { ...populationOf([]), pods: [pod] }
    assert.equal(countByUtilization(metricsOf(used(2000)), population, request).utilization, 100)
    const one = { ...request, container: 'side' }
    assert.equal(countByUtilization(metricsOf(used(2000)), population, one).utilization, 200)
  })

  it('uses pod-level requests, except for a container metric or with the gate off', () => {
    const pod = podOf({}, 0)
    pod.spec.resources = { requests: { cpu: '4' } }
    const population = { ...populationOf([]), pods: [pod] }
    const counted = (more: object): number => {
      const request = {
        current: 1,
        target: 50,
        resource: 'cpu',
        container: '',
        tolerance: TOLERANCE,
        podLevel: true,
        ...more,
      }
      return countByUtilization(metricsOf(used(2000)), population, request).utilization
    }
    assert.deepEqual([counted({}), counted({ container: 'c' }), counted({ podLevel: false })], [50, 200, 200])
    pod.spec.resources = { requests: { memory: '1Gi' } }
    pod.spec.containers = [{ name: 'c', resources: {} }] as never
    assert.throws(() => counted({}), new Error('missing pod-level request for cpu in Pod p0'))
  })
})

describe('replica count by average value', () => {
  const cases: readonly [rows: readonly Row[], current: number, target: number, replicas: number, average: number][] = [
    [used(20_000, 10_000, 30_000), 3, 15_000, 4, 20_000],
    [used(12_000, 12_000, 12_000, 12_000, 12_000), 5, 20_000, 3, 12_000],
    [used(20_500, 20_500), 2, 20_000, 2, 20_500],
    [used(20_000, undefined), 2, 10_000, 2, 20_000],
    [used(60_000, undefined), 2, 10_000, 6, 60_000],
    [used(10_000, undefined), 2, 20_000, 2, 10_000],
    [used(1000, 1000, 1000, undefined), 4, 20_000, 2, 1000],
    [[...used(50_000, 10_000, 30_000), { phase: 'Pending' }], 4, 15_000, 6, 30_000],
    [used(1, 2), 2, 1000, 1, 1],
  ]
  for (const [rows, current, target, replicas, average] of cases) {
    it(`scales ${current} replicas to ${replicas} for an average usage of ${average} and a target of ${target}`, () => {
      const request = { current, target, resource: '', tolerance: TOLERANCE }
      const counted = countByAverage(metricsOf(rows), populationOf(rows), request)
      assert.deepEqual([counted.replicas, counted.usage], [replicas, average])
    })
  }
})

describe('replica count by usage ratio', () => {
  const ready = (many: number, more: readonly Row[] = []): readonly Pod[] =>
    [...Array.from({ length: many }, (): Row => ({})), ...more].map(podOf)
  const cases: readonly [ratio: number, current: number, population: string, pods: readonly Pod[], replicas: number][] =
    [
      [2, 3, 'three ready pods', ready(3), 6],
      [0.5, 3, 'three ready pods', ready(3), 2],
      [1.05, 3, 'three ready pods', ready(3), 3],
      [2, 3, 'two ready pods and one that is not', ready(2, [{ ready: 'False' }]), 4],
      [2, 3, 'two ready pods and a pending one', ready(2, [{ phase: 'Pending' }]), 4],
      [3, 0, 'no pods', [], 3],
      [0, 0, 'no pods', [], 0],
      [0.2, 0, 'no pods', [], 1],
      [1e12, 1, 'one ready pod', ready(1), 2 ** 31 - 1],
    ]
  for (const [ratio, current, population, pods, replicas] of cases) {
    it(`scales ${current} replicas to ${replicas} for a usage ratio of ${ratio} and ${population}`, () => {
      assert.equal(countByRatio(ratio, pods, { current, tolerance: TOLERANCE }), replicas)
    })
  }
  it('fails if there are no pods', () => {
    const text = 'unable to calculate ready pods: no pods returned by selector while calculating replica count'
    assert.throws(() => countByRatio(2, [], { current: 1, tolerance: TOLERANCE }), new Error(text))
  })
})

describe('replica count by value per pod', () => {
  const cases: readonly [usage: number, target: number, current: number, replicas: number, average: number][] = [
    [8600, 2150, 3, 4, 2867],
    [8600, 2867, 3, 3, 2867],
    [100, 50, 4, 2, 25],
    [0, 50, 4, 0, 0],
    [100, 50, 0, 2, 0],
    [2 ** 63, 1, 4, 2 ** 31 - 1, 2 ** 63],
  ]
  for (const [usage, target, current, replicas, average] of cases) {
    it(`scales ${current} replicas to ${replicas} for a usage of ${usage} and a target of ${target} per pod`, () => {
      assert.deepEqual(countPerPod(usage, target, { current, tolerance: TOLERANCE }), { replicas, usage: average })
    })
  }
})

describe('replica count with missing metrics', () => {
  const row = fc.record({
    used: fc.option(fc.integer({ min: 0, max: 4000 }), { nil: undefined }),
    phase: fc.constantFrom('Running', 'Pending', 'Failed'),
    ready: fc.constantFrom('True' as const, 'False' as const),
    startedMs: fc.integer({ min: 1000, max: 20 * MINUTE }),
  })
  it('never reverses the direction of scaling', () => {
    const law = fc.property(
      fc.array(row, { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 1, max: 200 }),
      (rows, target) => {
        const population = populationOf(rows as Row[])
        const current = population.pods.filter(({ status }) => status.phase !== 'Failed').length
        const request = { current, target, resource: 'cpu', container: '', tolerance: TOLERANCE, podLevel: true }
        let counted
        try {
          counted = countByUtilization(metricsOf(rows as Row[]), population, request)
        } catch {
          return
        }
        const { replicas, utilization } = counted
        const hasUnknown = rows.some(({ used: value, phase }) => phase !== 'Failed' && value === undefined)
        if (hasUnknown && utilization > target) assert.ok(replicas >= current)
        if (hasUnknown && utilization < target && rows.every(({ phase }) => phase === 'Running'))
          assert.ok(replicas <= current)
      },
    )
    fc.assert(law)
  })
})
