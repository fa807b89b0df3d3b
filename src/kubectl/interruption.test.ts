import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { StopSignal } from '#lib/program.ts'

import { ExitError, KubectlError } from './errors.ts'
import { endedBy, interruptible, isStop } from './interruption.ts'

const STOP = new StopSignal('SIGINT', 2)
const never = new Promise<never>(() => undefined)

function stopped(): AbortSignal {
  return AbortSignal.abort(STOP)
}

describe('interrupted kubectl command', () => {
  it('recognizes the abort of its signal, wrapped or not', () => {
    const wrapped = new KubectlError('lost', { cause: new Error('given up', { cause: STOP }) })
    assert.deepEqual(
      [STOP, wrapped, new Error('other'), undefined].map((error) => isStop(error, stopped())),
      [true, true, false, false],
    )
    assert.equal(isStop(STOP, new AbortController().signal), false)
  })

  it('ends with exit code 1 and no message', async () => {
    const ended = await interruptible(stopped(), () => Promise.reject(STOP)).catch((error: unknown) => error)
    assert.ok(ended instanceof ExitError)
    assert.deepEqual([ended.exitCode, ended.message], [1, ''])
  })

  it('still returns results and throws other failures', async () => {
    const other = new KubectlError('other')
    assert.equal(await interruptible(stopped(), () => Promise.resolve(7)), 7)
    await assert.rejects(
      interruptible(stopped(), () => Promise.reject(other)),
      (error) => error === other,
    )
  })

  it('limits the time for cleanup', async () => {
    const clock = createVirtualClock()
    const control = new AbortController()
    const tidy = Promise.withResolvers<string>()
    const tidying = endedBy(control.signal, clock, tidy.promise)
    const deaf = endedBy(control.signal, clock, never).catch((error: unknown) => error)
    control.abort(STOP)
    await clock.advance(200)
    tidy.resolve('tidy')
    assert.equal(await tidying, 'tidy')
    await clock.advance(100)
    assert.equal(await deaf, STOP)
    assert.equal(clock.pending, 0)
  })
})
