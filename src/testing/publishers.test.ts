import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ConfigMaps, Namespaces, ServiceAccounts } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { defineResource } from '#apiserver/registry/resource.ts'
import { createServers, type TestServers } from '#apiserver/registry/servers.fixture.ts'
import { failure } from '#meta/status-errors.ts'

import { startPublishers } from './publishers.ts'

const KINDS = [Namespaces, ServiceAccounts, ConfigMaps]

const addNamespace = (registry: Registry, name: string, finalizers?: string[]): Promise<boolean> =>
  registry.writer.ensure(Namespaces, { metadata: { name, ...(finalizers && { finalizers }) }, spec: {}, status: {} })

const remove = (registry: Registry, kind: Kind, namespace: string, name: string): Promise<unknown> | undefined =>
  registry.writer.delete(kind, { namespace, name })

async function published(servers: TestServers, registry: Registry, namespace: string): Promise<string[]> {
  await servers.clock.advance(0)
  const objects = [
    ...(await registry.list(ServiceAccounts, namespace)),
    ...(await registry.list(ConfigMaps, namespace)),
  ]
  return objects.map(({ metadata }) => metadata.name ?? '')
}

function start(registry: Registry): { readonly errors: unknown[]; readonly close: () => void } {
  const errors: unknown[] = []
  const following = startPublishers(registry, { rootCa: 'PEM', onError: (error) => errors.push(error) })
  return { errors, close: () => following.close() }
}

describe('publishers of default objects in namespaces', () => {
  it('create the default service account and the root CA in every namespace, including existing ones', async () => {
    await using servers = createServers()
    const registry = await servers.open(KINDS)
    await addNamespace(registry, 'old')
    const { errors, close } = start(registry)
    await addNamespace(registry, 'new')
    assert.deepEqual(await published(servers, registry, 'old'), ['default', 'kube-root-ca.crt'])
    assert.deepEqual(await published(servers, registry, 'new'), ['default', 'kube-root-ca.crt'])
    const authority = await registry.get(ConfigMaps, 'new', 'kube-root-ca.crt')
    assert.deepEqual(authority?.data, { 'ca.crt': 'PEM' })
    assert.match(authority?.metadata.annotations?.['kubernetes.io/description'] ?? '', /^Contains a CA bundle/)
    close()
    await addNamespace(registry, 'late')
    assert.deepEqual(await published(servers, registry, 'late'), [])
    assert.deepEqual(errors, [])
  })

  it('recreate these objects after a deletion, and no other objects', async () => {
    await using servers = createServers()
    const registry = await servers.open(KINDS)
    await addNamespace(registry, 'ns')
    const { errors, close } = start(registry)
    await published(servers, registry, 'ns')
    await registry.writer.ensure(ConfigMaps, { metadata: { name: 'own', namespace: 'ns' } })
    await remove(registry, ConfigMaps, 'ns', 'own')
    await remove(registry, ConfigMaps, 'ns', 'kube-root-ca.crt')
    await remove(registry, ServiceAccounts, 'ns', 'default')
    assert.deepEqual(await published(servers, registry, 'ns'), ['default', 'kube-root-ca.crt'])
    close()
    assert.deepEqual(errors, [])
  })

  it('skip terminating namespaces', async () => {
    await using servers = createServers()
    const registry = await servers.open(KINDS)
    await addNamespace(registry, 'ns', ['hold.example.com/x'])
    const { errors, close } = start(registry)
    await published(servers, registry, 'ns')
    await remove(registry, Namespaces, '', 'ns')
    await remove(registry, ServiceAccounts, 'ns', 'default')
    assert.deepEqual(await published(servers, registry, 'ns'), ['kube-root-ca.crt'])
    close()
    assert.deepEqual(errors, [])
  })

  it('report errors of the API server', async () => {
    await using servers = createServers()
    const broken = defineResource({
      kind: ServiceAccounts,
      allocate: () => Promise.reject(failure({ code: 500, message: 'no' })),
    })
    const registry = await servers.open([Namespaces, ConfigMaps], { own: [broken] })
    const { errors, close } = start(registry)
    await addNamespace(registry, 'ns')
    assert.deepEqual(await published(servers, registry, 'ns'), [])
    assert.deepEqual(
      errors.map((error) => (error as Error).message),
      ['no'],
    )
    close()
  })
})
