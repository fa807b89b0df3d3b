import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { priorityLevelConfiguration } from './prioritylevelconfiguration.ts'

const { create, update, cells, read } = tryRules(priorityLevelConfiguration)

const body = {
  metadata: { name: 'x' },
  spec: {
    type: 'Limited',
    limited: {
      nominalConcurrencyShares: 5,
      limitResponse: { type: 'Queue', queuing: { queues: 64, handSize: 6, queueLengthLimit: 50 } },
      lendablePercent: 10,
      borrowingLimitPercent: 5,
    },
  },
  status: { conditions: [{ type: 'A', status: 'True' }] },
}

test('a PriorityLevelConfiguration defines how many requests run and wait', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a PriorityLevelConfiguration rejects invalid shares and queues', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'spec.type',
      'Exempt',
      [
        "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
        'spec.limited: Forbidden: must be nil if the type is not Limited',
      ],
    ],
    ['spec.type', '', ['spec.type: Required value']],
    ['spec.type', 'Free', ['spec.type: Unsupported value: "Free": supported values: "Exempt", "Limited"']],
    ['spec.limited', undefined, ['spec.limited: Required value: must not be empty when type is Limited']],
    ['spec.exempt', {}, ['spec.exempt: Forbidden: must be nil if the type is Limited']],
    [
      'spec.limited.nominalConcurrencyShares',
      -1,
      ['spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer'],
    ],
    [
      'spec.limited.lendablePercent',
      101,
      ['spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive'],
    ],
    [
      'spec.limited.borrowingLimitPercent',
      -1,
      ['spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer'],
    ],
    [
      'spec.limited.limitResponse',
      { type: 'Reject', queuing: {} },
      ['spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not Limited'],
    ],
    [
      'spec.limited.limitResponse',
      { type: 'Queue' },
      [
        'spec.limited.limitResponse.queuing: Required value: must not be empty if limited.limitResponse.type is Limited',
      ],
    ],
    [
      'spec.limited.limitResponse',
      { type: 'Drop' },
      ['spec.limited.limitResponse.type: Unsupported value: "Drop": supported values: "Queue", "Reject"'],
    ],
    [
      'spec.limited.limitResponse.queuing',
      { queues: 10000001, handSize: 3, queueLengthLimit: -1 },
      [
        'spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive',
        'spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000',
        'spec.limited.limitResponse.queuing.handSize: Invalid value: 3: required entropy bits of deckSize 10000001 and handSize 3 should not be greater than 60',
      ],
    ],
    [
      'spec.limited.limitResponse.queuing',
      { queues: 4, handSize: 5, queueLengthLimit: 1 },
      ['spec.limited.limitResponse.queuing.handSize: Invalid value: 5: should not be greater than queues (4)'],
    ],
    [
      'spec.limited.limitResponse.queuing',
      { queues: 128, handSize: 9, queueLengthLimit: 1 },
      [
        'spec.limited.limitResponse.queuing.handSize: Invalid value: 9: required entropy bits of deckSize 128 and handSize 9 should not be greater than 60',
      ],
    ],
    [
      'metadata.name',
      'catch-all',
      [
        'spec: Invalid value: {"type":"Limited","limited":{"nominalConcurrencyShares":5,"limitResponse":{"type":"Queue","queuing":{"queues":64,"handSize":6,"queueLengthLimit":50}},"lendablePercent":10,"borrowingLimitPercent":5}}: spec of \'catch-all\' must equal the fixed value',
      ],
    ],
    [
      'metadata.annotations',
      { 'flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares': '' },
      [
        "metadata.annotations: Forbidden: annotation 'flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares' is forbidden",
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a PriorityLevelConfiguration rejects two conditions of one type in its status', async () => {
  assert.deepEqual((await update(body, body, 'status')).errors, [])
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['status.conditions', [{ type: 'A' }, { type: 'A' }], ['status.conditions[1].type: Duplicate value: "A"']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body, 'status')).errors, errors, path)
  }
})

test('a PriorityLevelConfiguration has defaults for the number and length of its queues', () => {
  const { spec } = read({
    metadata: { name: 'x' },
    spec: { type: 'Limited', limited: { limitResponse: { type: 'Queue', queuing: {} } } },
  })
  assert.deepEqual(
    { spec },
    {
      spec: {
        type: 'Limited',
        limited: {
          nominalConcurrencyShares: 30,
          limitResponse: { type: 'Queue', queuing: { queues: 64, handSize: 8, queueLengthLimit: 50 } },
          lendablePercent: 0,
        },
      },
    },
  )
})

test('a PriorityLevelConfiguration prints its shares and queues', () => {
  assert.deepEqual(
    priorityLevelConfiguration.columns?.map(({ name }) => name),
    ['Name', 'Type', 'NominalConcurrencyShares', 'Queues', 'HandSize', 'QueueLengthLimit', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 'Limited', 5, 64, 6, 50, '<unknown>'])
  assert.equal(priorityLevelConfiguration.storagePrefix, 'prioritylevelconfigurations')
})
