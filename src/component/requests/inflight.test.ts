import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { requestInfoOf } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'

import { createInflight, isLongRunning, requestKindOf } from './inflight.ts'

const jane: User = { name: 'jane', uid: '', groups: ['system:authenticated'], extra: {} }
const root: User = { ...jane, groups: ['system:masters'] }
const info = (method: string, target: string): ReturnType<typeof requestInfoOf> => {
  const [path = '', query = ''] = target.split('?')
  return requestInfoOf(method, path, new URLSearchParams(query))
}
const read = info('GET', '/api/v1/pods')
const write = info('POST', '/api/v1/namespaces/a/pods')

describe('filter for requests in flight', () => {
  it('limits concurrent reads and writes separately, and admits more when some finish', () => {
    const inflight = createInflight({ maxReading: 2, maxMutating: 1 })
    const leave = inflight.enter(jane, read)
    assert.ok(leave && inflight.enter(jane, read) && inflight.enter(jane, write))
    assert.equal(inflight.enter(jane, read), undefined)
    assert.equal(inflight.enter(jane, write), undefined)
    leave()
    assert.ok(inflight.enter(jane, read))
    assert.deepEqual([inflight.running('readOnly'), inflight.running('mutating')], [2, 1])
    assert.deepEqual([inflight.dropped('readOnly'), inflight.dropped('mutating')], [1, 1])
  })

  it('always admits system:masters and long-running requests', () => {
    const inflight = createInflight({ maxReading: 1, maxMutating: 1 })
    inflight.enter(jane, read)
    assert.ok(inflight.enter(root, read))
    for (let times = 0; times < 5; times++) assert.ok(inflight.enter(jane, info('GET', '/api/v1/pods?watch=1')))
    assert.equal(inflight.running('readOnly'), 1)
  })

  it('has no limit if the flag is 0', () => {
    const inflight = createInflight({ maxReading: 0, maxMutating: 0 })
    for (let times = 0; times < 1000; times++) assert.ok(inflight.enter(jane, write))
    assert.equal(inflight.running('mutating'), 1000)
  })

  for (const [method, target, kind, isLong] of [
    ['GET', '/api/v1/pods', 'readOnly', false],
    ['GET', '/api/v1/pods?watch=true', 'readOnly', true],
    ['GET', '/api/v1/namespaces/a/pods/b/log', 'readOnly', true],
    ['POST', '/api/v1/namespaces/a/pods/b/exec', 'mutating', true],
    ['DELETE', '/api/v1/namespaces/a/pods', 'mutating', false],
    ['PATCH', '/apis/apps/v1/namespaces/a/deployments/b', 'mutating', false],
    ['GET', '/healthz', 'readOnly', false],
  ] as const) {
    it(`counts ${method} ${target} as ${kind}${isLong ? ', long-running' : ''}`, () => {
      assert.equal(requestKindOf(info(method, target)), kind)
      assert.equal(isLongRunning(info(method, target)), isLong)
    })
  }
})
