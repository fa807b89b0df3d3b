import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Endpoints, type Service, Services } from '#apis/core/v1.ts'
import { EndpointSlices } from '#apis/discovery/v1.ts'
import { type ServiceCIDR, ServiceCIDRs } from '#apis/networking/v1.ts'
import { invalidError } from '#meta/status-errors.ts'

import type { Registry } from '../registry/registry.ts'
import { defineResource } from '../registry/resource.ts'
import { createServers, type TestServerOptions, type TestServers } from '../registry/servers.fixture.ts'
import { createKubernetesService, type KubernetesService, type KubernetesServiceOptions } from './kubernetes-service.ts'

const KINDS = [Services, Endpoints, EndpointSlices, ServiceCIDRs]

interface Started {
  readonly registry: Registry
  readonly service: KubernetesService
  readonly errors: string[]
}

function serviceOf(
  registry: Registry,
  ip: string | undefined,
  more: Partial<KubernetesServiceOptions> = {},
): Omit<Started, 'registry'> {
  const errors: string[] = []
  const service: KubernetesService = createKubernetesService(registry, {
    serviceCidr: '10.0.0.0/24',
    advertiseAddress: ip,
    onError: (error) => errors.push((error as Error).message),
    ...more,
  })
  return { service, errors }
}

async function addresses(registry: Registry): Promise<{ ips: string[]; sliceIps: string[]; ports: number[] }> {
  const endpoints = await registry.get(Endpoints, 'default', 'kubernetes')
  const slice = await registry.get(EndpointSlices, 'default', 'kubernetes')
  return {
    ips: (endpoints?.subsets ?? []).flatMap((subset) => (subset.addresses ?? []).map(({ ip }) => ip)),
    sliceIps: (slice?.endpoints ?? []).flatMap((endpoint) => endpoint.addresses ?? []),
    ports: (endpoints?.subsets ?? []).flatMap((subset) => (subset.ports ?? []).map(({ port }) => port)),
  }
}

/** A server that has published its address. */
async function started(servers: TestServers, ip: string, options: TestServerOptions = {}): Promise<Started> {
  const registry = await servers.open(KINDS, options)
  const { service, errors } = serviceOf(registry, ip)
  await service.prepare(6443)
  await service.publish(6443)
  return { registry, service, errors }
}

describe('Service "kubernetes"', () => {
  it('has the first address of the service range and the endpoint of the server', async () => {
    await using servers = createServers()
    const { registry, service, errors } = await started(servers, '192.0.2.1')
    const object = await registry.get(Services, 'default', 'kubernetes')
    assert.deepEqual(
      [object?.spec.clusterIP, object?.spec.ports?.[0]?.targetPort, object?.metadata.labels],
      ['10.0.0.1', 6443, { component: 'apiserver', provider: 'kubernetes' }],
    )
    assert.deepEqual(await addresses(registry), { ips: ['192.0.2.1'], sliceIps: ['192.0.2.1'], ports: [6443] })
    const endpoints = await registry.get(Endpoints, 'default', 'kubernetes')
    assert.deepEqual(endpoints?.metadata.labels, { 'endpointslice.kubernetes.io/skip-mirror': 'true' })
    const slice = await registry.get(EndpointSlices, 'default', 'kubernetes')
    assert.deepEqual(slice?.metadata.labels, { 'kubernetes.io/service-name': 'kubernetes' })
    const range = await registry.get(ServiceCIDRs, '', 'kubernetes')
    assert.deepEqual([range?.spec?.cidrs, range?.status?.conditions?.[0]?.status], [['10.0.0.0/24'], 'True'])
    await service.withdraw()
    assert.deepEqual(await addresses(registry), { ips: [], sliceIps: [], ports: [] })
    assert.deepEqual(errors, [])
  })

  it('has no endpoints if the address is unreachable or reconciliation is disabled', async () => {
    await using servers = createServers()
    const registry = await servers.open(KINDS)
    for (const { service } of [
      serviceOf(registry, undefined),
      serviceOf(registry, '192.0.2.1', { reconciler: { type: 'none', count: 1 } }),
    ]) {
      await service.publish(6443)
      await service.withdraw()
    }
    assert.notEqual(await registry.get(Services, 'default', 'kubernetes'), undefined)
    assert.equal(await registry.get(Endpoints, 'default', 'kubernetes'), undefined)
  })

  it('is created again after a user deletes it', async () => {
    await using servers = createServers()
    const { registry, service, errors } = await started(servers, '192.0.2.1')
    for (const kind of [Services, Endpoints, EndpointSlices] as const) {
      await registry.writer.delete(kind, { namespace: 'default', name: 'kubernetes' })
    }
    await servers.clock.advance(10_000)
    assert.deepEqual((await addresses(registry)).sliceIps, ['192.0.2.1'])
    assert.notEqual(await registry.get(Services, 'default', 'kubernetes'), undefined)
    await service.withdraw()
    assert.deepEqual(errors, [])
  })

  it('is created once by two servers that start together', async () => {
    await using servers = createServers()
    // As the allocator behaves: the second server finds the address taken before the Service exists.
    let taken = false
    const contested = defineResource<Service>({
      kind: Services,
      async allocate(next) {
        if (taken) throw invalidError({ group: '', kind: 'Service' }, next.metadata.name ?? '', [])
        taken = true
        await new Promise((resolve) => servers.clock.after(120, () => resolve(undefined)))
        return async () => {}
      },
    })
    const others = KINDS.filter((kind) => kind !== Services)
    const open = (): Promise<Registry> => servers.open(others, { own: [contested] })
    const registries = [await open(), await open()]
    const both = registries.map((registry, at) => serviceOf(registry, `192.0.2.${at + 1}`))
    const starting = Promise.all(both.map(({ service }) => service.publish(6443)))
    await servers.clock.advance(1000)
    await starting
    for (const registry of registries) {
      assert.deepEqual((await addresses(registry)).ips, ['192.0.2.1', '192.0.2.2'])
    }
    for (const { service, errors } of both) {
      await service.withdraw()
      assert.deepEqual(errors, [])
    }
  })

  it('is created later if the first attempt fails', async () => {
    await using servers = createServers()
    let isBroken = true
    const broken = defineResource<Service>({
      kind: Services,
      async allocate(next) {
        if (isBroken) throw invalidError({ group: '', kind: 'Service' }, next.metadata.name ?? '', [])
        return async () => {}
      },
    })
    const others = KINDS.filter((kind) => kind !== Services)
    const registry = await servers.open(others, { own: [broken] })
    const { service, errors } = serviceOf(registry, '192.0.2.1')
    const publishing = service.publish(6443)
    await servers.clock.advance(2000)
    await publishing
    assert.equal(errors.length, 1)
    isBroken = false
    await servers.clock.advance(10_000)
    assert.deepEqual((await addresses(registry)).ips, ['192.0.2.1'])
    await service.withdraw()
  })
})

describe('endpoints of servers that share a store', () => {
  it('contain the address of each server until it stops', async () => {
    await using servers = createServers()
    const [a, b] = [await started(servers, '192.0.2.1'), await started(servers, '192.0.2.2')]
    assert.deepEqual((await addresses(a.registry)).ips, ['192.0.2.1', '192.0.2.2'])
    assert.deepEqual((await addresses(b.registry)).sliceIps, ['192.0.2.1', '192.0.2.2'])
    await a.service.withdraw()
    assert.deepEqual(await addresses(b.registry), { ips: ['192.0.2.2'], sliceIps: ['192.0.2.2'], ports: [6443] })
    await b.service.withdraw()
    assert.deepEqual([...a.errors, ...b.errors], [])
  })

  it('lose the address of a killed server when its lease expires', async () => {
    await using servers = createServers()
    const a = await started(servers, '192.0.2.1')
    await started(servers, '192.0.2.2', { isDead: true })
    await servers.clock.advance(10_000)
    assert.deepEqual((await addresses(a.registry)).ips, ['192.0.2.1', '192.0.2.2'])
    await servers.clock.advance(10_000)
    assert.deepEqual(await addresses(a.registry), { ips: ['192.0.2.1'], sliceIps: ['192.0.2.1'], ports: [6443] })
    await a.service.withdraw()
    assert.deepEqual(a.errors, [])
  })

  it('lose the address of a crashed server when it restarts, before it listens', async () => {
    await using servers = createServers()
    const [a, b] = [await started(servers, '192.0.2.1'), await started(servers, '192.0.2.2')]
    const again = serviceOf(await servers.open(KINDS), '192.0.2.2')
    await again.service.prepare(6443)
    assert.deepEqual((await addresses(a.registry)).ips, ['192.0.2.1'])
    await again.service.publish(6443)
    assert.deepEqual((await addresses(a.registry)).ips, ['192.0.2.1', '192.0.2.2'])
    await Promise.all([a, b, again].map(({ service }) => service.withdraw()))
  })

  it('contain a server again after the store has lost its lease', async () => {
    await using servers = createServers()
    const a = await started(servers, '192.0.2.1')
    await servers.backend.commit([{ key: '/registry/masterleases/192.0.2.1', value: null }])
    await servers.clock.advance(10_000)
    const { items } = await servers.backend.range({ start: '/registry/masterleases/', end: '/registry/masterleases0' })
    assert.deepEqual(
      items.map(({ key }) => key),
      ['/registry/masterleases/192.0.2.1'],
    )
    assert.deepEqual((await addresses(a.registry)).ips, ['192.0.2.1'])
    await a.service.withdraw()
    assert.deepEqual(a.errors, [])
  })

  it('keep the address of the last server when it restarts', async () => {
    await using servers = createServers()
    const a = await started(servers, '192.0.2.1')
    const again = serviceOf(await servers.open(KINDS), '192.0.2.1')
    await again.service.prepare()
    assert.deepEqual((await addresses(a.registry)).ips, ['192.0.2.1'])
    // A single server may have another port than before.
    await again.service.publish(7443)
    assert.deepEqual((await addresses(a.registry)).ports, [7443])
    await again.service.withdraw()
    await a.service.withdraw()
  })

  it('do not delay shutdown if the store is unreachable', async () => {
    await using servers = createServers()
    const { service, errors } = await started(servers, '192.0.2.1')
    servers.backend.revokeLease = () => new Promise<void>(() => undefined)
    const leaving = service.withdraw()
    await servers.clock.advance(3_000)
    await leaving
    assert.deepEqual(errors, [])
  })

  it('are the configured number of addresses with reconciler type master-count', async () => {
    await using servers = createServers()
    const registry = await servers.open(KINDS)
    const of = (ip: string): KubernetesService =>
      serviceOf(registry, ip, { reconciler: { type: 'master-count', count: 2 } }).service
    const all = [of('192.0.2.1'), of('192.0.2.2'), of('192.0.2.3')]
    for (const service of all) {
      await service.prepare()
      await service.publish(6443)
    }
    assert.deepEqual((await addresses(registry)).ips, ['192.0.2.2', '192.0.2.3'])
    await all[1]?.withdraw()
    assert.deepEqual((await addresses(registry)).ips, ['192.0.2.3'])
    for (const service of all) await service.withdraw()
    assert.deepEqual((await addresses(registry)).ips, [])
  })
})

describe('ServiceCIDR "kubernetes"', () => {
  it('gets the range of a second IP family, and all other fields stay', async () => {
    await using servers = createServers()
    const registry = await servers.open(KINDS)
    await serviceOf(registry, undefined).service.prepare()
    const dual = serviceOf(registry, undefined, { serviceCidr: '10.0.0.0/24,fd00::/112' })
    await dual.service.prepare()
    const of = async (): Promise<unknown> => (await registry.get(ServiceCIDRs, '', 'kubernetes'))?.spec?.cidrs
    assert.deepEqual(await of(), ['10.0.0.0/24', 'fd00::/112'])
    const other = serviceOf(registry, undefined, { serviceCidr: '10.9.0.0/24' })
    await other.service.prepare()
    await other.service.prepare()
    assert.deepEqual(await of(), ['10.0.0.0/24', 'fd00::/112'])
    assert.deepEqual(other.errors, [
      'The ServiceCIDR "kubernetes" is not "10.9.0.0/24"; Services go on with what it says',
    ])
  })

  it('is marked ready if it has no condition', async () => {
    await using servers = createServers()
    const registry = await servers.open(KINDS)
    const { service } = serviceOf(registry, undefined)
    await service.prepare()
    const conditions = async (): Promise<unknown> =>
      (await registry.get(ServiceCIDRs, '', 'kubernetes'))?.status?.conditions?.map(({ status }) => status)
    const set = async (...statuses: ('False' | 'Unknown')[]): Promise<void> => {
      await registry.writer.updateStatus(ServiceCIDRs, { name: 'kubernetes' }, (live) => {
        const readiness = statuses.map((status) => ({
          type: 'Ready',
          status,
          lastTransitionTime: '2026-01-01T00:00:00Z',
        }))
        return { ...live, status: { conditions: readiness } } as ServiceCIDR
      })
    }
    assert.deepEqual(await conditions(), ['True'])
    await set()
    await service.prepare()
    assert.deepEqual(await conditions(), ['True'])
    await set('False')
    await service.prepare()
    assert.deepEqual(await conditions(), ['False'])
  })
})
