import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Operation, OperationStatus } from '../kinds/operation.ts'
import { buildConditions, type BuildState } from './conditions.ts'

const STEPS = { digest: 'd', steps: [{ host: 'a', describe: 'start etcd' }], faults: [], notes: [] }

function operation(status: Partial<OperationStatus>): Operation {
  return {
    metadata: { name: 'o-1' },
    spec: { cluster: 'c-1', type: 'Apply', file: 'f' },
    status: { phase: 'Pending', ...status },
  }
}

const USUAL: BuildState = { file: 'f', invalid: undefined, applied: undefined, isAutomatic: false, operations: [] }

/** Pending, Provisioned, Updated, Waiting. */
const ROWS: readonly (readonly [name: string, state: Partial<BuildState>, expected: string])[] = [
  ['a new file', { operations: [operation({})] }, 'False Provisioned:False/Planning Updated:False/Planning False'],
  [
    'a plan to approve',
    { operations: [operation({ phase: 'Planned', plan: STEPS })] },
    'True Provisioned:False/Planning Updated:False/NeedsApproval False',
  ],
  [
    'a running operation',
    { operations: [operation({ phase: 'Running' })] },
    'False Provisioned:False/Running Updated:False/Running False',
  ],
  [
    'a failed operation',
    { operations: [operation({ phase: 'Failed', message: 'no route', retryAt: '2026-11-19T01:00:00Z' })] },
    'False Provisioned:False/Failed Updated:False/Failed True',
  ],
  ['an applied file', { applied: 'f' }, 'False Provisioned:True/Built Updated:True/Applied False'],
  [
    'an invalid edit',
    { applied: 'e', file: undefined, invalid: 'bad' },
    'False Provisioned:True/Built Updated:False/InvalidFile False',
  ],
  ['a cancelled edit', { applied: 'e' }, 'False Provisioned:True/Built Updated:False/NotApplied False'],
]

describe('buildConditions() of a built cluster', () => {
  for (const [name, state, expected] of ROWS)
    it(`describes ${name}`, () => {
      const [pending, provisioned, updated, waiting] = buildConditions({ ...USUAL, ...state })
      const shown = [provisioned, updated].map((one) => `${one?.type}:${one?.status}/${one?.reason}`)
      assert.equal([pending?.status, ...shown, waiting?.status].join(' '), expected)
    })

  it('say what to do', () => {
    const failed = operation({ phase: 'Failed', message: 'no route to host', retryAt: '2026-11-19T01:00:00Z' })
    const messages = buildConditions({ ...USUAL, operations: [failed] }).map(({ message }) => message)
    assert.equal(messages.at(-1), 'Operation o-1 failed and is tried again at 2026-11-19T01:00:00Z: no route to host')
  })
})
