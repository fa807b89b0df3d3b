/** Tests pods with devices on a complete API server with a virtual clock; the test acts as the drivers. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { Namespaces, type PodSpec, Pods } from '#apis/core/v1.ts'
import {
  type AllocationResult,
  type Device,
  DeviceClasses,
  type DeviceClassSpec,
  type DeviceRequest,
  type ExactDeviceRequest,
  type ResourceClaim,
  ResourceClaims,
  type ResourceClaimSpec,
  ResourceSlices,
  type ResourceSliceSpec,
} from '#apis/resource/v1.ts'

import { asking, type ClusterUnderTest, namespace, startCluster } from './cluster-under-test.ts'

let cluster: ClusterUnderTest

beforeEach(async () => {
  cluster = await startCluster()
  await cluster.client.create(DeviceClasses, {
    metadata: { name: 'gpu' },
    spec: { selectors: [{ cel: { expression: `device.driver == '${DRIVER}'` } }] },
  })
})

afterEach(() => cluster[Symbol.asyncDispose]())

const DRIVER = 'gpu.example.com'

function slice(name: string, devices: Device[], more: Partial<ResourceSliceSpec> = {}): Promise<unknown> {
  const pool = { name, generation: 1, resourceSliceCount: 1 }
  const where = more.allNodes === true || more.nodeSelector !== undefined ? {} : { nodeName: name }
  const spec = { driver: DRIVER, pool, ...where, devices, ...more }
  return cluster.client.create(ResourceSlices, { metadata: { name }, spec })
}

const gpus = (...names: readonly string[]): Device[] => names.map((name) => ({ name }))

const exactly = (more: Partial<ExactDeviceRequest> = {}): DeviceRequest => ({
  name: 'r',
  exactly: { deviceClassName: 'gpu', ...more },
})

function claim(name: string, requests: DeviceRequest[], more: Partial<ResourceClaimSpec['devices']> = {}) {
  const spec = { devices: { requests, ...more } }
  return cluster.client.create(ResourceClaims, { metadata: { namespace, name }, spec })
}

const using = (...claims: readonly string[]): Pick<PodSpec, 'containers' | 'resourceClaims'> => ({
  ...asking({ cpu: '100m' }),
  resourceClaims: claims.map((resourceClaimName, at) => ({ name: `c${at}`, resourceClaimName })),
})

const stored = (name: string): Promise<ResourceClaim> => cluster.client.get(ResourceClaims, { namespace, name })

async function allocation(name: string): Promise<AllocationResult | undefined> {
  return (await stored(name)).status.allocation
}

/** `pool/device` of what it got. */
async function devicesOf(name: string): Promise<string[]> {
  const { devices } = (await allocation(name)) ?? {}
  return (devices?.results ?? []).map(({ pool, device }) => `${pool}/${device}`)
}

const REFUSED =
  '0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.'

describe('pod with ResourceClaims', () => {
  it('is scheduled to a node with the devices, and its claim gets the allocation', async () => {
    await cluster.node('n1')
    await cluster.node('n2')
    await slice('n2', gpus('g0', 'g1'))
    await claim('c', [exactly()])
    const pod = await cluster.pod('p', using('c'))
    assert.equal(await cluster.placeOf('p'), 'n2')
    const { metadata, status } = await stored('c')
    assert.deepEqual(metadata.finalizers, ['resource.kubernetes.io/delete-protection'])
    assert.deepEqual(status.reservedFor, [{ resource: 'pods', name: 'p', uid: pod.metadata.uid }])
    const values = ['n2']
    assert.deepEqual(status.allocation, {
      devices: { results: [{ request: 'r', driver: DRIVER, pool: 'n2', device: 'g0' }] },
      nodeSelector: { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values }] }] },
      allocationTimestamp: '2026-01-01T00:00:00Z',
    })
  })

  it('gets no device that is allocated or assumed for another pod, and gets one after its release', async () => {
    await cluster.node('n1')
    await slice('n1', gpus('g0'))
    await claim('a', [exactly()])
    await claim('b', [exactly()])
    await Promise.all([cluster.pod('p', using('a')), cluster.pod('q', using('b'))])
    await cluster.settle()
    const got = await Promise.all(['a', 'b'].map(devicesOf))
    assert.equal(got.flat().length, 1)
    const [winner, loser] = got[0]?.length === 1 ? (['a', 'q'] as const) : (['b', 'p'] as const)
    assert.equal(await cluster.whyNot(loser), REFUSED)
    await cluster.client.delete(Pods, { namespace, name: winner === 'a' ? 'p' : 'q' }, { gracePeriodSeconds: 0 })
    await cluster.client.updateStatus(ResourceClaims, { ...(await stored(winner)), status: {} })
    await cluster.settle(5000)
    assert.equal(await cluster.placeOf(loser), 'n1')
  })

  it('waits for its claims, and cannot use a claim of another pod', async () => {
    await cluster.node('n1')
    await slice('n1', gpus('g0'))
    await cluster.pod('p', using('c'))
    await cluster.pod('q', {
      ...asking({ cpu: '1' }),
      resourceClaims: [{ name: 'x', resourceClaimTemplateName: 't' }],
    })
    assert.equal(await cluster.whyNot('p'), '')
    assert.equal(await cluster.whyNot('q'), '')
    await claim('c', [exactly({ deviceClassName: 'none' })])
    await cluster.settle(2000)
    assert.equal(
      await cluster.whyNot('p'),
      '0/1 nodes are available: request r: device class none does not exist. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.',
    )
    await cluster.client.create(DeviceClasses, { metadata: { name: 'none' }, spec: {} })
    await cluster.settle(5000)
    assert.equal(await cluster.placeOf('p'), 'n1')
    await cluster.client.patch(
      Pods,
      { namespace, name: 'q', subresource: 'status' },
      { type: 'strategic', value: { status: { resourceClaimStatuses: [{ name: 'x' }] } } },
    )
    await cluster.settle(2000)
    assert.equal(await cluster.placeOf('q'), 'n1', 'no claim was needed')
  })

  it('shares a claim on the node of the first pod', async () => {
    await cluster.node('n1')
    await cluster.node('n2')
    await slice('n1', gpus('g0'))
    await slice('n2', gpus('g0'))
    await claim('c', [exactly()])
    for (const name of ['p', 'q', 'r']) await cluster.pod(name, using('c'))
    await cluster.settle(3000)
    const places = await Promise.all(['p', 'q', 'r'].map((name) => cluster.placeOf(name)))
    assert.equal(new Set(places).size, 1)
    assert.notEqual(places[0], '')
    assert.equal((await stored('c')).status.reservedFor?.length, 3)
  })

  it('deallocates an unused claim that prevents its scheduling', async () => {
    await cluster.node('n1')
    await cluster.node('n2')
    await slice('n1', gpus('g0'))
    await slice('n2', gpus('g0'))
    await claim('c', [exactly()])
    await cluster.pod('p', { ...using('c'), nodeSelector: { 'kubernetes.io/hostname': 'n1' } })
    await cluster.settle()
    await cluster.client.delete(Pods, { namespace, name: 'p' }, { gracePeriodSeconds: 0 })
    const current = await stored('c')
    const status = { ...current.status, reservedFor: [] }
    await cluster.client.updateStatus(ResourceClaims, { ...current, status })
    await cluster.pod('q', { ...using('c'), nodeSelector: { 'kubernetes.io/hostname': 'n2' } })
    await cluster.settle(100)
    assert.match((await cluster.events('q'))[0] ?? '', /deallocation of ResourceClaim completed/)
    await cluster.settle(5000)
    assert.equal(await cluster.placeOf('q'), 'n2')
    assert.deepEqual(await devicesOf('c'), ['n2/g0'])
  })
})

describe('device requests in ResourceClaims', () => {
  const gets = async (requests: DeviceRequest[], more: Partial<ResourceClaimSpec['devices']> = {}) => {
    await claim('c', requests, more)
    await cluster.pod('p', using('c'))
    await cluster.settle()
    return devicesOf('c')
  }

  it('select by expression, count, all devices, or the first alternative', async () => {
    await cluster.node('n1')
    const attributed = gpus('g0', 'g1', 'g2', 'g3').map((one, at) => ({ ...one, attributes: { index: { int: at } } }))
    await slice('n1', attributed)
    const above = (index: number) => [{ cel: { expression: `device.attributes['${DRIVER}'].index > ${index}` } }]
    assert.deepEqual(
      await gets([
        {
          name: 'wish',
          firstAvailable: [
            { name: 'five', deviceClassName: 'gpu', count: 5 },
            { name: 'one', deviceClassName: 'gpu', selectors: above(1) },
          ],
        },
        { name: 'other', exactly: { deviceClassName: 'gpu', count: 2 } },
      ]),
      ['n1/g2', 'n1/g0', 'n1/g1'],
    )
    assert.equal((await allocation('c'))?.devices.results?.[0]?.request, 'wish/one')
    await claim('all', [exactly({ allocationMode: 'All', selectors: above(2) })])
    await cluster.pod('q', using('all'))
    await cluster.settle()
    assert.deepEqual(await devicesOf('all'), ['n1/g3'])
    await claim('broken', [exactly({ selectors: [{ cel: { expression: `device.attributes['x'].y == 1` } }] })])
    await cluster.client.delete(Pods, { namespace, name: 'q' }, { gracePeriodSeconds: 0 })
    await cluster.client.updateStatus(ResourceClaims, { ...(await stored('all')), status: {} })
    await cluster.pod('r', using('broken'))
    assert.equal(
      await cluster.whyNot('r'),
      'running "DynamicResources" filter plugin: claim default/broken: selector #0: CEL runtime error: no such key: y',
    )
  })

  it('support match and distinct constraints', async () => {
    await cluster.node('n1')
    const devices = ['a', 'b', 'b', 'a'].map((side, at) => ({ name: `g${at}`, attributes: { side: { string: side } } }))
    await slice('n1', devices)
    assert.deepEqual(
      await gets([exactly({ count: 2 })], { constraints: [{ requests: ['r'], matchAttribute: `${DRIVER}/side` }] }),
      ['n1/g0', 'n1/g3'],
    )
  })

  it('tolerate device taints', async () => {
    await cluster.node('n1')
    const taints = [{ key: 'k', value: 'v', effect: 'NoSchedule' }]
    await slice('n1', [{ name: 'g0', taints }, { name: 'g1' }])
    assert.deepEqual(await gets([exactly()]), ['n1/g1'])
    await claim('d', [exactly({ tolerations: [{ key: 'k', operator: 'Exists' }] })])
    await cluster.pod('q', using('d'))
    await cluster.settle()
    assert.deepEqual(await devicesOf('d'), ['n1/g0'])
  })

  it('use shared counters', async () => {
    await cluster.node('n1')
    const pool = { name: 'n1', generation: 1, resourceSliceCount: 2 }
    const counters = { memory: { value: '40Gi' } }
    const sharedCounters = [{ name: 'set', counters }]
    const part = (name: string, value: string): Device => ({
      name,
      consumesCounters: [{ counterSet: 'set', counters: { memory: { value } } }],
    })
    await cluster.client.create(ResourceSlices, {
      metadata: { name: 'counters' },
      spec: { driver: DRIVER, pool, nodeName: 'n1', sharedCounters },
    })
    await slice('n1', [part('half0', '20Gi'), part('whole', '40Gi'), part('half1', '20Gi')], { pool })
    assert.deepEqual(await gets([exactly()]), ['n1/half0'])
    await claim('d', [exactly()])
    await cluster.pod('q', using('d'))
    await cluster.settle()
    assert.deepEqual(await devicesOf('d'), ['n1/half1'])
    await claim('e', [exactly()])
    await cluster.pod('r', using('e'))
    assert.equal(await cluster.whyNot('r'), REFUSED)
  })

  it('share devices within their capacity', async () => {
    await cluster.node('n1')
    const requestPolicy = { default: '1Gi', validRange: { min: '1Gi', step: '2Gi' } }
    await slice('n1', [
      { name: 'g0', allowMultipleAllocations: true, capacity: { memory: { value: '8Gi', requestPolicy } } },
    ])
    const capacity = { requests: { memory: '4Gi' } }
    assert.deepEqual(await gets([exactly({ capacity })]), ['n1/g0'])
    const [first] = (await allocation('c'))?.devices.results ?? []
    assert.deepEqual(first?.consumedCapacity, { memory: '5Gi' })
    assert.match(first?.shareID ?? '', /^[0-9a-f-]{36}$/)
    await claim('d', [exactly({ capacity })])
    await cluster.pod('q', using('d'))
    assert.equal(await cluster.whyNot('q'), REFUSED)
    await claim('e', [exactly()])
    await cluster.pod('r', using('e'))
    await cluster.settle()
    assert.deepEqual(await devicesOf('e'), ['n1/g0'])
  })

  it('with admin access may use allocated devices', async () => {
    await cluster.node('n1')
    await slice('n1', gpus('g0'))
    const { labels = {} } = (await cluster.client.get(Namespaces, { name: namespace })).metadata
    const own = { ...labels, 'resource.kubernetes.io/admin-access': 'true' }
    await cluster.client.patch(Namespaces, { name: namespace }, { type: 'merge', value: { metadata: { labels: own } } })
    assert.deepEqual(await gets([exactly()]), ['n1/g0'])
    await claim('d', [exactly({ adminAccess: true })])
    await cluster.pod('q', using('d'))
    await cluster.settle()
    assert.deepEqual(await devicesOf('d'), ['n1/g0'])
  })
})

describe('resource pools of devices', () => {
  it('are unusable until all slices are published', async () => {
    await cluster.node('n1')
    const pool = { name: 'n1', generation: 1, resourceSliceCount: 2 }
    await slice('n1', gpus('g0'), { pool })
    await claim('c', [exactly()])
    await cluster.pod('p', using('c'))
    assert.equal(await cluster.whyNot('p'), REFUSED)
    await claim('d', [exactly({ allocationMode: 'All' })])
    await cluster.pod('q', using('d'))
    assert.equal(
      await cluster.whyNot('q'),
      'running "DynamicResources" filter plugin: claim default/d, request r: asks for all devices, but resource pool gpu.example.com/n1 is currently being updated',
    )
    await slice('more', gpus('g1'), { pool, nodeName: 'n1' })
    await cluster.settle(5000)
    assert.equal(await cluster.placeOf('p'), 'n1')
  })
})

describe('failed binding of a pod with devices', () => {
  it('releases the devices', async () => {
    await cluster.node('n1')
    await slice('n1', gpus('g0'))
    await claim('c', [exactly()])
    await cluster.pod('p', using('c'))
    await cluster.client.delete(Pods, { namespace, name: 'p' }, { gracePeriodSeconds: 0 })
    await cluster.settle(2000)
    await cluster.pod('q', using('c'))
    await cluster.settle(5000)
    assert.equal(await cluster.placeOf('q'), 'n1')
    assert.deepEqual((await stored('c')).status.reservedFor?.filter(({ name }) => name === 'q').length, 1)
  })
})

describe('devices with binding conditions', () => {
  const slow = { bindsToNode: true, bindingConditions: ['ready'], bindingFailureConditions: ['failed'] }
  const tell = async (name: string, type: string): Promise<void> => {
    const current = await stored(name)
    const [{ driver, pool, device } = { driver: '', pool: '', device: '' }] =
      current.status.allocation?.devices.results ?? []
    const lastTransitionTime = '2026-01-01T00:00:00Z'
    const conditions = [{ type, status: 'True', reason: 'Because', message: 'm', lastTransitionTime }]
    const status = { ...current.status, devices: [{ driver, pool, device, conditions }] }
    await cluster.client.updateStatus(ResourceClaims, { ...current, status })
  }

  it('delay the binding until they are ready, and are released if they fail', async () => {
    await cluster.node('n1')
    await slice('n1', [{ name: 'g0', ...slow }])
    await claim('c', [exactly()])
    await cluster.pod('p', using('c'))
    assert.equal(await cluster.placeOf('p'), '')
    assert.deepEqual(await cluster.events('p'), [
      'BindingConditionsPending: waiting for binding conditions for device on node n1',
    ])
    await tell('c', 'failed')
    await cluster.settle(6000)
    assert.match(
      (await cluster.events('p')).join('\n'),
      /running PreBind plugin "DynamicResources": device binding failed: claim=c, reason=Because, message="m"/,
    )
    await cluster.settle(20_000)
    await tell('c', 'ready')
    await cluster.settle(20_000)
    assert.equal(await cluster.placeOf('p'), 'n1')
  })
})

describe('extended resources of DeviceClasses', () => {
  it('are provided by devices if the node has none', async () => {
    await cluster.node('n1')
    await slice('n1', gpus('g0', 'g1', 'g2'))
    await cluster.client.create(DeviceClasses, {
      metadata: { name: 'x' },
      spec: { extendedResourceName: 'example.com/gpu' } satisfies DeviceClassSpec,
    })
    const resources = { requests: { 'example.com/gpu': '2' }, limits: { 'example.com/gpu': '2' } }
    await cluster.pod('p', { containers: [{ name: 'c', image: 'img:1', resources }] })
    assert.equal(await cluster.placeOf('p'), 'n1')
    const { status } = await cluster.client.get(Pods, { namespace, name: 'p' })
    const name = status.extendedResourceClaimStatus?.resourceClaimName ?? ''
    assert.match(name, /^p-extended-resources-/)
    assert.deepEqual(status.extendedResourceClaimStatus?.requestMappings, [
      { containerName: 'c', resourceName: 'example.com/gpu', requestName: 'container-0-request-0' },
    ])
    assert.deepEqual(await devicesOf(name), ['n1/g0', 'n1/g1'])
    await cluster.pod('q', { containers: [{ name: 'c', image: 'img:1', resources }] })
    assert.equal(await cluster.whyNot('q'), REFUSED)
  })
})
