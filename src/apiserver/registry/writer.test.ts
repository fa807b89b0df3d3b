import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type ConfigMap, ConfigMaps, type Node, Nodes, Secrets } from '#apis/core/v1.ts'
import { failure } from '#meta/status-errors.ts'

import { admitAll, type Attributes } from './admission.ts'
import { defineResource } from './resource.ts'
import { createServers } from './servers.fixture.ts'
import { SYSTEM_USER } from './writer.ts'

const wanted = { metadata: { name: 'x', namespace: 'ns' }, data: { a: '1' } }

describe('Writer.ensure()', () => {
  it('creates a missing object and keeps an existing one', async () => {
    await using servers = createServers()
    const registry = await servers.open([ConfigMaps])
    assert.equal(await registry.writer.ensure(ConfigMaps, wanted), true)
    assert.equal(await registry.writer.ensure(ConfigMaps, { ...wanted, data: { a: '2' } }), false)
    assert.deepEqual((await registry.get(ConfigMaps, 'ns', 'x'))?.data, { a: '1' })
    assert.deepEqual(wanted.metadata, { name: 'x', namespace: 'ns' })
  })

  it('creates an object once when several servers call it', async () => {
    await using servers = createServers()
    const registries = await Promise.all(Array.from({ length: 5 }, () => servers.open([ConfigMaps])))
    const outcomes = await Promise.all(registries.map((registry) => registry.writer.ensure(ConfigMaps, wanted)))
    assert.equal(outcomes.filter(Boolean).length, 1)
  })

  it('sets defaults, and does nothing for a kind that is not served', async () => {
    await using servers = createServers()
    const configMap = defineResource({
      kind: ConfigMaps,
      applyDefaults(object: { data?: Record<string, string> } & typeof wanted) {
        object.data = { ...object.data, b: '2' }
      },
    })
    const registry = await servers.open([], { own: [configMap] })
    await registry.writer.ensure(ConfigMaps, wanted)
    assert.deepEqual((await registry.get(ConfigMaps, 'ns', 'x'))?.data, { a: '1', b: '2' })
    assert.equal(await registry.writer.ensure(Secrets, { metadata: { name: 'x', namespace: 'ns' } }), false)
  })

  it('throws the error of a failed creation', async () => {
    await using servers = createServers()
    const broken = defineResource({
      kind: ConfigMaps,
      allocate: () => Promise.reject(failure({ code: 500, message: 'no' })),
    })
    const registry = await servers.open([], { own: [broken] })
    await assert.rejects(registry.writer.ensure(ConfigMaps, wanted), { message: 'no' })
  })
})

describe('writes by the server itself', () => {
  it('get defaults and managedFields, and pass admission as the user of the API server', async () => {
    await using servers = createServers()
    const seen: Attributes[] = []
    const mutate = (attributes: Attributes): Promise<void> => Promise.resolve(void seen.push(attributes))
    const registry = await servers.open([ConfigMaps], { admission: () => ({ ...admitAll, mutate }) })
    await registry.writer.create(ConfigMaps, wanted)
    await registry.writer.update(ConfigMaps, wanted.metadata, (live) => ({ ...live, data: { a: '2' } }))
    await registry.writer.delete(ConfigMaps, wanted.metadata)
    assert.deepEqual(
      seen.map(({ operation, user }) => [operation, user]),
      ['CREATE', 'UPDATE', 'DELETE'].map((operation) => [operation, SYSTEM_USER]),
    )
    const [entry] = seen[2]?.oldObject?.metadata.managedFields ?? []
    assert.deepEqual([entry?.manager, entry?.operation], ['kube-apiserver', 'Update'])
    assert.deepEqual(entry?.fieldsV1, { 'f:data': { '.': {}, 'f:a': {} } })
  })

  it('have the given field manager, by update and by apply', async () => {
    await using servers = createServers()
    const { writer } = await servers.open([Nodes])
    await writer.managing('maker').create(Nodes, { metadata: { name: 'n' } } as Node)
    const condition = { type: 'Ready', status: 'True', reason: 'a' }
    const owner = writer.managing('owner')
    await owner.applyStatus(Nodes, { name: 'n' }, { conditions: [condition] })
    await writer.updateStatus(Nodes, { name: 'n' }, (live) => ({
      ...live,
      status: { ...live.status, phase: 'Running' },
    }))
    await owner.applyStatus(Nodes, { name: 'n' }, { conditions: [{ type: 'Other', status: 'False' }] })
    const node = await writer.get(Nodes, '', 'n')
    const types = node?.status?.conditions?.map(({ type }) => type)
    assert.deepEqual([node?.status?.phase, types], ['Running', ['Other']])
    const managers = node?.metadata.managedFields?.map((one) => `${one.manager} ${one.operation} ${one.subresource}`)
    assert.deepEqual(managers?.sort(), ['kube-apiserver Update status', 'owner Apply status'])
    await assert.rejects(owner.applyStatus(Nodes, { name: 'none' }, {}), /nodes "none" not found/)
  })

  it('drop managedFields if the object is too large with them', async () => {
    await using servers = createServers()
    const { writer } = await servers.open([ConfigMaps])
    const keys = (count: number): Record<string, string> =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`${at}-`.padEnd(1000, 'k'), '']))
    await writer.create(ConfigMaps, { ...wanted, data: keys(100) })
    assert.equal((await writer.get(ConfigMaps, 'ns', 'x'))?.metadata.managedFields?.length, 1)
    await writer.update(ConfigMaps, wanted.metadata, (live) => ({ ...live, data: keys(1000) }))
    const large = await writer.get(ConfigMaps, 'ns', 'x')
    assert.deepEqual([Object.keys(large?.data ?? {}).length, large?.metadata.managedFields], [1000, undefined])
    const other = { metadata: { name: 'y', namespace: 'ns' }, data: keys(1000) }
    assert.equal((await writer.create(ConfigMaps, other))?.metadata.managedFields, undefined)
    const tooLarge = { ...other, metadata: { name: 'z', namespace: 'ns' }, data: keys(1600) }
    await assert.rejects(writer.create(ConfigMaps, tooLarge), /etcdserver: request is too large/)
  })

  it('return whether a deletion found an object, and create missing objects only on request', async () => {
    await using servers = createServers()
    const { writer } = await servers.open([ConfigMaps])
    assert.equal(await writer.delete(ConfigMaps, wanted.metadata), false)
    const change = (live: ConfigMap): ConfigMap => ({ ...live, ...wanted })
    await assert.rejects(writer.update(ConfigMaps, wanted.metadata, change), { message: 'configmaps "x" not found' })
    await writer.update(ConfigMaps, wanted.metadata, change, { creates: true })
    assert.equal(await writer.delete(ConfigMaps, wanted.metadata), true)
  })

  it('check the resourceVersion on request', async () => {
    await using servers = createServers()
    const { writer } = await servers.open([ConfigMaps])
    await writer.create(ConfigMaps, wanted)
    const stale = writer.update(ConfigMaps, wanted.metadata, (live) => live, { resourceVersion: '7' })
    await assert.rejects(stale, /the object has been modified/)
  })
})
