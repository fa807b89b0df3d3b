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

describe('being interrupted', () => {
  it('is what comes back of the signal, however it was wrapped, and nothing else', () => {
    const wrapped = new KubectlError('lost', { cause: new Error('given up', { cause: STOP }) })
    assert.deepEqual(
      [STOP, wrapped, new Error('other'), undefined].map((error) => isStop(error, stopped())),
      [true, true, false, false],
    )
    assert.equal(isStop(STOP, new AbortController().signal), false)
  })

  it('ends who waits with 1 and without a word', async () => {
    const ended = await interruptible(stopped(), () => Promise.reject(STOP)).catch((error: unknown) => error)
    assert.ok(ended instanceof ExitError)
    assert.deepEqual([ended.exitCode, ended.message], [1, ''])
  })

  it('changes nothing else: neither what was waited for nor other failures', async () => {
    const other = new KubectlError('other')
    assert.equal(await interruptible(stopped(), () => Promise.resolve(7)), 7)
    await assert.rejects(
      interruptible(stopped(), () => Promise.reject(other)),
      (error) => error === other,
    )
  })

  it('leaves a moment for tidying up, and no more', async () => {
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
