import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'

import { emptyState, simulatedMachine } from '#kits/provision/simulated-machine.ts'

import type { Machine } from '../machine.ts'
import { remoteMachine } from './remote.ts'
import { serveMachine } from './serve.ts'

function connected(far: Partial<Machine> = {}): { machine: Machine; hangUp: () => void; served: Promise<void> } {
  const [there, back] = [new PassThrough(), new PassThrough()]
  const simulated = simulatedMachine({
    name: 'far',
    state: emptyState(),
    now: () => 0,
    http: () => ({ status: 200, text: 'ok' }),
    turn: () => undefined,
  })
  const served = serveMachine({ ...simulated, ...far }, there, back)
  const machine = remoteMachine({ name: 'far', input: back, output: there })
  const hangUp = (): void => {
    there.end()
    back.end()
  }
  return { machine, hangUp, served }
}

describe('remoteMachine() of hyperkube build', () => {
  it('forwards calls, results and binary content', async () => {
    const { machine } = connected()
    const content = Buffer.from([0, 1, 2, 255])
    await machine.write({ path: '/a', mode: 0o600, content })
    assert.deepEqual(await machine.read({ path: '/a' }), { content })
    assert.deepEqual(await machine.read({ path: '/b' }), {})
    assert.equal((await machine.facts({})).hostname, 'far')
  })

  it('adds the name of the machine to errors', async () => {
    const { machine } = connected({ serve: () => Promise.reject(new Error('no room')) })
    const service = { name: 'x', description: 'x', command: ['/x'] }
    await assert.rejects(machine.serve({ service }), { name: 'MachineError', message: 'far: no room' })
  })

  it('accepts results in any order', async () => {
    const slow = Promise.withResolvers<{ text: string }>()
    const { machine } = connected({ tail: () => slow.promise })
    const tail = machine.tail({ name: 'x', lines: 1 })
    assert.deepEqual(await machine.read({ path: '/b' }), {})
    slow.resolve({ text: 'late' })
    assert.deepEqual(await tail, { text: 'late' })
  })

  it('aborts a remote call when the local signal is aborted', async () => {
    const begun = Promise.withResolvers<void>()
    const { machine } = connected({
      run: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener('abort', () => reject(new Error('aborted')))
          begun.resolve()
        }),
    })
    const stop = new AbortController()
    const running = machine.run({ command: ['/bin/sleep', '9'], timeoutMs: 9000 }, stop.signal)
    await begun.promise
    stop.abort()
    await assert.rejects(running, /aborted/)
  })

  it('rejects pending and later calls after the connection is lost', async () => {
    const { machine, hangUp, served } = connected({ tail: () => new Promise(() => undefined) })
    const waiting = machine.tail({ name: 'x', lines: 1 })
    hangUp()
    await assert.rejects(waiting, { name: 'MachineLost' })
    await assert.rejects(machine.read({ path: '/b' }), { name: 'MachineLost' })
    void served
  })
})
