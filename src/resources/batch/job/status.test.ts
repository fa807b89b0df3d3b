import assert from 'node:assert/strict'
import { test } from 'node:test'

import { tryRules } from '../../rules.fixture.ts'
import { job } from './resource.ts'

const { update } = tryRules(job)

const spec = { template: { spec: { containers: [{ name: 'c', image: 'i' }], restartPolicy: 'Never' } } }
const metadata = { name: 'j', namespace: 'ns', labels: { a: 'b' } }

const START = '2026-01-01T00:00:00Z'
const END = '2026-01-01T00:01:00Z'

const holds = (...types: readonly string[]): { conditions: object[] } => ({
  conditions: types.map((type) => ({ type, status: 'True' })),
})

const step = async (status: object, old: object, more: object = {}): Promise<readonly string[]> => {
  const made = { metadata, spec: { ...spec, ...more } }
  return (await update({ ...made, status }, { ...made, status: old }, 'status')).errors
}

test('a Job status accepts valid transitions', async () => {
  const running = { startTime: START, active: 1 }
  assert.deepEqual(await step(running, {}), [])
  assert.deepEqual(await step({ startTime: START, ...holds('SuccessCriteriaMet') }, running), [])
  const complete = { startTime: START, completionTime: END, succeeded: 1, ...holds('SuccessCriteriaMet', 'Complete') }
  assert.deepEqual(await step(complete, { startTime: START, ...holds('SuccessCriteriaMet') }), [])
  assert.deepEqual(await step({ startTime: START, failed: 1, ...holds('FailureTarget', 'Failed') }, running), [])
})

test('a Job status rejects contradictory conditions and fields', async () => {
  const cannot = (detail: string): string => `status.conditions: Invalid value: cannot set ${detail}`
  const table: readonly (readonly [object, readonly string[]])[] = [
    [
      { startTime: START, completionTime: END, ...holds('Complete') },
      [cannot('Complete=True condition without the SuccessCriteriaMet=true condition')],
    ],
    [
      { startTime: START, ...holds('Failed') },
      [cannot('Failed=True condition without the FailureTarget=true condition')],
    ],
    [
      { ...holds('Complete', 'SuccessCriteriaMet') },
      [
        'status.completionTime: Required value: completionTime is required for Complete jobs',
        'status.startTime: Required value: startTime is required for finished job',
      ],
    ],
    [
      { startTime: END, completionTime: START, ...holds('Complete', 'SuccessCriteriaMet') },
      [`status.completionTime: Invalid value: "${START}": must be equal to or after \`startTime\``],
    ],
    [
      { completionTime: END },
      [
        `status.completionTime: Invalid value: "${END}": cannot set completionTime when there is no Complete=True condition`,
      ],
    ],
    [{ active: 1, ready: 2 }, ['status.ready: Invalid value: 2: cannot set more ready pods than active']],
    [
      { startTime: START, active: 1, terminating: 1, ...holds('Failed', 'FailureTarget') },
      [
        'status.active: Invalid value: 1: active>0 is invalid for finished job',
        'status.terminating: Invalid value: 1: terminating>0 is invalid for finished job',
      ],
    ],
    [
      { uncountedTerminatedPods: { succeeded: ['a', ''], failed: ['a'] } },
      [
        'status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
        'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
      ],
    ],
    [
      { ...holds('SuccessCriteriaMet', 'FailureTarget') },
      [cannot('SuccessCriteriaMet=True and FailureTarget=true conditions')],
    ],
    [
      { completedIndexes: '0' },
      [
        'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode',
      ],
    ],
    [
      { failed: -1 },
      [
        'status.failed: Invalid value: -1: must be greater than or equal to 0',
        'status.failed: Invalid value: -1: cannot decrease the failed counter',
      ],
    ],
  ]
  for (const [status, errors] of table) assert.deepEqual(await step(status, {}), errors, JSON.stringify(status))
})

test('a Job status rejects smaller counters and the removal of terminal conditions', async () => {
  const done = { startTime: START, failed: 2, succeeded: 2, ...holds('Failed', 'FailureTarget') }
  assert.deepEqual(await step({ startTime: START, failed: 1, succeeded: 1 }, done), [
    'status.conditions: Invalid value: cannot disable the terminal Failed=True condition',
    'status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition',
    'status.failed: Invalid value: 1: cannot decrease the failed counter',
    'status.succeeded: Invalid value: 1: cannot decrease the succeeded counter',
  ])
  assert.deepEqual(await step({ startTime: END }, { startTime: START }), [
    `status.startTime: Invalid value: "${END}": field is immutable for unsuspended job once set`,
  ])
  assert.deepEqual(await step({ startTime: END }, { startTime: START }, { suspend: true }), [])
})

test('a Job status keeps an invalid value of the old object when other fields change', async () => {
  const odd = { ...holds('Complete'), active: 1 }
  assert.deepEqual(await step({ ...odd, failed: 1 }, odd), [])
})

test('a Job status requires valid indexes, none of which is both failed and completed', async () => {
  const indexed = { completionMode: 'Indexed', completions: 5, backoffLimitPerIndex: 1 }
  assert.deepEqual(await step({ completedIndexes: '0-2', failedIndexes: '3' }, {}, indexed), [])
  assert.deepEqual(await step({ completedIndexes: '0-9', failedIndexes: '1,x' }, {}, indexed), [
    'status.completedIndexes: Invalid value: "0-9": error parsing completedIndexes: too large index: "9"',
    'status.failedIndexes: Invalid value: "1,x": error parsing failedIndexes: cannot convert string to integer for index: "x"',
  ])
  assert.deepEqual(await step({ completedIndexes: '0-2', failedIndexes: '2' }, {}, indexed), [
    'status.failedIndexes: Invalid value: "2": failedIndexes and completedIndexes overlap at index: 2',
  ])
})
