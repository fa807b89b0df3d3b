/**
 * Tests Services of type LoadBalancer on simulated nodes: they get addresses, so that charts that wait for them become
 * ready.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Events, type Service, Services } from '#apis/core/v1.ts'
import type { Draft } from '#client/api-client.ts'
import { startCluster, type TestCluster } from '#testing/cluster.ts'

const namespace = 'default'

function service(name: string, spec: object = {}): Draft<Service> {
  return {
    metadata: { namespace, name },
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }], ...spec },
  } as Draft<Service>
}

describe('load balancer of simulated nodes', () => {
  let cluster: TestCluster
  before(async () => {
    cluster = await startCluster({ clock: 'virtual' })
  })
  after(() => cluster.stop())

  const addressesOf = async ({ client }: TestCluster, name: string): Promise<string[]> => {
    const { status } = await client.get(Services, { namespace, name })
    return (status?.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip)
  }

  it('gives each Service a separate address', async () => {
    await cluster.client.create(Services, service('web'))
    await cluster.client.create(Services, service('shop'))
    await cluster.clock.advance('10s')
    const all = [await addressesOf(cluster, 'web'), await addressesOf(cluster, 'shop')]
    assert.deepEqual(all.flat().sort(), ['198.18.0.1', '198.18.0.2'])
    const { items } = await cluster.client.list(Events, { namespace })
    const reasons = items.filter(({ involvedObject }) => involvedObject.name === 'web').map(({ reason = '' }) => reason)
    assert.deepEqual(new Set(reasons), new Set(['EnsuredLoadBalancer', 'EnsuringLoadBalancer']))
  })

  it('gives a Service the address in spec.loadBalancerIP', async () => {
    await cluster.client.create(Services, service('fixed', { loadBalancerIP: '192.0.2.7' }))
    await cluster.clock.advance('10s')
    assert.deepEqual(await addressesOf(cluster, 'fixed'), ['192.0.2.7'])
  })

  it('ignores Services with a loadBalancerClass', async () => {
    await cluster.client.create(Services, service('other', { loadBalancerClass: 'example.com/x' }))
    await cluster.clock.advance('10s')
    assert.deepEqual(await addressesOf(cluster, 'other'), [])
  })

  it('releases the address of a deleted Service and removes its finalizer', async () => {
    await cluster.client.delete(Services, { namespace, name: 'fixed' })
    await cluster.clock.advance('10s')
    assert.ok(
      !(await cluster.client.list(Services, { namespace })).items.some(({ metadata }) => metadata.name === 'fixed'),
    )
    await cluster.client.create(Services, service('again', { loadBalancerIP: '192.0.2.7' }))
    await cluster.clock.advance('10s')
    assert.deepEqual(await addressesOf(cluster, 'again'), ['192.0.2.7'])
  })

  it('keeps addresses in a fork of the cluster', async () => {
    const addresses = await addressesOf(cluster, 'web')
    await using fork = await cluster.fork()
    await fork.clock.advance('10s')
    assert.deepEqual(await addressesOf(fork, 'web'), addresses)
  })
})
