import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ConfigMaps, Secrets } from '#apis/core/v1.ts'
import { failure } from '#meta/status-errors.ts'

import { defineResource } from '../registry/resource.ts'
import { createServers } from '../registry/servers.fixture.ts'
import { ensure, SYSTEM_USER, systemRequest } from './ensure.ts'

const wanted = { metadata: { name: 'x', namespace: 'ns' }, data: { a: '1' } }

describe('ensure', () => {
  it('creates what is missing, and leaves what is there', async () => {
    await using servers = createServers()
    const registry = await servers.open([ConfigMaps])
    assert.equal(await ensure(registry, ConfigMaps, wanted), true)
    assert.equal(await ensure(registry, ConfigMaps, { ...wanted, data: { a: '2' } }), false)
    assert.deepEqual((await registry.get(ConfigMaps, 'ns', 'x'))?.data, { a: '1' })
    assert.deepEqual(wanted.metadata, { name: 'x', namespace: 'ns' })
  })

  it('lets one of several servers create it', async () => {
    await using servers = createServers()
    const registries = await Promise.all(Array.from({ length: 5 }, () => servers.open([ConfigMaps])))
    const outcomes = await Promise.all(registries.map((registry) => ensure(registry, ConfigMaps, wanted)))
    assert.equal(outcomes.filter(Boolean).length, 1)
  })

  it('fills in defaults, and does nothing for a kind that is not served', async () => {
    await using servers = createServers()
    const configMap = defineResource({
      kind: ConfigMaps,
      applyDefaults(object: { data?: Record<string, string> } & typeof wanted) {
        object.data = { ...object.data, b: '2' }
      },
    })
    const registry = await servers.open([], { own: [configMap] })
    await ensure(registry, ConfigMaps, wanted)
    assert.deepEqual((await registry.get(ConfigMaps, 'ns', 'x'))?.data, { a: '1', b: '2' })
    assert.equal(await ensure(registry, Secrets, { metadata: { name: 'x', namespace: 'ns' } }), false)
  })

  it('passes on what goes wrong', async () => {
    await using servers = createServers()
    const broken = defineResource({
      kind: ConfigMaps,
      allocate: () => Promise.reject(failure({ code: 500, message: 'no' })),
    })
    const registry = await servers.open([], { own: [broken] })
    await assert.rejects(ensure(registry, ConfigMaps, wanted), { message: 'no' })
  })

  it('writes as the server itself', () => {
    const { user, manager, dryRun, namespace } = systemRequest(ConfigMaps, 'ns')
    assert.deepEqual([user, manager, dryRun, namespace], [SYSTEM_USER, 'kube-apiserver', false, 'ns'])
  })
})
