import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Leases } from '#apis/coordination/v1.ts'
import { microTimeOf } from '#meta/time.ts'

import type { Registry } from '../registry/registry.ts'
import { createServers, type TestServers } from '../registry/servers.fixture.ts'
import { identityOf, isExpired, startIdentityCleanup, startIdentityLease } from './identity-lease.ts'

describe('identityOf() for a server', () => {
  it("returns upstream's name for a host name and UID", () => {
    assert.equal(identityOf('node-1'), 'apiserver-lgabes5ywnaqeagh5dny4zlzs4')
  })

  it('differs between machines', () => {
    assert.notEqual(identityOf('node-1'), identityOf('node-2'))
  })
})

describe('identity Lease of a server', () => {
  it('is renewed while the server runs', async () => {
    await using servers = createServers()
    const registry = await servers.open([Leases])
    const onError = (error: unknown): void => assert.fail(error as Error)
    const rounds = await startIdentityLease(registry, { hostname: 'node-1', onError })
    const renewed = async (): Promise<string | null | undefined> =>
      (await registry.get(Leases, 'kube-system', identityOf('node-1')))?.spec?.renewTime
    assert.equal(await renewed(), microTimeOf(servers.clock.now()))
    await servers.clock.advance(10_000)
    assert.equal(await renewed(), microTimeOf(servers.clock.now()))
    await rounds.stop()
    const last = await renewed()
    await servers.clock.advance(60_000)
    assert.equal(await renewed(), last)
  })

  it('contains the address of the server, also if the Lease existed before', async () => {
    await using servers = createServers()
    const registry = await servers.open([Leases])
    for (const peerAddress of ['10.0.0.1:6443', '[fd00::1]:6443']) {
      const onError = (error: unknown): void => assert.fail(error as Error)
      const rounds = await startIdentityLease(registry, { hostname: 'node-1', peerAddress, onError })
      const lease = await registry.get(Leases, 'kube-system', identityOf('node-1'))
      assert.deepEqual(lease?.metadata.annotations, { 'kubernetes.io/peer-advertise-address': peerAddress })
      await rounds.stop()
    }
  })
})

const IDENTITY = { 'apiserver.kubernetes.io/identity': 'kube-apiserver' }

/** A lease that was last renewed at this time. */
const add = (
  servers: TestServers,
  registry: Registry,
  name: string,
  { agoMs = 0, labels = IDENTITY }: { agoMs?: number; labels?: Record<string, string> },
): Promise<boolean> =>
  registry.writer.ensure(Leases, {
    metadata: { name, namespace: 'kube-system', labels },
    spec: { leaseDurationSeconds: 3600, renewTime: microTimeOf(servers.clock.now() - agoMs) },
  })

const names = async (registry: Registry): Promise<(string | undefined)[]> =>
  (await registry.list(Leases, '')).map(({ metadata }) => metadata.name)

describe('cleanup of expired identity Leases', () => {
  it('deletes them at the start and every hour, and no other Leases', async () => {
    await using servers = createServers()
    const registry = await servers.open([Leases])
    await add(servers, registry, 'gone', { agoMs: 3_600_001 })
    await add(servers, registry, 'fresh', { agoMs: 1000 })
    await add(servers, registry, 'other', { agoMs: 9_000_000, labels: {} })
    const errors: unknown[] = []
    const rounds = startIdentityCleanup(registry, (error) => errors.push(error))
    await servers.clock.advance(0)
    assert.deepEqual(await names(registry), ['fresh', 'other'])
    await servers.clock.advance(3_600_000)
    assert.deepEqual(await names(registry), ['other'])
    await rounds.stop()
    assert.deepEqual(errors, [])
  })

  it('deletes each once with several servers', async () => {
    await using servers = createServers()
    const registries = [await servers.open([Leases]), await servers.open([Leases])]
    await add(servers, registries[0]!, 'gone', { agoMs: 3_600_001 })
    const errors: unknown[] = []
    const all = registries.map((registry) => startIdentityCleanup(registry, (error) => errors.push(error)))
    await servers.clock.advance(0)
    assert.deepEqual(await names(registries[1]!), [])
    for (const rounds of all) await rounds.stop()
    assert.deepEqual(errors, [])
  })

  it('deletes those without a duration', () => {
    const renewTime = microTimeOf(0)
    assert.equal(isExpired({}, 0), true)
    assert.equal(isExpired({ renewTime }, 0), true)
    assert.equal(isExpired({ leaseDurationSeconds: 10 }, 0), true)
    assert.equal(isExpired({ renewTime, leaseDurationSeconds: 10 }, 10_000), false)
    assert.equal(isExpired({ renewTime, leaseDurationSeconds: 10 }, 10_001), true)
  })
})
