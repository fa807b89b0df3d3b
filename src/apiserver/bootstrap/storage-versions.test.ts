import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { StorageVersions } from '#apis/apiserverinternal/v1alpha1.ts'
import { Deployments } from '#apis/apps/v1.ts'
import { ConfigMaps } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'

import { createServers } from '../registry/servers.fixture.ts'
import { publishStorageVersions, withServer } from './storage-versions.ts'

const NOW = '2026-01-01T00:00:00Z'
const agreed = {
  type: 'AllEncodingVersionsEqual',
  status: 'True',
  lastTransitionTime: NOW,
  reason: 'CommonEncodingVersionSet',
  message: 'Common encoding version set',
}

describe('StorageVersions that servers publish', () => {
  it('exist for every served resource, with one entry per server', async () => {
    await using servers = createServers()
    const kinds = [StorageVersions, Deployments, ConfigMaps]
    for (const id of ['one', 'two', 'one']) await publishStorageVersions(await servers.open(kinds), id)
    const registry = await servers.open(kinds)
    const all = await registry.list(StorageVersions, '')
    assert.deepEqual(
      all.map(({ metadata }) => metadata.name),
      ['apps.deployments', 'core.configmaps', 'internal.apiserver.k8s.io.storageversions'],
    )
    const mine = {
      encodingVersion: 'apps/v1',
      decodableVersions: ['apps/v1', 'apps/v1beta2', 'apps/v1beta1'],
      servedVersions: ['apps/v1'],
    }
    assert.deepEqual(all[0]?.status, {
      storageVersions: ['one', 'two'].map((apiServerID) => ({ apiServerID, ...mine })),
      commonEncodingVersion: 'apps/v1',
      conditions: [agreed],
    })
  })

  it('do not exist if the StorageVersion resource is not served', async () => {
    await using servers = createServers()
    const registry = await servers.open([ConfigMaps])
    await publishStorageVersions(registry, 'one')
    assert.deepEqual(await registry.list(StorageVersions, ''), [])
  })

  it('have commonEncodingVersion only while all servers agree', () => {
    const clock = createVirtualClock()
    const versionOf = (apiServerID: string, encodingVersion: string): object => ({ apiServerID, encodingVersion })
    const first = withServer({}, versionOf('a', 'v1'), clock)
    assert.deepEqual([first.commonEncodingVersion, first.conditions], ['v1', [agreed]])
    const split = withServer(first, versionOf('b', 'v2'), clock)
    assert.equal(split.commonEncodingVersion, undefined)
    assert.equal(split.conditions?.[0]?.reason, 'CommonEncodingVersionUnset')
    const joined = withServer(split, versionOf('a', 'v2'), clock)
    assert.deepEqual(joined.storageVersions, [versionOf('a', 'v2'), versionOf('b', 'v2')])
    assert.equal(joined.commonEncodingVersion, 'v2')
  })

  it('keep the transition time of the condition while the version stays', async () => {
    const clock = createVirtualClock()
    const first = withServer({}, { apiServerID: 'a', encodingVersion: 'v1' }, clock)
    await clock.advance(60_000)
    const same = withServer(first, { apiServerID: 'a', encodingVersion: 'v1', servedVersions: ['v1'] }, clock)
    assert.equal(same.conditions?.[0]?.lastTransitionTime, NOW)
    const moved = withServer(first, { apiServerID: 'a', encodingVersion: 'v2' }, clock)
    assert.equal(moved.conditions?.[0]?.lastTransitionTime, '2026-01-01T00:01:00Z')
  })
})
