import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { HPAScalingPolicy, HPAScalingRules } from '#apis/autoscaling/v2.ts'

import { decide, type Decision, type History, remember, type ScaleRequest } from './limits.ts'

const NOW = 10_000_000
const EMPTY: History = { recommended: [], added: [], removed: [] }

const requestOf = (more: Partial<ScaleRequest>): ScaleRequest => ({
  current: 3,
  desired: 3,
  min: 1,
  max: 100,
  nowMs: NOW,
  behavior: undefined,
  downWindowMs: 300_000,
  ...more,
})

const percent = (value: number, periodSeconds: number): HPAScalingPolicy => ({ type: 'Percent', value, periodSeconds })
const pods = (value: number, periodSeconds: number): HPAScalingPolicy => ({ type: 'Pods', value, periodSeconds })
/** With the API's defaults. */
const up = (...policies: HPAScalingPolicy[]): HPAScalingRules => ({
  stabilizationWindowSeconds: 0,
  selectPolicy: 'Max',
  policies,
})
const down = (...policies: HPAScalingPolicy[]): HPAScalingRules => ({
  stabilizationWindowSeconds: 300,
  selectPolicy: 'Max',
  policies,
})

const summary = ({ replicas, ableToScale, scalingLimited }: Decision): string =>
  `${replicas} ${ableToScale.reason} ${scalingLimited.reason}=${scalingLimited.status}`

describe('HPA limits without spec.behavior', () => {
  const cases: readonly [request: Partial<ScaleRequest>, history: Partial<History>, outcome: string][] = [
    [{ desired: 3 }, {}, '3 ReadyForNewScale DesiredWithinRange=False'],
    [{ desired: 5 }, {}, '5 ReadyForNewScale DesiredWithinRange=False'],
    [{ current: 2, desired: 6 }, {}, '4 ReadyForNewScale ScaleUpLimit=True'],
    [{ current: 5, desired: 60 }, {}, '10 ReadyForNewScale ScaleUpLimit=True'],
    [{ current: 4, desired: 6, max: 5 }, {}, '5 ReadyForNewScale TooManyReplicas=True'],
    [{ current: 4, desired: 9, max: 8 }, {}, '8 ReadyForNewScale TooManyReplicas=True'],
    [{ desired: 0 }, {}, '1 ReadyForNewScale TooFewReplicas=True'],
    [{ current: 9, desired: 2, min: 3 }, {}, '3 ReadyForNewScale TooFewReplicas=True'],
    [
      { current: 9, desired: 2 },
      { recommended: [{ replicas: 7, atMs: NOW - 1000 }] },
      '7 ScaleDownStabilized DesiredWithinRange=False',
    ],
    [
      { current: 9, desired: 2 },
      { recommended: [{ replicas: 7, atMs: NOW - 300_000 }] },
      '7 ScaleDownStabilized DesiredWithinRange=False',
    ],
    [
      { current: 9, desired: 2 },
      { recommended: [{ replicas: 7, atMs: NOW - 300_001 }] },
      '2 ReadyForNewScale DesiredWithinRange=False',
    ],
    [{ desired: 5 }, { recommended: [{ replicas: 1, atMs: NOW }] }, '5 ReadyForNewScale DesiredWithinRange=False'],
  ]
  for (const [request, history, outcome] of cases) {
    it(`yield replicas and conditions "${outcome}" for ${JSON.stringify(request)} with history ${JSON.stringify(history)}`, () => {
      assert.equal(summary(decide({ ...EMPTY, ...history }, requestOf(request))), outcome)
    })
  }
})

describe('HPA limits with spec.behavior', () => {
  const usual = { scaleUp: up(pods(4, 15), percent(100, 15)), scaleDown: down(percent(100, 15)) }
  const cases: readonly [
    sentence: string,
    request: Partial<ScaleRequest>,
    history: Partial<History>,
    outcome: string,
  ][] = [
    [
      'adds at most four pods by default',
      { current: 1, desired: 9, behavior: usual },
      {},
      '5 ReadyForNewScale ScaleUpLimit=True',
    ],
    [
      'doubles large workloads',
      { current: 10, desired: 50, behavior: usual },
      {},
      '20 ReadyForNewScale ScaleUpLimit=True',
    ],
    [
      'scales up to maxReplicas',
      { current: 10, desired: 50, max: 15, behavior: usual },
      {},
      '15 ReadyForNewScale TooManyReplicas=True',
    ],
    [
      'scales down to minReplicas',
      { current: 10, desired: 1, min: 4, behavior: usual },
      {},
      '4 ReadyForNewScale TooFewReplicas=True',
    ],
    [
      'uses the highest recommendation of the window on scale-down',
      { current: 10, desired: 2, behavior: usual },
      { recommended: [{ replicas: 8, atMs: NOW - 299_999 }] },
      '8 ScaleDownStabilized DesiredWithinRange=False',
    ],
    [
      'ignores a recommendation as old as the window',
      { current: 10, desired: 2, behavior: usual },
      { recommended: [{ replicas: 8, atMs: NOW - 300_000 }] },
      '2 ReadyForNewScale DesiredWithinRange=False',
    ],
    [
      'uses the lowest recommendation of the window on scale-up',
      {
        current: 3,
        desired: 6,
        behavior: { ...usual, scaleUp: { ...up(percent(100, 15)), stabilizationWindowSeconds: 60 } },
      },
      { recommended: [{ replicas: 4, atMs: NOW - 30_000 }] },
      '4 ScaleUpStabilized DesiredWithinRange=False',
    ],
    [
      'uses the window of the flag if behavior has none',
      {
        current: 10,
        desired: 2,
        downWindowMs: 60_000,
        behavior: { ...usual, scaleDown: { selectPolicy: 'Max', policies: [percent(100, 15)] } },
      },
      { recommended: [{ replicas: 8, atMs: NOW - 59_000 }] },
      '8 ScaleDownStabilized DesiredWithinRange=False',
    ],
    [
      'counts replicas added within the period',
      { current: 7, desired: 20, behavior: { ...usual, scaleUp: up(pods(4, 60)) } },
      { added: [{ replicas: 3, atMs: NOW - 59_000 }] },
      '8 ReadyForNewScale ScaleUpLimit=True',
    ],
    [
      'ignores replicas added before the period',
      { current: 7, desired: 20, behavior: { ...usual, scaleUp: up(pods(4, 60)) } },
      { added: [{ replicas: 3, atMs: NOW - 60_000 }] },
      '11 ReadyForNewScale ScaleUpLimit=True',
    ],
    [
      'subtracts removed replicas from those added within the period',
      { current: 7, desired: 20, behavior: { ...usual, scaleUp: up(pods(4, 60)) } },
      { removed: [{ replicas: 2, atMs: NOW - 1000 }] },
      '13 ReadyForNewScale ScaleUpLimit=True',
    ],
    [
      'keeps the size after a scale-up beyond the policy',
      { current: 20, desired: 30, behavior: { ...usual, scaleUp: up(pods(4, 60)) } },
      { added: [{ replicas: 10, atMs: NOW - 1000 }] },
      '20 ReadyForNewScale ScaleUpLimit=True',
    ],
    [
      'rounds percentages up on scale-up',
      { current: 3, desired: 9, behavior: { ...usual, scaleUp: up(percent(10, 60)) } },
      {},
      '4 ReadyForNewScale ScaleUpLimit=True',
    ],
    [
      'rounds percentages towards zero on scale-down',
      { current: 7, desired: 1, behavior: { ...usual, scaleDown: down(percent(50, 60)) } },
      {},
      '3 ReadyForNewScale ScaleDownLimit=True',
    ],
    [
      'scales down by a number of pods',
      { current: 7, desired: 1, behavior: { ...usual, scaleDown: down(pods(2, 60)) } },
      {},
      '5 ReadyForNewScale ScaleDownLimit=True',
    ],
    [
      'keeps the size after a scale-down beyond the policy',
      { current: 7, desired: 1, behavior: { ...usual, scaleDown: down(pods(2, 60)) } },
      { removed: [{ replicas: 5, atMs: NOW - 1000 }] },
      '7 ReadyForNewScale ScaleDownLimit=True',
    ],
    [
      'selectPolicy Min scales up by the smallest change',
      {
        current: 10,
        desired: 50,
        behavior: { ...usual, scaleUp: { ...up(pods(4, 15), percent(100, 15)), selectPolicy: 'Min' } },
      },
      {},
      '14 ReadyForNewScale ScaleUpLimit=True',
    ],
    [
      'selectPolicy Min scales down by the smallest change',
      {
        current: 10,
        desired: 1,
        behavior: { ...usual, scaleDown: { ...down(pods(4, 15), percent(50, 15)), selectPolicy: 'Min' } },
      },
      {},
      '6 ReadyForNewScale ScaleDownLimit=True',
    ],
    [
      'selectPolicy Max scales down by the largest change',
      { current: 10, desired: 1, behavior: { ...usual, scaleDown: down(pods(4, 15), percent(50, 15)) } },
      {},
      '5 ReadyForNewScale ScaleDownLimit=True',
    ],
    [
      'selectPolicy Disabled prevents scale-up',
      { current: 3, desired: 9, behavior: { ...usual, scaleUp: { ...up(pods(4, 15)), selectPolicy: 'Disabled' } } },
      {},
      '3 ReadyForNewScale ScaleUpLimit=True',
    ],
    [
      'selectPolicy Disabled prevents scale-down',
      { current: 9, desired: 3, behavior: { ...usual, scaleDown: { ...down(pods(4, 15)), selectPolicy: 'Disabled' } } },
      {},
      '9 ReadyForNewScale ScaleDownLimit=True',
    ],
  ]
  for (const [sentence, request, history, outcome] of cases) {
    it(`${sentence} (resulting replicas and conditions: ${outcome})`, () =>
      assert.equal(summary(decide({ ...EMPTY, ...history }, requestOf(request))), outcome))
  }

  it('keep recommendations and scale events until they are older than their windows', () => {
    const request = requestOf({ current: 3, desired: 5, behavior: usual })
    const before: History = {
      ...EMPTY,
      recommended: [
        { replicas: 9, atMs: NOW - 400_000 },
        { replicas: 8, atMs: NOW - 1 },
      ],
    }
    const { history } = decide(before, request)
    assert.deepEqual(history.recommended, [
      { replicas: 8, atMs: NOW - 1 },
      { replicas: 5, atMs: NOW },
    ])
    const later = remember({ ...history, added: [{ replicas: 1, atMs: NOW - 15_001 }] }, request)
    assert.deepEqual(later.added, [{ replicas: 2, atMs: NOW }])
    assert.deepEqual(remember(history, { ...request, desired: 1 }).removed, [{ replicas: 2, atMs: NOW }])
    assert.equal(remember(history, { ...request, behavior: undefined }), history)
  })
})

describe('HPA decision within limits', () => {
  const policy = fc.record({
    type: fc.constantFrom('Pods', 'Percent'),
    value: fc.integer({ min: 1, max: 200 }),
    periodSeconds: fc.integer({ min: 1, max: 600 }),
  })
  const rules = fc.record({
    stabilizationWindowSeconds: fc.integer({ min: 0, max: 600 }),
    selectPolicy: fc.constantFrom('Max', 'Min', 'Disabled'),
    policies: fc.array(policy, { minLength: 1, maxLength: 3 }),
  })
  const sample = fc.record({
    replicas: fc.integer({ min: 1, max: 50 }),
    atMs: fc.integer({ min: NOW - 900_000, max: NOW }),
  })
  const history = fc.record({ recommended: fc.array(sample), added: fc.array(sample), removed: fc.array(sample) })
  const request = fc.record({
    current: fc.integer({ min: 1, max: 50 }),
    desired: fc.integer({ min: 0, max: 100 }),
    behavior: fc.option(fc.record({ scaleUp: rules, scaleDown: rules }), { nil: undefined }),
  })
  it('stays between minReplicas and maxReplicas, and never reverses the direction of the recommendation', () => {
    const law = fc.property(history, request, (past, wanted) => {
      const { replicas, scalingLimited } = decide(past, requestOf({ ...wanted, min: 1, max: 50 }))
      assert.ok(replicas >= 1 && replicas <= 50)
      const highest = Math.max(wanted.current, wanted.desired, ...past.recommended.map((one) => one.replicas))
      assert.ok(replicas <= Math.max(1, highest))
      if (wanted.behavior !== undefined && wanted.desired >= wanted.current) assert.ok(replicas >= wanted.current)
      if (replicas === wanted.desired && scalingLimited.status === 'False')
        assert.equal(scalingLimited.reason, 'DesiredWithinRange')
    })
    fc.assert(law)
  })
})
