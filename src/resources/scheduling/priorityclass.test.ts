import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { priorityClass } from './priorityclass.ts'

const { create, update, read, cells } = tryRules(priorityClass)

const named = (name: string, value: number, rest: object = {}): object => ({ metadata: { name }, value, ...rest })

test('a PriorityClass has preemptionPolicy PreemptLowerPriority by default', async () => {
  assert.equal(read(named('a', 1)).preemptionPolicy, 'PreemptLowerPriority')
  const { object, errors } = await create(named('a', 1))
  assert.deepEqual(errors, [])
  assert.equal(object.metadata.generation, 1)
})

test('a PriorityClass rejects values and names that are reserved for the system', async () => {
  const reserved = "priority class names with 'system-' prefix are reserved for system use only. error:"
  const table: readonly (readonly [object, readonly string[]])[] = [
    [named('a', 1_000_000_000), []],
    [named('a', 1_000_000_001), ['value: Forbidden: maximum allowed value of a user defined priority is 1000000000']],
    [named('system-node-critical', 2_000_001_000), []],
    [
      named('system-node-critical', 1),
      [`metadata.name: Forbidden: ${reserved} value of system-node-critical PriorityClass must be 2000001000`],
    ],
    [
      named('system-cluster-critical', 2_000_000_000, { globalDefault: true }),
      [`metadata.name: Forbidden: ${reserved} globalDefault of system-cluster-critical PriorityClass must be false`],
    ],
    [named('system-x', 1), [`metadata.name: Forbidden: ${reserved} system-x is not a known system priority class`]],
    [named('a', 1, { preemptionPolicy: '' }), ['preemptionPolicy: Required value']],
    [
      named('a', 1, { preemptionPolicy: 'Ask' }),
      ['preemptionPolicy: Unsupported value: "Ask": supported values: "PreemptLowerPriority", "Never"'],
    ],
  ]
  for (const [body, errors] of table) assert.deepEqual((await create(body)).errors, errors, JSON.stringify(body))
})

test('a PriorityClass rejects updates of value and preemptionPolicy', async () => {
  const old = named('a', 1)
  assert.deepEqual((await update(changed(old, 'value', 2), old)).errors, [
    'value: Forbidden: may not be changed in an update.',
  ])
  assert.deepEqual((await update(changed(old, 'preemptionPolicy', 'Never'), old)).errors, [
    'preemptionPolicy: Invalid value: "Never": field is immutable',
  ])
  assert.deepEqual((await update(changed(old, 'description', 'x'), old)).errors, [])
})

test('a PriorityClass prints its value', () => {
  assert.deepEqual(cells(named('a', 5, { globalDefault: true })), ['a', 5, true, '<unknown>', 'PreemptLowerPriority'])
})
