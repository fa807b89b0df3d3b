import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { ConfigMaps } from '#apis/core/v1.ts'

import type { Registry } from '../registry/registry.ts'
import { createServers } from '../registry/servers.fixture.ts'
import { startDefinitionCleanup } from './definition-cleanup.ts'

const CLEANUP = 'customresourcecleanup.apiextensions.k8s.io'

const add = (registry: Registry, ...finalizers: string[]): Promise<boolean> =>
  registry.writer.ensure(CustomResourceDefinitions, {
    metadata: { name: 'x', finalizers },
    spec: {},
    status: {},
  } as never)

const remove = async (registry: Registry): Promise<void> => {
  const kind = CustomResourceDefinitions
  await registry.writer.delete(kind, { name: 'x' })
}

const finalizers = async (registry: Registry): Promise<readonly string[] | undefined> =>
  (await registry.get(CustomResourceDefinitions, '', 'x'))?.metadata.finalizers

const fail = (error: unknown): void => assert.fail(error as Error)

describe('the cleanup of definitions', () => {
  it('lets a definition go that is deleted, and no other', async () => {
    await using servers = createServers()
    const registry = await servers.open([CustomResourceDefinitions])
    const following = startDefinitionCleanup(registry, fail)
    await add(registry, CLEANUP)
    await servers.clock.advance(0)
    assert.deepEqual(await finalizers(registry), [CLEANUP])
    await remove(registry)
    await servers.clock.advance(0)
    assert.equal(await finalizers(registry), undefined)
    following?.close()
  })

  it('leaves the finalizers of others', async () => {
    await using servers = createServers()
    const registry = await servers.open([CustomResourceDefinitions])
    await add(registry, CLEANUP, 'other.example.com/x')
    await remove(registry)
    const following = startDefinitionCleanup(registry, fail)
    await servers.clock.advance(0)
    assert.deepEqual(await finalizers(registry), ['other.example.com/x'])
    following?.close()
  })

  it('does not mind that another server was faster', async () => {
    await using servers = createServers()
    const registries = [
      await servers.open([CustomResourceDefinitions]),
      await servers.open([CustomResourceDefinitions]),
    ]
    const followings = registries.map((registry) => startDefinitionCleanup(registry, fail))
    await add(registries[0]!, CLEANUP)
    await remove(registries[0]!)
    await servers.clock.advance(0)
    assert.equal(await finalizers(registries[1]!), undefined)
    for (const following of followings) following?.close()
  })

  it('has nothing to do when there are no definitions', async () => {
    await using servers = createServers()
    assert.equal(startDefinitionCleanup(await servers.open([ConfigMaps]), fail), undefined)
  })
})
