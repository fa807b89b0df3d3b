/** Tests fault injection between clients and the API server. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Deployments } from '#apis/apps/v1.ts'
import { type ConfigMap, ConfigMaps, Pods } from '#apis/core/v1.ts'
import type { Draft } from '#client/api-client.ts'
import { isConflict, isNotFound, isResourceExpired, statusOf } from '#meta/status.ts'
import { startCluster } from '#testing/cluster.ts'

const namespace = 'default'
const map = (name: string): Draft<ConfigMap> => ({ metadata: { namespace, name }, data: {} })
const idle = { clock: 'virtual', nodes: 0, controllers: [], scheduler: false } as const

describe('API fault of the test library', () => {
  it('fails the given number of matching requests with the given error', async () => {
    await using cluster = await startCluster(idle)
    const { client } = cluster
    const jane = cluster.clientAs({ name: 'jane', groups: ['system:masters'] })
    cluster.inject({ type: 'api-error', verb: 'create', resource: 'configmaps', user: 'jane', times: 2, code: 503 })
    await client.create(ConfigMaps, map('of-admin'))
    await jane.list(ConfigMaps, { namespace })
    for (const _ of [1, 2]) {
      await assert.rejects(jane.create(ConfigMaps, map('a')), (error) => {
        const { code, reason, message } = statusOf(error) ?? {}
        assert.deepEqual([code, reason, message], [503, 'ServiceUnavailable', 'a fault was injected'])
        return true
      })
    }
    await jane.create(ConfigMaps, map('a'))
  })

  it('ends after a time or on demand, and matches groups, subresources and names', async () => {
    await using cluster = await startCluster(idle)
    const { client } = cluster
    cluster.inject({ type: 'api-error', resource: 'configmaps', lastingMs: 60_000 })
    await assert.rejects(client.get(ConfigMaps, { namespace, name: 'a' }), (error) => statusOf(error)?.code === 500)
    await cluster.clock.advance('61s')
    await assert.rejects(client.get(ConfigMaps, { namespace, name: 'a' }), (error) => isNotFound(error))
    const end = cluster.inject({ type: 'api-error', resource: 'deployments.apps/scale', name: 'web', code: 403 })
    await assert.rejects(client.get(Deployments, { namespace, name: 'web' }), (error) => isNotFound(error))
    const scale = { namespace, name: 'web', subresource: 'scale' }
    await assert.rejects(client.get(Deployments, scale), (error) => statusOf(error)?.code === 403)
    end()
    await assert.rejects(client.get(Deployments, scale), (error) => isNotFound(error))
  })

  it('causes a conflict, and a retry succeeds', async () => {
    await using cluster = await startCluster(idle)
    const { client } = cluster
    const made = await client.create(ConfigMaps, map('a'))
    cluster.inject({ type: 'api-conflict', resource: 'configmaps', times: 1 })
    await assert.rejects(client.update(ConfigMaps, { ...made, data: { a: '1' } }), (error) => isConflict(error))
    assert.deepEqual((await client.update(ConfigMaps, { ...made, data: { a: '1' } })).data, { a: '1' })
  })

  it('delays requests by the clock of the cluster', async () => {
    await using cluster = await startCluster(idle)
    const begunMs = cluster.clock.now().getTime()
    cluster.inject({ type: 'api-delay', verb: ['create'], delayMs: 20_000, times: 1 })
    const making = cluster.client.create(ConfigMaps, map('a'))
    await cluster.clock.advance('30s')
    const { metadata } = await making
    assert.equal(new Date(metadata.creationTimestamp ?? '').getTime() - begunMs, 20_000)
  })

  it('drops the response of an executed request', async () => {
    await using cluster = await startCluster(idle)
    const { client } = cluster
    cluster.inject({ type: 'api-lost-answer', verb: 'create', times: 1 })
    await assert.rejects(client.create(ConfigMaps, map('a')), (error) => statusOf(error) === undefined)
    assert.equal((await client.get(ConfigMaps, { namespace, name: 'a' })).metadata.name, 'a')
  })

  it('ends watches, which then reconnect', async () => {
    await using cluster = await startCluster(idle)
    const { client } = cluster
    const seen: string[] = []
    const watch = async (): Promise<void> => {
      for await (const { object } of client.watch(ConfigMaps, { namespace }))
        seen.push((object as ConfigMap).metadata.name ?? '')
    }
    const watching = watch()
    await client.create(ConfigMaps, map('before'))
    await cluster.settle()
    cluster.inject({ type: 'watch-cut', resource: 'configmaps', times: 1 })
    await watching.catch(() => undefined)
    assert.ok(seen.includes('before'))
    cluster.inject({ type: 'api-error', verb: 'watch', code: 410, times: 1 })
    await assert.rejects(
      async () => {
        for await (const _ of client.watch(ConfigMaps, { namespace })) break
      },
      (error) => isResourceExpired(error),
    )
  })

  it('makes simulated nodes retry conflicting status writes', async () => {
    await using cluster = await startCluster({ clock: 'virtual', nodes: 1 })
    cluster.inject({ type: 'api-conflict', resource: 'pods/status', times: 3 })
    const spec = { containers: [{ name: 'main', image: 'web:1', resources: {} }] }
    await cluster.client.create(Pods, { metadata: { namespace, name: 'web' }, spec })
    await cluster.settle({ quiet: '30s' })
    assert.equal((await cluster.client.get(Pods, { namespace, name: 'web' })).status.phase, 'Running')
  })

  it('does not prevent a Deployment from becoming stable', async () => {
    await using cluster = await startCluster({ clock: 'virtual', nodes: 2 })
    const manager = 'system:serviceaccount:kube-system:'
    cluster.inject({ type: 'api-conflict', times: 20 })
    cluster.inject({ type: 'api-error', user: `${manager}replicaset-controller`, code: 500, times: 3 })
    cluster.inject({ type: 'api-lost-answer', user: `${manager}deployment-controller`, verb: 'create', times: 1 })
    cluster.inject({ type: 'api-delay', resource: 'pods/binding', delayMs: 5000, times: 2 })
    cluster.inject({ type: 'watch-cut', resource: 'pods' })()
    const labels = { app: 'web' }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1', resources: {} }] } }
    const spec = { replicas: 4, selector: { matchLabels: labels }, template, strategy: {} }
    await cluster.client.create(Deployments, { metadata: { namespace, name: 'web' }, spec })
    await cluster.settle({ quiet: '30s' })
    const { items } = await cluster.client.list(Pods, { namespace })
    assert.deepEqual(
      items.map(({ status }) => status.phase),
      Array.from({ length: 4 }, () => 'Running'),
    )
  })
})
