import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type CustomResourceDefinition, CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { APIServices } from '#apis/apiregistration/v1.ts'
import type { Following } from '#apiserver/registry/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { defineResource } from '#apiserver/registry/resource.ts'
import { createServers, type TestServers } from '#apiserver/registry/servers.fixture.ts'
import type { KubeObject } from '#meta/object.ts'

import { CLEANUP_FINALIZER, isTrue } from './definition.ts'
import { startCustomResources } from './start.ts'

/** The status endpoint of a definition also writes metadata. */
const DEFINITIONS = defineResource<KubeObject>({
  kind: CustomResourceDefinitions,
  metadataRules: { plainFinalizers: true },
  status: { keeps: ['spec'] },
  statusOnCreate: 'kept',
})
const THINGS = { group: 'ex.io', version: 'v1', resource: 'things' }

const definition = (finalizers: string[] = []): object => ({
  metadata: { name: 'things.ex.io', finalizers },
  spec: {
    group: 'ex.io',
    scope: 'Namespaced',
    names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
  status: { conditions: null, acceptedNames: { plural: '', kind: '' }, storedVersions: ['v1'] },
})

async function start(servers: TestServers): Promise<{ registry: Registry; following: Following }> {
  const registry = await servers.open([APIServices], { own: [DEFINITIONS] })
  const onError = (error: unknown): void => assert.fail(error as Error)
  const following = startCustomResources({ registry, converterOf: () => undefined, onError })
  await following.ready
  return { registry, following }
}

const read = (registry: Registry): Promise<CustomResourceDefinition | undefined> =>
  registry.get(CustomResourceDefinitions, '', 'things.ex.io')

const define = (registry: Registry, body = definition()): Promise<unknown> =>
  registry.writer.create(CustomResourceDefinitions, body as never)

describe('API servers that share a store', () => {
  it('serve custom resources that another server defined', async () => {
    await using servers = createServers()
    const all = [await start(servers), await start(servers)]
    await define((all[0] as (typeof all)[0]).registry)
    await servers.clock.advance(0)
    for (const { registry } of all) {
      const there = await read(registry)
      assert.ok(there !== undefined && isTrue(there, 'Established'))
      assert.equal(registry.find(THINGS)?.resource.kind.kind, 'Thing')
      assert.ok(await registry.get(APIServices, '', 'v1.ex.io'))
    }
    // Nothing is written again.
    assert.equal((await read((all[1] as (typeof all)[0]).registry))?.status.conditions?.length, 2)
    for (const { following } of all) following.close()
  })

  it('serve existing custom resources after their start', async () => {
    await using servers = createServers()
    const first = await start(servers)
    await define(first.registry)
    await servers.clock.advance(0)
    const second = await start(servers)
    assert.equal(second.registry.find(THINGS)?.resource.kind.plural, 'things')
    await servers.clock.advance(0)
    first.following.close()
    second.following.close()
  })
})

describe('a deleted CustomResourceDefinition', () => {
  it('exists until its objects are deleted, and is then no longer served', async () => {
    await using servers = createServers()
    const { registry, following } = await start(servers)
    await define(registry, definition([CLEANUP_FINALIZER]))
    await servers.clock.advance(0)
    const { kind } = registry.find(THINGS)?.resource ?? {}
    assert.ok(kind)
    await registry.writer.create(kind, { metadata: { name: 'a', namespace: 'default' } })
    await registry.writer.delete(CustomResourceDefinitions, { name: 'things.ex.io' })
    await servers.clock.advance(0)
    assert.equal(await read(registry), undefined)
    assert.equal(registry.find(THINGS), undefined)
    assert.equal(await registry.get(APIServices, '', 'v1.ex.io'), undefined)
    following.close()
  })

  it('keeps the finalizers of other controllers', async () => {
    await using servers = createServers()
    const { registry, following } = await start(servers)
    await define(registry, definition([CLEANUP_FINALIZER, 'other.ex.io/x']))
    await servers.clock.advance(0)
    await registry.writer.delete(CustomResourceDefinitions, { name: 'things.ex.io' })
    await servers.clock.advance(0)
    assert.deepEqual((await read(registry))?.metadata.finalizers, ['other.ex.io/x'])
    following.close()
  })
})
