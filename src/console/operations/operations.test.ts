/** Tests the states of Operations in words, and their progress. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { canApprove, canCancel, canRetry, durationMs, hasEnded, newestFirst, type Operation } from './operations.ts'
import { progressOf, stateOfOperation, stateOfStage, titleOf } from './operations.ts'

const operation = (status: Operation['status'], spec: Partial<Operation['spec']> = {}): Operation => ({
  metadata: { name: 'op-1' },
  spec: { cluster: 'c-1', type: 'Apply', ...spec },
  ...(status !== undefined && { status }),
})

describe('state of an Operation', () => {
  const rows: readonly (readonly [one: Operation, text: string, actions: string])[] = [
    [operation(undefined), 'Waits for its plan', 'cancel'],
    [operation({ phase: 'Planned' }), 'Waits for approval', 'approve cancel'],
    [operation({ phase: 'Planned' }, { approved: true }), 'Approved', 'cancel'],
    [operation({ phase: 'Running' }), 'Running', 'cancel'],
    [operation({ phase: 'Running' }, { cancelled: true }), 'Stops after the steps under way', ''],
    [operation({ phase: 'Failed', retryAt: 'x' }), 'Failed, is tried again', 'cancel retry'],
    [operation({ phase: 'Failed' }), 'Failed', 'retry'],
    [operation({ phase: 'Succeeded' }), 'Succeeded', ''],
    [operation({ phase: 'Cancelled' }, { cancelled: true }), 'Cancelled', ''],
    [operation({ phase: 'Superseded' }), 'Replaced by a newer file', ''],
  ]
  for (const [one, text, actions] of rows) {
    it(`is "${text}", with the actions "${actions}"`, () => {
      assert.equal(stateOfOperation(one).text, text)
      const offered = { approve: canApprove(one), cancel: canCancel(one), retry: canRetry(one) }
      const names = Object.entries(offered).flatMap(([name, isOffered]) => (isOffered ? [name] : []))
      assert.equal(names.join(' '), actions)
      assert.equal(hasEnded(one) && canCancel(one), false)
    })
  }

  it('has a title', () => {
    assert.equal(titleOf(operation(undefined, { type: 'RestoreSnapshot', snapshot: 's' })), 'Restore snapshot s')
    const rotation = { type: 'RotateCertificates', service: 'kubelet' }
    assert.equal(titleOf(operation(undefined, rotation)), 'Rotate the certificates of kubelet')
    assert.equal(titleOf(operation(undefined, { type: 'New' })), 'New')
  })

  it('is in a list with the newest first', () => {
    const all = ['a', 'c', 'b'].map((name) => ({ ...operation(undefined), metadata: { name } }))
    assert.deepEqual(
      newestFirst(all).map(({ metadata }) => metadata.name),
      ['c', 'b', 'a'],
    )
  })
})

describe('progress of an Operation', () => {
  const done = { host: 'a', describe: 'x', state: 'Done', startedAt: '2026-01-01T00:00:00Z' } as const
  const running = { ...done, state: 'Running' } as const
  const waiting = { host: 'b', describe: 'y', state: 'Waiting' } as const

  it('counts steps, those that are not sent too', () => {
    const stages = [
      { name: 'one', steps: [done, running] },
      { name: 'two', steps: [waiting], more: 7 },
    ]
    assert.deepEqual(progressOf(stages), { done: 1, total: 10, running: [running] })
  })

  it('has a state for each stage', () => {
    assert.equal(stateOfStage({ name: '', steps: [done, running] }), 'Running')
    assert.equal(stateOfStage({ name: '', steps: [running, { ...done, state: 'Failed' }] }), 'Failed')
    assert.equal(stateOfStage({ name: '', steps: [done] }), 'Done')
    assert.equal(stateOfStage({ name: '', steps: [done, waiting] }), 'Waiting')
  })

  it('has the duration of steps that have begun', () => {
    const now = Date.parse('2026-01-01T00:00:09Z')
    assert.equal(durationMs(waiting, now), undefined)
    assert.equal(durationMs(running, now), 9000)
    assert.equal(durationMs({ ...done, endedAt: '2026-01-01T00:00:04Z' }, now), 4000)
  })
})
