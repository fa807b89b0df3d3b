/** Tests Endpoints and EndpointSlices on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { Endpoints, Events, Namespaces, Nodes, type Pod, Pods, type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { endpointsController, subsetsOf } from '#controllers/network/endpoints.ts'
import { endpointSliceMirroringController } from '#controllers/network/endpointslice-mirroring.ts'
import { endpointSliceController } from '#controllers/network/endpointslice/controller.ts'
import { controllerSettings } from '#controllers/settings.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
const namespace = 'web'

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  const settings = controllerSettings({ 'max-endpoints-per-slice': 3 })
  const all = [endpointsController, endpointSliceController, endpointSliceMirroringController]
  controllers = startControllers(plane, clock, all, { settings })
  client = controllers.client
  await client.create(Namespaces, { metadata: { name: namespace } })
  await client.create(Nodes, { metadata: { name: 'n1', labels: { 'topology.kubernetes.io/zone': 'z1' } } })
  await clock.advance(1000)
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

const serve = async (spec: Partial<Service['spec']> = {}): Promise<Service> => {
  const ports = [{ name: 'http', port: 80, targetPort: 8080 }]
  const service = await client.create(Services, {
    metadata: { namespace, name: 's', labels: { team: 'a' } },
    spec: { selector: { app: 'web' }, ports, ...spec },
  })
  await clock.advance(1000)
  return service
}

const run = async (number: number, isReady = true, spec: Partial<Pod['spec']> = {}): Promise<Pod> => {
  const name = `p${number}`
  const containers = [{ name: 'c', image: 'i', resources: {} }]
  await client.create(Pods, {
    metadata: { namespace, name, labels: { app: 'web' } },
    spec: { containers, nodeName: 'n1', ...spec },
  })
  return tell(name, isReady, `10.0.0.${number}`)
}

const tell = (name: string, isReady: boolean, podIP: string): Promise<Pod> => {
  const condition = { type: 'Ready', status: isReady ? 'True' : 'False', lastTransitionTime: timeOf(clock.now()) }
  const status = { phase: 'Running', podIP, podIPs: [{ ip: podIP }], conditions: [condition] }
  return client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'merge', value: { status } })
}

const slices = async (): Promise<EndpointSlice[]> => {
  const { items } = await client.list(EndpointSlices, { namespace })
  return items
}

const sizes = async (): Promise<number[]> =>
  (await slices()).map(({ endpoints }) => endpoints?.length ?? 0).sort((a, b) => a - b)

describe('subsets of Endpoints', () => {
  it("have ports in upstream's order, and addresses sorted by text", () => {
    const ports = [
      { name: 'raw', port: 81, targetPort: 9 },
      { name: 'http', port: 80, targetPort: 8080 },
    ]
    const service = { metadata: { namespace: 'a', name: 'web' }, spec: { ports } } as Service
    const pod = (ip: string): Pod =>
      ({
        metadata: { namespace: 'a', name: ip, uid: ip },
        spec: { containers: [] },
        status: { podIP: ip, podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] },
      }) as unknown as Pod
    const [subset] = subsetsOf(service, [pod('10.0.0.9'), pod('10.0.0.10')])
    assert.deepEqual(
      subset?.ports?.map(({ name }) => name),
      ['http', 'raw'],
    )
    assert.deepEqual(
      subset?.addresses?.map(({ ip }) => ip),
      ['10.0.0.10', '10.0.0.9'],
    )
  })
})

describe('EndpointSlice controller', () => {
  it('writes addresses and conditions of the pods', async () => {
    const service = await serve()
    const pod = await run(1)
    await clock.advance(1000)
    const [slice, ...more] = await slices()
    assert.equal(more.length, 0)
    assert.match(slice?.metadata.name ?? '', /^s-[a-z0-9]{5}$/)
    assert.deepEqual(slice?.metadata.labels, {
      'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
      'kubernetes.io/service-name': 's',
      team: 'a',
    })
    assert.deepEqual(slice?.metadata.annotations, {
      'endpoints.kubernetes.io/last-change-trigger-time': pod.status.conditions?.[0]?.lastTransitionTime,
    })
    assert.deepEqual(slice?.metadata.ownerReferences, [
      {
        apiVersion: 'v1',
        kind: 'Service',
        name: 's',
        uid: service.metadata.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ])
    assert.deepEqual(slice?.ports, [{ name: 'http', protocol: 'TCP', port: 8080 }])
    assert.deepEqual(slice?.endpoints, [
      {
        addresses: ['10.0.0.1'],
        conditions: { ready: true, serving: true, terminating: false },
        targetRef: { kind: 'Pod', namespace, name: 'p1', uid: pod.metadata.uid },
        nodeName: 'n1',
        zone: 'z1',
      },
    ])
  })

  it('creates one empty slice first, and fills it later', async () => {
    await serve()
    const [empty] = await slices()
    assert.deepEqual([empty?.endpoints, empty?.ports], [null, null])
    await run(1)
    await clock.advance(1000)
    const [filled, ...more] = await slices()
    assert.deepEqual([filled?.metadata.name, more], [empty?.metadata.name, []])
    await client.delete(Pods, { namespace, name: 'p1' }, { gracePeriodSeconds: 0 })
    await clock.advance(1000)
    assert.deepEqual(
      (await slices()).map(({ endpoints, ports }) => [endpoints, ports]),
      [[null, null]],
    )
  })

  it('distinguishes ready, serving and terminating pods', async () => {
    await serve()
    await run(1, false)
    await run(2)
    await run(3)
    await client.delete(Pods, { namespace, name: 'p2' })
    await client.patch(
      Pods,
      { namespace, name: 'p3', subresource: 'status' },
      { type: 'merge', value: { status: { phase: 'Succeeded' } } },
    )
    await clock.advance(1000)
    const conditions = (await slices())
      .flatMap(({ endpoints }) => endpoints ?? [])
      .map((one) => [one.addresses[0], one.conditions])
    assert.deepEqual(Object.fromEntries(conditions), {
      '10.0.0.1': { ready: false, serving: false, terminating: false },
      '10.0.0.2': { ready: false, serving: true, terminating: true },
    })
  })

  it('fills slices up to their limit, and does not repack them', async () => {
    await serve()
    for (let number = 1; number <= 7; number++) {
      await run(number)
      // Of several that come together, those that do not fit get slices of their own.
      await clock.advance(1000)
    }
    assert.deepEqual(await sizes(), [1, 3, 3])
    const full = (await slices()).find(({ endpoints }) => endpoints?.length === 3)
    const name = full?.endpoints?.[0]?.targetRef?.name ?? ''
    await client.delete(Pods, { namespace, name }, { gracePeriodSeconds: 0 })
    await clock.advance(1000)
    assert.deepEqual(await sizes(), [1, 2, 3])
    await run(8)
    await clock.advance(1000)
    assert.deepEqual(await sizes(), [1, 3, 3])
  })

  it('creates a slice for each set of resolved port numbers, and sets zone hints for trafficDistribution', async () => {
    const ports = [{ name: 'http', port: 80, targetPort: 'web' }]
    await serve({ ports, trafficDistribution: 'PreferClose' })
    for (const number of [1, 2]) {
      const containers = [
        { name: 'c', image: 'i', resources: {}, ports: [{ name: 'web', containerPort: 8000 + number }] },
      ]
      await run(number, true, { containers })
    }
    await clock.advance(1000)
    const found = (await slices()).map(({ ports: its, endpoints }) => [its?.[0]?.port, endpoints?.[0]?.hints])
    assert.deepEqual(
      found.toSorted(([a], [b]) => Number(a) - Number(b)),
      [
        [8001, { forZones: [{ name: 'z1' }] }],
        [8002, { forZones: [{ name: 'z1' }] }],
      ],
    )
  })
})

describe('topology hints of EndpointSlices', () => {
  const node = async (name: string, zone: string, isReady = true): Promise<void> => {
    const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }]
    const value = { metadata: { labels: { 'topology.kubernetes.io/zone': zone } } }
    await client.create(Nodes, { metadata: { name } }).catch(() => undefined)
    await client.patch(Nodes, { name }, { type: 'merge', value })
    const status = { allocatable: { cpu: '4' }, conditions }
    await client.patch(Nodes, { name, subresource: 'status' }, { type: 'merge', value: { status } })
    await clock.advance(2000)
  }
  const hints = async (): Promise<string> =>
    (await slices())
      .flatMap(({ endpoints }) => endpoints ?? [])
      .map((one) => one.hints?.forZones?.[0]?.name ?? '-')
      .sort()
      .join()
  const told = async (): Promise<string[]> =>
    (await client.list(Events, { namespace })).items
      .filter(({ reason }) => reason?.startsWith('Topology'))
      .map(({ type, reason, message, count }) => `${type} ${reason} ${message} x${count}`)
  const ENABLED = 'Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4 x1'

  it('change with nodes, endpoints and the annotation, with an event for each change', async () => {
    await node('n1', 'z1')
    await node('n2', 'z2')
    await serve()
    for (const number of [1, 2]) await run(number)
    await clock.advance(1000)
    assert.equal(await hints(), '-,-')
    const annotations = { 'service.kubernetes.io/topology-mode': 'Auto' }
    await client.patch(Services, { namespace, name: 's' }, { type: 'merge', value: { metadata: { annotations } } })
    await clock.advance(1000)
    assert.equal(await hints(), 'z1,z2')
    assert.deepEqual(await told(), [ENABLED])
    await node('n2', 'z2', false)
    assert.equal(await hints(), '-,-')
    assert.match((await told())[1] ?? '', /^Warning TopologyAwareHintsDisabled Insufficient Node information: .* x1$/)
    await node('n2', 'z2')
    await client.patch(
      Services,
      { namespace, name: 's' },
      { type: 'merge', value: { metadata: { labels: { a: 'b' } } } },
    )
    await clock.advance(1000)
    assert.equal(await hints(), 'z1,z2')
    await client.patch(
      Services,
      { namespace, name: 's' },
      { type: 'merge', value: { metadata: { annotations: null } } },
    )
    await clock.advance(1000)
    assert.equal(await hints(), '-,-')
    assert.deepEqual((await told()).slice(2), [
      'Warning TopologyAwareHintsDisabled Topology Aware Hints has been disabled, addressType: IPv4 x1',
    ])
  })
})

describe('Endpoints controllers', () => {
  it('list ready and not ready addresses in order, and delete Endpoints with the Service', async () => {
    await serve({ clusterIP: 'None', ports: [] })
    for (const number of [10, 9, 2]) await run(number, number !== 2)
    await clock.advance(1000)
    const endpoints = await client.get(Endpoints, { namespace, name: 's' })
    assert.deepEqual(endpoints.metadata.labels, {
      'endpoints.kubernetes.io/managed-by': 'endpoint-controller',
      'service.kubernetes.io/headless': '',
      team: 'a',
    })
    assert.equal(endpoints.metadata.ownerReferences, undefined)
    const [subset, ...more] = endpoints.subsets ?? []
    assert.deepEqual(more, [])
    assert.deepEqual(
      subset?.addresses?.map(({ ip }) => ip),
      ['10.0.0.10', '10.0.0.9'],
    )
    assert.deepEqual(
      subset?.notReadyAddresses?.map(({ ip, nodeName }) => `${ip} ${nodeName}`),
      ['10.0.0.2 n1'],
    )
    await client.delete(Services, { namespace, name: 's' })
    await clock.advance(1000)
    await assert.rejects(client.get(Endpoints, { namespace, name: 's' }), isNotFound)
  })

  it('mirror Endpoints of a Service without a selector to EndpointSlices', async () => {
    await client.create(Services, {
      metadata: { namespace, name: 'm' },
      spec: { ports: [{ port: 80, targetPort: 80 }] },
    })
    const endpoints = await client.create(Endpoints, {
      metadata: { namespace, name: 'm', labels: { my: 'label' }, annotations: { my: 'note' } },
      subsets: [{ addresses: [{ ip: '10.1.1.1' }], notReadyAddresses: [{ ip: '10.1.1.2' }], ports: [{ port: 80 }] }],
    })
    await clock.advance(1000)
    const [slice, ...more] = await slices()
    assert.deepEqual(more, [])
    assert.match(slice?.metadata.name ?? '', /^m-[a-z0-9]{5}$/)
    assert.deepEqual(slice?.metadata.labels, {
      'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
      'kubernetes.io/service-name': 'm',
      my: 'label',
    })
    assert.deepEqual(slice?.metadata.annotations, { my: 'note' })
    assert.equal(slice?.metadata.ownerReferences?.[0]?.uid, endpoints.metadata.uid)
    assert.deepEqual(slice?.ports, [{ name: '', protocol: 'TCP', port: 80 }])
    assert.deepEqual(slice?.endpoints, [
      { addresses: ['10.1.1.1'], conditions: { ready: true } },
      { addresses: ['10.1.1.2'], conditions: { ready: false } },
    ])
    const subsets = [{ addresses: [{ ip: '10.1.1.3' }], ports: [{ port: 80 }] }]
    await client.patch(Endpoints, { namespace, name: 'm' }, { type: 'merge', value: { subsets } })
    await clock.advance(1000)
    const addresses = (await slices()).flatMap(({ endpoints: its }) => its?.map((one) => one.addresses[0]))
    assert.deepEqual(addresses, ['10.1.1.3'])
    await client.delete(Endpoints, { namespace, name: 'm' })
    await clock.advance(1000)
    assert.deepEqual(await slices(), [])
  })

  it('keep Endpoints without a Service unchanged', async () => {
    await client.create(Endpoints, { metadata: { namespace, name: 'mine' }, subsets: [] })
    await clock.advance(60_000)
    assert.equal((await client.get(Endpoints, { namespace, name: 'mine' })).metadata.name, 'mine')
  })
})
