/** Tests a management server whose disk is full: it still serves reads, reports the failure, and recovers. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { Disk, whyNoDisk } from '../../reliability/disk.ts'
import { eventuallySlow, freePort, Replica } from './replica-bed.ts'

describe('hyperkube server on a full disk', { skip: whyNoDisk() ?? false, timeout: 120_000 }, () => {
  let disk: Disk
  let server: Replica
  let administrator: string

  before(async () => {
    disk = new Disk(256)
    const port = await freePort()
    const plan = { datastore: 'sqlite', serverUrl: `https://127.0.0.1:${port}`, token: undefined }
    server = new Replica(port, plan, join(disk.mount, 'server'))
    await server.start()
    administrator = await server.logIn()
  })
  after(async () => {
    await server?.end('SIGKILL')
    disk?.remove()
  })

  it('serves reads, refuses writes with a reason, and reports the disk as failed in /readyz', async () => {
    assert.match((await server.request('GET', '/readyz?verbose')).text, /\[\+\]disk ok/)
    // The server writes at the same time.
    disk.fill(1 << 20)
    const user = { username: 'jane', password: 'a password for one day' }
    await eventuallySlow('writes are refused', async () => {
      const body = { displayName: 'x', description: 'x'.repeat(1000) }
      const made = await Promise.all(
        Array.from({ length: 20 }, () => server.request('POST', '/v3/clusters', { token: administrator, body })),
      )
      return made.every(({ status }) => status >= 500)
    })
    const refused = await server.request('POST', '/v3/users', { token: administrator, body: user })
    assert.ok(refused.status >= 500, refused.text)
    assert.equal((await server.request('GET', '/v3/me', { token: administrator })).status, 200)
    assert.equal((await server.request('GET', '/v3/clusters', { token: administrator })).status, 200)
    assert.match((await server.request('GET', '/readyz?verbose')).text, /\[-\]disk failed/)
    assert.equal((await server.request('GET', '/livez')).status, 200)
  })

  it('recovers when there is free space again', async () => {
    disk.free()
    await eventuallySlow('the server is ready', async () => (await server.request('GET', '/readyz')).status === 200)
    await eventuallySlow('writes are accepted', async () => {
      const { status } = await server.request('POST', '/v3/tokens', { token: administrator, body: {} })
      return status === 201
    })
  })
})
