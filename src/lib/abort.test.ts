import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, it } from 'node:test'

import { abortError, onAbort } from './abort.ts'

describe('abortError()', () => {
  it('is the reason itself when that is an Error, and wraps it otherwise', () => {
    const reason = new Error('enough')
    assert.equal(abortError(AbortSignal.abort(reason)), reason)
    const wrapped = abortError(AbortSignal.abort('a word'))
    assert.equal(wrapped.message, 'Aborted')
    assert.equal(wrapped.cause, 'a word')
  })
})

describe('onAbort()', () => {
  it('runs the task once: at the abort, or immediately if the signal is already aborted', () => {
    let ran = 0
    const control = new AbortController()
    onAbort(control.signal, () => ran++)
    assert.equal(ran, 0)
    control.abort()
    control.abort()
    assert.equal(ran, 1)
    onAbort(control.signal, () => ran++)
    assert.equal(ran, 2)
  })

  it('removes its listener when it is disposed', () => {
    const control = new AbortController()
    const release = onAbort(control.signal, () => assert.fail('ran'))
    assert.equal(getEventListeners(control.signal, 'abort').length, 1)
    release()
    release()
    assert.equal(getEventListeners(control.signal, 'abort').length, 0)
    control.abort()
    onAbort(undefined, () => assert.fail('ran'))()
  })

  it('has one listener on the signal and notifies each waiter separately', () => {
    const control = new AbortController()
    const ran: string[] = []
    const task = (): number => ran.push('shared')
    onAbort(control.signal, task)
    onAbort(control.signal, task)()
    onAbort(control.signal, () => ran.push('other'))
    assert.equal(getEventListeners(control.signal, 'abort').length, 1)
    control.abort()
    assert.deepEqual(ran, ['shared', 'other'])
  })
})
