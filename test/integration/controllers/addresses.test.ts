/** Tests pod CIDRs and ServiceCIDRs on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import fc from 'fast-check'

import { Events, Nodes, Services } from '#apis/core/v1.ts'
import { type ServiceCIDR, ServiceCIDRs } from '#apis/networking/v1.ts'
import { ApiClient, type Transport } from '#client/api-client.ts'
import { serviceCidrController } from '#controllers/network/service-cidr.ts'
import { nodeIpamController } from '#controllers/nodes/node-ipam/controller.ts'
import { controllerSettings, type ControllerSettings } from '#controllers/settings.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { HttpError } from '#lib/http/http-error.ts'
import { createLog, type Logger } from '#lib/log/log.ts'
import { createSeededRandom, type Random } from '#lib/random.ts'
import { isNotFound } from '#meta/status.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient

const MASTER = { name: 'tester', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }

const quiet = (): Logger => createLog({ clock, stream: { write: (_text: string, done: () => void) => done() } }).logger

const start = async (chosen: Partial<ControllerSettings>): Promise<void> => {
  const settings = controllerSettings({ 'allocate-node-cidrs': true, ...chosen })
  controllers = startControllers(plane, clock, [nodeIpamController, serviceCidrController], { settings, log: quiet() })
  client = controllers.client
  await clock.advance(1000)
}

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock })
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

const add = async (name: string, podCIDRs?: string[]): Promise<string[]> => {
  const spec = podCIDRs === undefined ? {} : { podCIDR: podCIDRs[0] ?? '', podCIDRs }
  await client.create(Nodes, { metadata: { name }, spec })
  await clock.advance(1000)
  const node = await client.get(Nodes, { name })
  assert.equal(node.spec.podCIDR, node.spec.podCIDRs?.[0])
  return node.spec.podCIDRs ?? []
}

const told = async (): Promise<string[]> => {
  const { items } = await client.list(Events)
  return items.map(
    ({ type, reason, message, reportingComponent }) => `${type} ${reason} ${reportingComponent} ${message}`,
  )
}

describe('node IPAM controller', () => {
  it('allocates pod CIDRs round-robin, and those of deleted nodes last', async () => {
    await start({ 'cluster-cidr': '10.244.0.0/22' })
    assert.deepEqual(await add('n1'), ['10.244.0.0/24'])
    assert.deepEqual(await add('n2'), ['10.244.1.0/24'])
    await client.delete(Nodes, { name: 'n1' })
    await clock.advance(1000)
    assert.deepEqual(await add('n3'), ['10.244.2.0/24'])
    assert.deepEqual(await add('n4'), ['10.244.3.0/24'])
    assert.deepEqual(await add('n5'), ['10.244.0.0/24'])
  })

  it('allocates pod CIDRs of both IP families', async () => {
    await start({ 'cluster-cidr': '10.244.0.0/16,fd00:1::/56' })
    assert.deepEqual(await add('n1'), ['10.244.0.0/24', 'fd00:1::/64'])
  })

  it('skips the pod CIDRs that nodes already have', async () => {
    await start({ 'cluster-cidr': '10.244.0.0/16' })
    assert.deepEqual(await add('own', ['10.244.0.0/24']), ['10.244.0.0/24'])
    assert.deepEqual(await add('n1'), ['10.244.1.0/24'])
  })

  it('records an event if no pod CIDR is free, and allocates one when another node is deleted', async () => {
    await start({ 'cluster-cidr': '10.244.0.0/24' })
    await add('n1')
    assert.deepEqual(await add('n2'), [])
    assert.deepEqual(await told(), ['Normal CIDRNotAvailable cidrAllocator Node n2 status is now: CIDRNotAvailable'])
    await client.delete(Nodes, { name: 'n1' })
    await clock.advance(10_000)
    assert.deepEqual((await client.get(Nodes, { name: 'n2' })).spec.podCIDRs, ['10.244.0.0/24'])
  })

  it('reads allocated pod CIDRs after a restart', async () => {
    await start({ 'cluster-cidr': '10.244.0.0/16' })
    await add('n1')
    await controllers.stop()
    await start({ 'cluster-cidr': '10.244.0.0/16' })
    assert.deepEqual(await add('n2'), ['10.244.1.0/24'])
  })
})

describe('node IPAM controller with failing or unconfirmed writes', () => {
  type Step = readonly [node: number, isThere: boolean, waitMs: number]
  const steps = fc.array<Step>(
    fc.tuple(fc.integer({ min: 0, max: 3 }), fc.boolean(), fc.constantFrom(0, 3, 50, 1000)),
    { minLength: 4, maxLength: 24 },
  )
  /** Every so often a write is lost, before it is made or after. */
  const faulty = (random: Random): ((transport: Transport) => Transport) => {
    const lost = (): never => {
      throw new HttpError('broken', 'The connection was lost')
    }
    return (transport) => ({
      async request(request) {
        const fate = request.method === 'PATCH' ? random.float() : 1
        if (fate < 0.3) lost()
        const response = await transport.request(request)
        return fate < 0.6 ? lost() : response
      },
    })
  }

  it('never gives one pod CIDR to two nodes, and finally gives one to every node', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.nat(), async (plan, seed) => {
        const settings = controllerSettings({ 'allocate-node-cidrs': true, 'cluster-cidr': '10.244.0.0/22' })
        const through = faulty(createSeededRandom(seed))
        controllers = startControllers(plane, clock, [nodeIpamController], { settings, log: quiet(), through })
        client = new ApiClient({ transport: plane.running.server.clientAs(MASTER), clock, userAgent: 'tester' })
        const check = async (): Promise<number> => {
          const { items } = await client.list(Nodes)
          const given = items.flatMap(({ spec }) => spec.podCIDRs ?? [])
          assert.equal(new Set(given).size, given.length, given.join(' '))
          return items.length - given.length
        }
        for (const [node, isThere, waitMs] of plan) {
          const name = `n${node}`
          await (isThere ? client.create(Nodes, { metadata: { name } }) : client.delete(Nodes, { name })).catch(
            () => undefined,
          )
          await clock.advance(waitMs)
          await check()
        }
        await clock.advance(600_000)
        assert.equal(await check(), 0)
        await client.deleteCollection(Nodes, {})
        await controllers.stop()
      }),
      { numRuns: 12 },
    )
  })
})

describe('ServiceCIDR controller', () => {
  const find = (name: string): Promise<ServiceCIDR> => client.get(ServiceCIDRs, { name })
  const ready = async (name: string): Promise<string> => {
    const condition = (await find(name)).status.conditions?.find(({ type }) => type === 'Ready')
    return `${condition?.status} ${condition?.reason} ${condition?.message}`
  }
  const make = async (name: string, ...cidrs: string[]): Promise<void> => {
    await client.create(ServiceCIDRs, { metadata: { name }, spec: { cidrs } })
    await clock.advance(1000)
  }
  const serve = async (name: string, clusterIP: string): Promise<void> => {
    const spec = { clusterIP, ports: [{ port: 80, targetPort: 80 }] }
    await client.create(Services, { metadata: { namespace: 'default', name }, spec })
    await clock.advance(1000)
  }
  const remove = async (name: string): Promise<void> => {
    await client.delete(ServiceCIDRs, { name })
    await clock.advance(1000)
  }

  beforeEach(() => start({ 'allocate-node-cidrs': false }))

  it('sets the Ready condition and a finalizer', async () => {
    await make('more', '10.9.0.0/24')
    assert.equal(await ready('more'), 'True  Kubernetes Service CIDR is ready')
    const { metadata } = await find('more')
    assert.deepEqual(metadata.finalizers, ['networking.k8s.io/service-cidr-finalizer'])
    assert.ok(
      metadata.managedFields?.some(
        ({ manager, operation }) => manager === 'service-cidr-controller' && operation === 'Apply',
      ),
    )
    assert.equal(await ready('kubernetes'), 'True  Kubernetes Service CIDR is ready')
  })

  it('removes the finalizer ten seconds after a deletion', async () => {
    await make('more', '10.9.0.0/24')
    await remove('more')
    await clock.advance(8000)
    await find('more')
    await clock.advance(2000)
    await assert.rejects(find('more'), isNotFound)
  })

  it('keeps the finalizer while an IPAddress would have no other range', async () => {
    await make('more', '10.9.0.0/24')
    await serve('web', '10.9.0.7')
    await remove('more')
    await clock.advance(20_000)
    assert.equal(
      await ready('more'),
      'False Terminating There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR',
    )
    await client.delete(Services, { namespace: 'default', name: 'web' })
    await clock.advance(1000)
    await assert.rejects(find('more'), isNotFound)
  })

  it('removes the finalizer if another range contains all addresses', async () => {
    await make('more', '10.9.0.0/24')
    await serve('web', '10.9.0.7')
    await remove('more')
    await make('larger', '10.9.0.0/16')
    await clock.advance(20_000)
    await assert.rejects(find('more'), isNotFound)
  })
})
