import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { podDisruptionBudget } from './poddisruptionbudget.ts'

const { create, update, cells } = tryRules(podDisruptionBudget)

const body = {
  metadata: { name: 'b', namespace: 'ns', generation: 3 },
  spec: { minAvailable: 1, selector: { matchLabels: { a: 'b' } } },
}

test('a PodDisruptionBudget has either minAvailable or maxUnavailable', async () => {
  const { object, errors } = await create(body)
  assert.deepEqual(errors, [])
  assert.deepEqual(object.status, { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 })
  const table: readonly (readonly [string, unknown, readonly RegExp[]])[] = [
    ['spec.maxUnavailable', 1, [/^spec: Invalid value: \{.*\}: minAvailable and maxUnavailable cannot be both set$/]],
    ['spec.minAvailable', -1, [/^spec\.minAvailable: Invalid value: -1: must be greater than or equal to 0$/]],
    ['spec.minAvailable', '101%', [/^spec\.minAvailable: Invalid value: "101%": must not be greater than 100%$/]],
    ['spec.minAvailable', 'some', [/^spec\.minAvailable: Invalid value: "some": a valid percent string/]],
    ['spec.selector.matchLabels.a', '-', [/^spec\.selector\.matchLabels: Invalid value: "-": a valid label must/]],
    [
      'spec.unhealthyPodEvictionPolicy',
      'Ask',
      [
        /^spec\.unhealthyPodEvictionPolicy: Unsupported value: "Ask": supported values: "AlwaysAllow", "IfHealthyBudget"$/,
      ],
    ],
    ['metadata.name', 'a/b', [/^metadata\.name: Invalid value: "a\/b": may not contain '\/'$/]],
  ]
  for (const [path, value, patterns] of table) {
    const { errors } = await create(changed(body, path, value))
    assert.equal(errors.length, patterns.length, errors.join('\n'))
    for (const [at, pattern] of patterns.entries()) assert.match(errors[at] ?? '', pattern)
  }
})

test('a PodDisruptionBudget increases its generation when its spec changes', async () => {
  const { object, errors } = await update(changed(body, 'spec.minAvailable', '50%'), body)
  assert.deepEqual(errors, [])
  assert.equal(object.metadata.generation, 4)
})

test('a PodDisruptionBudget keeps an invalid label value that its old selector has', async () => {
  const odd = changed(body, 'spec.selector', { matchExpressions: [{ key: 'a', operator: 'In', values: ['-'] }] })
  assert.equal((await create(odd)).errors.length, 1)
  assert.deepEqual((await update(odd, odd)).errors, [])
})

test('a PodDisruptionBudget validates counts in the status, and leaves the spec alone', async () => {
  const next = { ...changed(body, 'spec.minAvailable', 7), status: { disruptionsAllowed: -1, expectedPods: 2 } }
  const { object, errors } = await update(next, body, 'status')
  assert.deepEqual(errors, ['status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0'])
  assert.equal(object.spec.minAvailable, 1)
  const condition = { type: 'DisruptionAllowed', status: 'True', reason: '', message: '' }
  assert.deepEqual((await update({ ...body, status: { conditions: [condition] } }, body, 'status')).errors, [
    'status.conditions[0].lastTransitionTime: Required value',
    'status.conditions[0].reason: Required value',
  ])
})

test('a PodDisruptionBudget prints minAvailable and maxUnavailable', () => {
  assert.deepEqual(cells(body), ['b', '1', 'N/A', 0, '<unknown>'])
  assert.equal(podDisruptionBudget.putNeedsVersion, true)
})
