import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type Duplex, duplexPair } from 'node:stream'
import { describe, it } from 'node:test'

import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'

import type { MachineConnection } from '../apply/connections.ts'
import { connectThroughTunnel } from './connect.ts'

interface Far {
  /** The machine's end of the stream. */
  readonly far: Duplex
  readonly clock: VirtualClock
  readonly stop: AbortController
  readonly connecting: Promise<MachineConnection>
}

function open(installs = false): Far {
  const clock = createVirtualClock()
  const [near, far] = duplexPair()
  far.on('error', () => undefined)
  const stop = new AbortController()
  const payload = { file: '/nowhere', size: 0, sha256: 'abc' }
  const places = { name: 'm-1', home: '/opt/x', payload: () => Promise.resolve(payload), installs }
  const connecting = connectThroughTunnel({ ...places, dial: () => near, clock }, stop.signal)
  connecting.catch(() => undefined)
  return { far, clock, stop, connecting }
}

describe('connectThroughTunnel() of the cluster builder', () => {
  it('sends home folder, checksum and size of the program as lines, and returns its path', async () => {
    const { far, connecting } = open()
    far.write('hello x86_64\n')
    const [lines] = (await once(far, 'data')) as [Buffer]
    assert.equal(lines.toString(), '/opt/x\nabc\n0\nlook\n')
    far.end('absent\n')
    const connection = await connecting
    assert.deepEqual([connection.machine, connection.program], [undefined, '/opt/x/programs/abc'])
    await connection.close()
  })

  const WRONG: readonly (readonly [what: string, text: string, message: RegExp])[] = [
    ['prints something before the script', 'Welcome!\n', /m-1: The shell of the machine gives an unexpected answer/],
    ['sends an endless line', 'x'.repeat(9000), /m-1: The machine sends too much output/],
    ['reports a broken upload', 'hello x86_64\nbroken\n', /m-1: The program was not uploaded correctly/],
    ['sends an unknown answer', 'hello x86_64\nmaybe\n', /m-1: The machine answers "maybe"/],
  ]
  for (const [what, text, message] of WRONG)
    it(`rejects a machine that ${what}`, async () => {
      const { far, connecting } = open()
      far.resume().write(text)
      await assert.rejects(connecting, { name: 'MachineLost', message })
    })

  it('rejects when the stream ends early', async () => {
    const { far, connecting } = open()
    far.end()
    await assert.rejects(connecting, { name: 'MachineLost', message: /the connection has ended/ })
  })

  it('rejects when the machine does not answer within 15 seconds', async () => {
    const { clock, connecting } = open()
    await clock.advance(15_000)
    await assert.rejects(connecting, { name: 'MachineLost', message: 'm-1: no answer within 15 s' })
  })

  it('rejects when the builder is stopped', async () => {
    const { stop, connecting } = open()
    stop.abort()
    await assert.rejects(connecting, { name: 'MachineLost', message: 'm-1: the builder was stopped' })
  })

  it('destroys the stream if the machine does not end it within 5 seconds', async () => {
    const { far, clock, connecting } = open()
    far.write('hello x86_64\nabsent\n')
    far.resume()
    const connection = await connecting
    const closing = connection.close()
    await clock.advance(5000)
    await closing
  })
})
