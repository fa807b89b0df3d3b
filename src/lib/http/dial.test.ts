import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'

import { createVirtualClock } from '../clock.ts'
import { dial } from './dial.ts'

describe('dial()', () => {
  const server = createServer((socket) => void socket.destroy())
  before(() => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve)))
  after(() => void server.close())

  it('rejects if the signal is aborted already, and leaves no timer', async () => {
    const { port } = server.address() as AddressInfo
    const clock = createVirtualClock()
    const origin = { isSecure: false, host: '127.0.0.1', port }
    const options = { clock, timeoutMs: 5000, tls: {}, alpn: [], signal: AbortSignal.abort() }
    await assert.rejects(dial(origin, options), { code: 'aborted' })
    assert.equal(clock.pending, 0)
  })
})
