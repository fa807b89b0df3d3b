import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Operation, OperationSpec, OperationStatus } from '../kinds/operation.ts'
import { currentOperation, decide, type Decision, type Situation } from './decide.ts'

const NOW = Date.parse('2026-11-19T01:00:00Z')
const LATER = '2026-11-19T01:05:00Z'
const EARLIER = '2026-11-19T00:55:00Z'
const STEPS = { digest: 'd', steps: [{ host: 'a', describe: 'start etcd' }], faults: [], notes: [] }

/** The first is the oldest: `o0`, `o1` … */
function operations(
  ...all: readonly (Partial<OperationSpec> & { readonly is?: Partial<OperationStatus> })[]
): Operation[] {
  return all.map(({ is, ...spec }, at) => ({
    metadata: { name: `o${at}`, creationTimestamp: `2026-11-19T00:0${at}:00Z` },
    spec: { cluster: 'c-1', type: 'Apply', ...(spec.type === undefined && { file: 'f1' }), ...spec },
    ...(is !== undefined && { status: { phase: 'Pending', ...is } }),
  })) as Operation[]
}

const USUAL: Situation = {
  file: 'f1',
  applied: undefined,
  isAutomatic: false,
  isLeaving: false,
  isForced: false,
  operations: [],
  active: undefined,
  nowMs: NOW,
}

type Row = readonly [name: string, situation: Partial<Situation>, expected: Decision]

const ROWS: readonly Row[] = [
  ['creates an operation for a new file', {}, { do: 'create', type: 'Apply', file: 'f1' }],
  ['creates none for an invalid file', { file: undefined }, { do: 'wait' }],
  ['creates none for the applied file', { applied: 'f1' }, { do: 'wait' }],
  ['plans a new operation', { operations: operations({}) }, { do: 'plan', operation: 'o0' }],
  ['waits while a plan is made', { operations: operations({}), active: 'o0' }, { do: 'wait' }],
  ['waits for approval', { operations: operations({ is: { phase: 'Planned', plan: STEPS } }) }, { do: 'wait' }],
  [
    'runs an approved plan',
    { operations: operations({ approved: true, is: { phase: 'Planned', plan: STEPS } }) },
    { do: 'run', operation: 'o0' },
  ],
  [
    'runs every plan of a cluster with automatic approval',
    { isAutomatic: true, operations: operations({ is: { phase: 'Planned', plan: STEPS } }) },
    { do: 'run', operation: 'o0' },
  ],
  [
    'waits for approval of a rotation even then',
    {
      isAutomatic: true,
      applied: 'f1',
      operations: operations({ type: 'RotateCertificates', is: { phase: 'Planned', plan: STEPS } }),
    },
    { do: 'wait' },
  ],
  [
    'runs a plan without steps',
    { operations: operations({ is: { phase: 'Planned', plan: { ...STEPS, steps: [] } } }) },
    { do: 'run', operation: 'o0' },
  ],
  [
    'continues what a killed server left',
    { operations: operations({ approved: true, is: { phase: 'Running', startedAt: EARLIER } }) },
    { do: 'run', operation: 'o0' },
  ],
  [
    'waits until the next attempt',
    { operations: operations({ is: { phase: 'Failed', retryAt: LATER } }) },
    { do: 'wait', ms: 300_000 },
  ],
  [
    'plans again after a failed plan',
    { operations: operations({ is: { phase: 'Failed', retryAt: EARLIER } }) },
    { do: 'plan', operation: 'o0' },
  ],
  [
    'runs again after a failed run',
    { operations: operations({ is: { phase: 'Failed', retryAt: EARLIER, startedAt: EARLIER } }) },
    { do: 'run', operation: 'o0' },
  ],
  [
    'retries at once on request',
    { operations: operations({ retries: 1, is: { phase: 'Failed', retryAt: LATER, startedAt: EARLIER } }) },
    { do: 'run', operation: 'o0' },
  ],
  [
    'retries only once for each request',
    { operations: operations({ retries: 1, is: { phase: 'Failed', retryAt: LATER, retries: 1 } }) },
    { do: 'wait', ms: 300_000 },
  ],
  [
    'leaves a failure that is final',
    { applied: 'f1', operations: operations({ type: 'SaveSnapshot', is: { phase: 'Failed', endedAt: EARLIER } }) },
    { do: 'wait' },
  ],
  [
    'works on one operation after the other',
    { applied: 'f1', operations: operations({ type: 'SaveSnapshot' }, { type: 'RotateCertificates' }), active: 'o0' },
    { do: 'wait' },
  ],
  [
    'replaces a plan of an earlier file',
    { file: 'f2', operations: operations({ is: { phase: 'Planned', plan: STEPS } }) },
    { do: 'end', operation: 'o0', phase: 'Superseded', message: 'The cluster file has changed.' },
  ],
  [
    'creates an operation for a changed file while the first one runs',
    { file: 'f2', operations: operations({ is: { phase: 'Running' } }), active: 'o0' },
    { do: 'create', type: 'Apply', file: 'f2' },
  ],
  [
    'creates an operation for a file that was applied before another one',
    {
      applied: 'f1',
      operations: operations({ is: { phase: 'Succeeded' } }, { file: 'f2', is: { phase: 'Superseded' } }),
    },
    { do: 'create', type: 'Apply', file: 'f1' },
  ],
  [
    'creates none after a cancellation',
    { operations: operations({ cancelled: true, is: { phase: 'Cancelled' } }) },
    { do: 'wait' },
  ],
  [
    'stops a running operation that is cancelled',
    { operations: operations({ cancelled: true, is: { phase: 'Running' } }), active: 'o0' },
    { do: 'stop', operation: 'o0' },
  ],
  [
    'ends a cancelled operation that has stopped',
    { operations: operations({ cancelled: true, is: { phase: 'Running', startedAt: EARLIER } }) },
    {
      do: 'end',
      operation: 'o0',
      phase: 'Cancelled',
      message: 'It was cancelled. Steps that were done stay done: request another operation to continue.',
    },
  ],
  ['removes a cluster that is deleted', { isLeaving: true }, { do: 'create', type: 'Remove' }],
  [
    'stops other work before the removal',
    { isLeaving: true, operations: operations({ is: { phase: 'Running' } }), active: 'o0' },
    { do: 'stop', operation: 'o0' },
  ],
  [
    'cancels other work before the removal',
    { isLeaving: true, operations: operations({ is: { phase: 'Planned', plan: STEPS } }) },
    { do: 'end', operation: 'o0', phase: 'Cancelled', message: 'The cluster is being removed.' },
  ],
  [
    'passes on that the removal is forced',
    {
      isLeaving: true,
      isForced: true,
      operations: operations({ type: 'Remove', is: { phase: 'Failed', retryAt: LATER } }),
    },
    { do: 'force', operation: 'o0' },
  ],
  [
    'lets a removed cluster go',
    { isLeaving: true, operations: operations({ type: 'Remove', is: { phase: 'Succeeded' } }) },
    { do: 'release' },
  ],
]

describe('decide() for Operations of a built cluster', () => {
  for (const [name, situation, expected] of ROWS)
    it(name, () => assert.deepEqual(decide({ ...USUAL, ...situation }), expected))

  it('creates no second operation in the second of a foreign one', () => {
    const both = operations({ is: { phase: 'Planned', plan: STEPS } }, { file: 'other', is: { phase: 'Superseded' } })
    const sameSecond = both.map((one) => ({ ...one, metadata: { ...one.metadata, creationTimestamp: EARLIER } }))
    assert.deepEqual(decide({ ...USUAL, operations: sameSecond }), { do: 'wait' })
  })
})

describe('currentOperation() of a built cluster', () => {
  it('is the oldest that has not ended', () => {
    const all = operations({ is: { phase: 'Succeeded' } }, { type: 'SaveSnapshot' }, { type: 'RotateEncryptionKey' })
    assert.equal(currentOperation(all)?.metadata.name, 'o1')
    assert.equal(currentOperation([]), undefined)
  })
})
