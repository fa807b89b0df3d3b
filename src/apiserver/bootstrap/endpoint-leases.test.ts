import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createSeededRandom } from '#lib/random.ts'
import { type Backend, StorageError } from '#storage/backend.ts'
import { createAtRest } from '#storage/encryption/at-rest.ts'
import { NO_ENCRYPTION } from '#storage/encryption/config.ts'

import { createServers } from '../registry/servers.fixture.ts'
import { createEndpointLeases, type EndpointLeases } from './endpoint-leases.ts'

const leasesOn = (backend: Backend): EndpointLeases =>
  createEndpointLeases(backend, createAtRest(NO_ENCRYPTION, createSeededRandom(1)))

describe('lease of a server endpoint', () => {
  it('expires 15 seconds after its last renewal', async () => {
    await using servers = createServers()
    const leases = leasesOn(servers.backend)
    await leases.renew('192.0.2.1')
    await servers.clock.advance(14_000)
    await leases.renew('192.0.2.1')
    await servers.clock.advance(14_000)
    assert.deepEqual(await leases.list(), ['192.0.2.1'])
    await servers.clock.advance(2_000)
    assert.deepEqual(await leases.list(), [])
    // The lease has expired by now: the server obtains a new one.
    await leases.renew('192.0.2.1')
    assert.deepEqual(await leases.list(), ['192.0.2.1'])
  })

  it('writes its key once, not at every renewal', async () => {
    await using servers = createServers()
    const leases = leasesOn(servers.backend)
    await leases.renew('192.0.2.1')
    const revision = await servers.backend.currentRevision()
    await leases.renew('192.0.2.1')
    assert.equal(await servers.backend.currentRevision(), revision)
  })

  it("is stored as upstream's object under upstream's key", async () => {
    await using servers = createServers()
    await leasesOn(servers.backend).renew('2001:db8::1')
    const { items } = await servers.backend.range({ start: '/registry/masterleases/2001:db8::1' })
    assert.deepEqual(JSON.parse(Buffer.from(items[0]!.value).toString()), {
      kind: 'Endpoints',
      apiVersion: 'v1',
      metadata: { generation: 1 },
      subsets: [{ addresses: [{ ip: '2001:db8::1' }] }],
    })
  })

  it('is independent of the leases of other servers', async () => {
    await using servers = createServers()
    const [a, b] = [leasesOn(servers.backend), leasesOn(servers.backend)]
    await a.renew('192.0.2.1')
    await b.renew('192.0.2.2')
    assert.deepEqual(await a.list(), ['192.0.2.1', '192.0.2.2'])
    await a.release()
    await a.release()
    assert.deepEqual(await b.list(), ['192.0.2.2'])
  })

  it('is taken over by a later server of the same address', async () => {
    await using servers = createServers()
    const [crashed, again] = [leasesOn(servers.backend), leasesOn(servers.backend)]
    await crashed.renew('192.0.2.1')
    await servers.clock.advance(10_000)
    await again.renew('192.0.2.1')
    await servers.clock.advance(10_000)
    assert.deepEqual(await again.list(), ['192.0.2.1'])
    await crashed.release()
    assert.deepEqual(await again.list(), ['192.0.2.1'])
  })

  it('is removed by address', async () => {
    await using servers = createServers()
    const leases = leasesOn(servers.backend)
    assert.equal(await leases.drop('192.0.2.1'), false)
    await leases.renew('192.0.2.1')
    assert.equal(await leases.drop('192.0.2.1'), true)
    assert.deepEqual(await leases.list(), [])
  })

  it('reports a store that does not respond', async () => {
    await using servers = createServers()
    const { backend } = servers
    let isDown = false
    const answer = (): Promise<never> => Promise.reject(new StorageError('unavailable', 'no answer'))
    const flaky: Backend = Object.assign(Object.create(backend) as Backend, {
      grantLease: (ttlMs: number) => backend.grantLease(ttlMs),
      range: (options: Parameters<Backend['range']>[0]) => backend.range(options),
      commit: (writes: Parameters<Backend['commit']>[0]) => backend.commit(writes),
      keepAliveLease: (lease: number) => (isDown ? answer() : backend.keepAliveLease(lease)),
      revokeLease: (lease: number) => (isDown ? answer() : backend.revokeLease(lease)),
    })
    const leases = leasesOn(flaky)
    await leases.renew('192.0.2.1')
    isDown = true
    await assert.rejects(leases.renew('192.0.2.1'), { message: 'no answer' })
    await assert.rejects(leases.release(), { message: 'no answer' })
  })
})
