import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type APIService, APIServices } from '#apis/apiregistration/v1.ts'
import { Deployments } from '#apis/apps/v1.ts'
import { Leases } from '#apis/coordination/v1.ts'
import { ConfigMaps } from '#apis/core/v1.ts'

import type { Registry } from '../registry/registry.ts'
import { createServers } from '../registry/servers.fixture.ts'
import { ensureApiServices, localApiServices } from './apiservices.ts'

const names = async (registry: Registry): Promise<(string | undefined)[]> =>
  (await registry.list(APIServices, '')).map(({ metadata }) => metadata.name)

async function edit(registry: Registry, name: string, change: (next: APIService) => void): Promise<void> {
  await registry.writer.update(APIServices, { name }, (next) => {
    change(next)
    return next
  })
}

describe('APIServices that the server creates', () => {
  it('exist for each served group version', async () => {
    await using servers = createServers()
    const registry = await servers.open([APIServices, ConfigMaps, Deployments])
    await ensureApiServices(registry)
    assert.deepEqual(await names(registry), ['v1.', 'v1.apps'])
    const core = await registry.get(APIServices, '', 'v1.')
    assert.deepEqual(core?.spec, { version: 'v1', groupPriorityMinimum: 18_000, versionPriority: 1 })
    assert.equal(core?.metadata.labels?.['kube-aggregator.kubernetes.io/automanaged'], 'onstart')
  })

  it("have upstream's priorities: stable versions first, groups in upstream's order", () => {
    const all = localApiServices(() => true)
    const of = (name: string): number => all.find(({ metadata }) => metadata.name === name)?.spec?.versionPriority ?? 0
    assert.ok(of('v2.autoscaling') > of('v1.autoscaling'))
    assert.ok(of('v1.networking.k8s.io') > of('v1beta1.networking.k8s.io'))
    assert.equal(new Set(all.map(({ metadata }) => metadata.name)).size, all.length)
  })

  it('are removed with their group version, but those of users stay', async () => {
    await using servers = createServers()
    const before = await servers.open([APIServices, ConfigMaps, Leases])
    await ensureApiServices(before)
    const own = { version: 'v1', group: 'x.io', groupPriorityMinimum: 1, versionPriority: 1 }
    await before.writer.ensure(APIServices, { metadata: { name: 'v1.x.io' }, spec: own, status: {} })
    const after = await servers.open([APIServices, ConfigMaps])
    await ensureApiServices(after)
    assert.deepEqual(await names(after), ['v1.', 'v1.x.io'])
  })

  it('are updated unless a user has removed their automanage label', async () => {
    await using servers = createServers()
    const registry = await servers.open([APIServices, ConfigMaps, Deployments])
    await ensureApiServices(registry)
    const reset = async (name: string): Promise<number | undefined> => {
      await ensureApiServices(registry)
      return (await registry.get(APIServices, '', name))?.spec?.versionPriority
    }
    await edit(registry, 'v1.', (next) => (next.spec.versionPriority = 7))
    assert.equal(await reset('v1.'), 1)
    await edit(registry, 'v1.apps', (next) => {
      next.spec.versionPriority = 7
      delete next.metadata.labels
    })
    assert.equal(await reset('v1.apps'), 7)
  })

  it('are the same whichever of several servers starts first', async () => {
    await using servers = createServers()
    const kinds = [APIServices, ConfigMaps, Deployments]
    const registries = [await servers.open(kinds), await servers.open(kinds)]
    await Promise.all(registries.map((registry) => ensureApiServices(registry)))
    for (const registry of registries) assert.deepEqual(await names(registry), ['v1.', 'v1.apps'])
  })

  it('are not created if the APIService resource is not served', async () => {
    await using servers = createServers()
    await ensureApiServices(await servers.open([ConfigMaps]))
  })
})
