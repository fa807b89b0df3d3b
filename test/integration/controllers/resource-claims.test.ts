/** Tests ResourceClaims on a complete API server with a virtual clock: creation, release and device taint eviction. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import fc from 'fast-check'

import { Events, type Pod, type PodResourceClaim, Pods } from '#apis/core/v1.ts'
import {
  type DeviceToleration,
  type ResourceClaim,
  ResourceClaims,
  ResourceClaimTemplates,
  ResourceSlices,
} from '#apis/resource/v1.ts'
import { DeviceTaintRules } from '#apis/resource/v1beta2.ts'
import { PodGroups } from '#apis/scheduling/v1alpha2.ts'
import type { ApiClient, Transport } from '#client/api-client.ts'
import { deviceTaintEvictionController } from '#controllers/devices/device-taint-eviction/controller.ts'
import { baseName } from '#controllers/devices/resourceclaim/consumer.ts'
import { resourceClaimController } from '#controllers/devices/resourceclaim/controller.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const namespace = 'default'
const FINALIZER = 'resource.kubernetes.io/delete-protection'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
let made = 0

const quiet = { error: () => undefined, info: () => undefined, v: () => undefined } as never

/** Whether the next write of a controller fails, before it is done or after. */
let fault: () => 'before' | 'after' | undefined = () => undefined

const through = (transport: Transport): Transport => ({
  async request(request) {
    const isWrite = request.method !== 'GET' && !String(request.headers?.['user-agent']).startsWith('tester')
    const failure = isWrite ? fault() : undefined
    if (failure === 'before') throw new Error('the connection broke')
    const response = await transport.request(request)
    if (failure === undefined) return response
    response.discard()
    throw new Error('the answer was lost')
  },
})

async function start(gates: Record<string, boolean> = {}, runtime: readonly string[] = []): Promise<void> {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  const settings = {
    'disable-admission-plugins': ['ServiceAccount'],
    'feature-gates': new Map(Object.entries(gates)),
    'runtime-config': new Map(runtime.map((version) => [version, 'true'])),
  }
  plane = await startControlPlane({ clock, settings })
  controllers = startControllers(plane, clock, [resourceClaimController, deviceTaintEvictionController], {
    gates,
    through,
    log: quiet,
  })
  client = controllers.client
}

async function restart(gates: Record<string, boolean>, runtime: readonly string[]): Promise<void> {
  await controllers.stop()
  await plane.stop()
  await start(gates, runtime)
}

beforeEach(() => start())
afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

const settle = (): Promise<void> => clock.advance(1000)
const requests = [{ name: 'gpu', exactly: { deviceClassName: 'gpu', allocationMode: 'ExactCount', count: 1 } }]
const results = [{ request: 'gpu', driver: 'd.example.com', pool: 'p', device: 'dev0' }]

async function makeTemplate(name = 'gpu'): Promise<void> {
  const metadata = { labels: { kind: 'gpu' }, annotations: { note: 'x' } }
  await client.create(ResourceClaimTemplates, {
    metadata: { namespace, name },
    spec: { metadata, spec: { devices: { requests } } },
  })
  await settle()
}

async function makePod(name: string, resourceClaims: PodResourceClaim[], more: object = {}): Promise<void> {
  const containers = [{ name: 'c', image: 'i', resources: {} }]
  await client.create(Pods, {
    metadata: { namespace, name },
    spec: { containers, resourceClaims, terminationGracePeriodSeconds: 30, ...more },
  })
  await settle()
}

const getPod = (name: string): Promise<Pod> => client.get(Pods, { namespace, name })
const claims = async (): Promise<ResourceClaim[]> => (await client.list(ResourceClaims, { namespace })).items
const events = async (): Promise<string[]> =>
  (await client.list(Events, { namespace })).items.map(
    ({ type, reason, message, reportingComponent }) => `${type} ${reportingComponent} ${reason}: ${message}`,
  )

/** Writes devices, finalizer and reservation to a claim, as the scheduler. */
async function allocate(name: string, pod: string | undefined, tolerations: DeviceToleration[] = []): Promise<void> {
  const where = { namespace, name }
  await client.patch(ResourceClaims, where, { type: 'merge', value: { metadata: { finalizers: [FINALIZER] } } })
  const { uid = '' } = pod === undefined ? {} : (await getPod(pod)).metadata
  const reservedFor = pod === undefined ? [] : [{ resource: 'pods', name: pod, uid }]
  const status = {
    allocation: { devices: { results: results.map((result) => ({ ...result, tolerations })) } },
    reservedFor,
  }
  await client.patch(ResourceClaims, { ...where, subresource: 'status' }, { type: 'merge', value: { status } })
  await settle()
}

const finish = async (name: string): Promise<void> => {
  await client.patch(
    Pods,
    { namespace, name, subresource: 'status' },
    { type: 'merge', value: { status: { phase: 'Succeeded' } } },
  )
  await settle()
}

describe('resource claim controller', () => {
  it('creates a claim from a template, and writes its name to the pod status', async () => {
    await makeTemplate()
    await makePod('web', [{ name: 'r', resourceClaimTemplateName: 'gpu' }])
    const [claim] = await claims()
    assert.match(claim?.metadata.name ?? '', /^web-r-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
    const pod = await getPod('web')
    assert.deepEqual(claim?.metadata.ownerReferences, [
      { apiVersion: 'v1', kind: 'Pod', name: 'web', uid: pod.metadata.uid, controller: true },
    ])
    assert.deepEqual(claim.metadata.labels, { kind: 'gpu' })
    assert.deepEqual(claim.metadata.annotations, { note: 'x', 'resource.kubernetes.io/pod-claim-name': 'r' })
    assert.deepEqual(pod.status.resourceClaimStatuses, [{ name: 'r', resourceClaimName: claim.metadata.name }])
    const managers = pod.metadata.managedFields?.map(({ manager, operation, subresource }) => [
      manager,
      operation,
      subresource,
    ])
    assert.deepEqual(managers?.[0], ['ResourceClaimController', 'Apply', 'status'])
  })

  it('reports a missing template, and creates the claim when it exists', async () => {
    await makePod('web', [{ name: 'r', resourceClaimTemplateName: 'nope' }])
    assert.deepEqual(
      [...new Set(await events())],
      [
        'Warning resource_claim FailedResourceClaimCreation: PodResourceClaim r: resource claim template "nope": resourceclaimtemplate.resource.k8s.io "nope" not found',
      ],
    )
    await makeTemplate('nope')
    assert.equal((await claims()).length, 1)
  })

  it('creates each claim once, and again after a deletion', async () => {
    await makeTemplate()
    await makePod('web', [
      { name: 'a', resourceClaimTemplateName: 'gpu' },
      { name: 'b', resourceClaimTemplateName: 'gpu' },
    ])
    const [first, second] = await claims()
    assert.equal((await claims()).length, 2)
    await client.delete(ResourceClaims, { namespace, name: first?.metadata.name ?? '' })
    await settle()
    const names = (await claims()).map(({ metadata }) => metadata.name ?? '').sort()
    assert.equal(names.length, 2)
    assert.ok(names.includes(second?.metadata.name ?? ''))
    const told = (await getPod('web')).status.resourceClaimStatuses
      ?.map(({ resourceClaimName }) => resourceClaimName)
      .sort()
    assert.deepEqual(told, names)
  })

  it('creates each claim once despite failing writes, and finally writes its name to the pod status', async () => {
    await makeTemplate()
    const law = fc.asyncProperty(
      fc.infiniteStream(fc.constantFrom('before', 'after', undefined)),
      fc.nat(),
      async (faults, at) => {
        let left = 6
        fault = () => (left-- > 0 ? faults.next().value : undefined)
        const name = `web-${at}-${++made}`
        await makePod(name, [
          { name: 'a', resourceClaimTemplateName: 'gpu' },
          { name: 'b', resourceClaimTemplateName: 'gpu' },
        ])
        await clock.advance(60_000)
        const own = (await claims()).filter(({ metadata }) => metadata.ownerReferences?.[0]?.name === name)
        const told = (await getPod(name)).status.resourceClaimStatuses?.map(
          ({ resourceClaimName }) => resourceClaimName,
        )
        assert.deepEqual(told?.toSorted(), own.map(({ metadata }) => metadata.name ?? '').toSorted())
        assert.equal(own.length, 2)
      },
    )
    await fc.assert(law, { numRuns: 10 })
    fault = () => undefined
  })

  it('deallocates a claim when its last pod has finished', async () => {
    await client.create(ResourceClaims, { metadata: { namespace, name: 'shared' }, spec: { devices: { requests } } })
    await makePod('web', [{ name: 'r', resourceClaimName: 'shared' }], { nodeName: 'n1' })
    await allocate('shared', 'web')
    assert.equal((await claims())[0]?.status.reservedFor?.length, 1)
    await finish('web')
    const [claim] = await claims()
    assert.deepEqual([claim?.status, claim?.metadata.finalizers], [{}, undefined])
  })

  it('deletes a generated claim when its pod has finished', async () => {
    await makeTemplate()
    await makePod('web', [{ name: 'r', resourceClaimTemplateName: 'gpu' }], { nodeName: 'n1' })
    const [claim] = await claims()
    await allocate(claim?.metadata.name ?? '', 'web')
    await finish('web')
    assert.deepEqual(await claims(), [])
  })

  it('releases the claims of a deleted pod, including extended resources', async () => {
    await client.create(ResourceClaims, { metadata: { namespace, name: 'ext' }, spec: { devices: { requests } } })
    const resources = { requests: { 'e.com/x': '1' }, limits: { 'e.com/x': '1' } }
    await makePod('web', [], { nodeName: 'n1', containers: [{ name: 'c', image: 'i', resources }] })
    const status = {
      extendedResourceClaimStatus: {
        resourceClaimName: 'ext',
        requestMappings: [{ containerName: 'c', resourceName: 'e.com/x', requestName: 'gpu' }],
      },
    }
    await client.patch(Pods, { namespace, name: 'web', subresource: 'status' }, { type: 'merge', value: { status } })
    await allocate('ext', 'web')
    await client.delete(Pods, { namespace, name: 'web' }, { gracePeriodSeconds: 0 })
    await settle()
    assert.deepEqual((await claims())[0]?.status, {})
  })

  it('reserves a claim for a pod that another scheduler bound', async () => {
    await client.create(ResourceClaims, { metadata: { namespace, name: 'shared' }, spec: { devices: { requests } } })
    await allocate('shared', undefined)
    await makePod('web', [{ name: 'r', resourceClaimName: 'shared' }], { nodeName: 'n1' })
    const { uid } = (await getPod('web')).metadata
    assert.deepEqual((await claims())[0]?.status.reservedFor, [{ resource: 'pods', name: 'web', uid }])
  })

  it('removes the finalizer of an unused deleted claim', async () => {
    await client.create(ResourceClaims, { metadata: { namespace, name: 'shared' }, spec: { devices: { requests } } })
    await allocate('shared', undefined)
    await client.delete(ResourceClaims, { namespace, name: 'shared' })
    await settle()
    assert.deepEqual(await claims(), [])
  })

  it('creates claims for PodGroups with the feature gates', async () => {
    await restart({ GenericWorkload: true, DRAWorkloadResourceClaims: true }, ['scheduling.k8s.io/v1alpha2'])
    await makeTemplate()
    const resourceClaims = [{ name: 'r', resourceClaimTemplateName: 'gpu' }]
    const group = await client.create(PodGroups, {
      metadata: { namespace, name: 'g' },
      spec: { schedulingPolicy: { basic: {} }, resourceClaims } as never,
    })
    await settle()
    await makePod('web', resourceClaims, { schedulingGroup: { podGroupName: 'g' } })
    const [claim, ...others] = await claims()
    assert.deepEqual(others, [])
    assert.match(claim?.metadata.name ?? '', /^g-r-/)
    const owner = {
      apiVersion: 'scheduling.k8s.io/v1alpha2',
      kind: 'PodGroup',
      name: 'g',
      uid: group.metadata.uid,
      controller: true,
    }
    assert.deepEqual(claim?.metadata.ownerReferences, [owner])
    const told = [{ name: 'r', resourceClaimName: claim.metadata.name }]
    assert.deepEqual((await client.get(PodGroups, { namespace, name: 'g' })).status.resourceClaimStatuses, told)
    assert.deepEqual((await getPod('web')).status.resourceClaimStatuses, told)
  })

  it('truncates both parts of a long claim name', () => {
    assert.equal(baseName('web', 'r'), 'web-r-')
    assert.equal(baseName('p'.repeat(60), 'claim'), `${'p'.repeat(51)}-clai`)
    assert.ok(baseName('p'.repeat(63), 'c'.repeat(63)).length <= 57)
  })
})

describe('device taint eviction controller', () => {
  const taint = (effect: string): object => ({ key: 'broken', value: 'yes', effect })
  const publish = async (taints: object[], generation = 1): Promise<void> => {
    const spec = {
      driver: 'd.example.com',
      pool: { name: 'p', generation, resourceSliceCount: 1 },
      nodeName: 'n1',
      devices: [{ name: 'dev0', taints }],
    }
    const name = `slice-${generation}`
    await client.delete(ResourceSlices, { name }).catch(() => undefined)
    await client.create(ResourceSlices, { metadata: { name }, spec } as never)
    await settle()
  }
  const useDevice = async (tolerations: DeviceToleration[] = []): Promise<void> => {
    await client.create(ResourceClaims, { metadata: { namespace, name: 'c' }, spec: { devices: { requests } } })
    await makePod('web', [{ name: 'r', resourceClaimName: 'c' }], { nodeName: 'n1' })
    await allocate('c', 'web', tolerations)
  }
  const isGoing = async (): Promise<boolean> => (await getPod('web')).metadata.deletionTimestamp !== undefined

  it('evicts a pod with a tainted device, with an event', async () => {
    await publish([])
    await useDevice()
    await publish([taint('NoSchedule')], 2)
    assert.equal(await isGoing(), false)
    await publish([taint('NoExecute')], 3)
    const { status } = await getPod('web')
    assert.equal(await isGoing(), true)
    const condition = status.conditions?.find(({ type }) => type === 'DisruptionTarget')
    assert.deepEqual(
      [condition?.status, condition?.reason, condition?.message],
      ['True', 'DeletionByDeviceTaintManager', 'Device Taint manager: deleting due to NoExecute taint'],
    )
    assert.deepEqual(await events(), [
      'Normal device-taint-eviction-controller DeviceTaintManagerEviction: Marking for deletion',
    ])
  })

  it('waits for tolerationSeconds, and cancels the eviction if the taint is removed', async () => {
    await publish([])
    await useDevice([{ key: 'broken', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 }])
    await publish([taint('NoExecute')], 2)
    await clock.advance(50_000)
    assert.equal(await isGoing(), false)
    await publish([], 3)
    assert.deepEqual(await events(), [
      'Normal device-taint-eviction-controller DeviceTaintManagerEviction: Cancelling deletion',
    ])
    await publish([taint('NoExecute')], 4)
    await clock.advance(58_000)
    assert.equal(await isGoing(), false)
    await clock.advance(3000)
    assert.equal(await isGoing(), true)
  })

  it('ignores pods that tolerate the taint forever', async () => {
    await publish([taint('NoExecute')])
    await useDevice([{ operator: 'Exists', effect: 'NoExecute' }])
    await clock.advance(3_600_000)
    assert.equal(await isGoing(), false)
  })

  it('applies DeviceTaintRules, and writes their status, with the feature gate', async () => {
    await restart({ DRADeviceTaintRules: true }, ['resource.k8s.io/v1beta2'])
    await publish([])
    await useDevice()
    const rule = {
      metadata: { name: 'rule' },
      spec: { deviceSelector: { driver: 'd.example.com' }, taint: taint('None') },
    }
    await client.create(DeviceTaintRules, rule as never)
    await settle()
    const said = async (): Promise<string> => {
      const { status } = await client.get(DeviceTaintRules, { name: 'rule' })
      return (status.conditions ?? [])
        .map(({ type, status: is, reason, message }) => `${type} ${is} ${reason} ${message}`)
        .join()
    }
    assert.equal(
      await said(),
      'EvictionInProgress False NoEffect 1 published device selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if the effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an update.',
    )
    const change = async (effect: string): Promise<void> => {
      await client.patch(
        DeviceTaintRules,
        { name: 'rule' },
        { type: 'merge', value: { spec: { taint: { ...taint(effect), timeAdded: null } } } },
      )
      await settle()
    }
    await change('NoSchedule')
    assert.equal(await said(), 'EvictionInProgress False OtherEffect Eviction only happens for the NoExecute effect.')
    await change('NoExecute')
    assert.equal(await isGoing(), true)
    await clock.advance(12_000)
    assert.equal(await said(), 'EvictionInProgress False Completed 1 pod evicted since starting the controller.')
    const { metadata } = await client.get(DeviceTaintRules, { name: 'rule' })
    const managers = metadata.managedFields?.map(({ manager, operation }) => `${manager} ${operation}`)
    assert.ok(managers?.includes('device-taint-eviction-controller Apply'))
  })
})
