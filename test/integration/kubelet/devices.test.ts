/**
 * Tests device plugins and DRA drivers on real sockets: they register, pods get their devices, and allocations
 * survive a restart of the kubelet.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'

import { Nodes, type Pod, Pods, ServiceAccounts } from '#apis/core/v1.ts'
import { ResourceClaims } from '#apis/resource/v1.ts'
import { DevicePlugin, Registration as DevicePluginRegistration } from '#apis/wire/device-plugin.ts'
import type { Claim } from '#apis/wire/dra.ts'
import { Registration } from '#apis/wire/plugin-registration.ts'
import { PodResourcesLister } from '#apis/wire/pod-resources.ts'
import { ApiClient } from '#client/api-client.ts'
import { eventually } from '#kits/lib/eventually.ts'
import { DRA_SERVICES } from '#kubelet/dra/dra-service.ts'
import { createKubeletMeters, type KubeletMeters } from '#kubelet/metrics/kubelet-families.ts'
import { type NodePlugins, openPlugins } from '#kubelet/node-plugins.ts'
import { realClock } from '#lib/clock.ts'
import { createGrpcClient, type GrpcClient } from '#lib/grpc/client.ts'
import { createGrpcServer, handleServerStream, handleUnary } from '#lib/grpc/server.ts'
import { createLog } from '#lib/log/log.ts'
import { secureRandom } from '#lib/random.ts'
import { startControlPlane } from '#testing/control-plane.ts'

const RESOURCE = 'example.com/gpu'
const DRIVER = 'dra.example.com'

interface Bed {
  readonly meters: KubeletMeters
  readonly root: string
  readonly admin: ApiClient
  readonly pods: Pod[]
  /** A new instance as after a restart; the previous one has ended. */
  restart(): Promise<NodePlugins>
  clientOf(path: string): GrpcClient
}

async function startBed(t: TestContext): Promise<Bed> {
  const closing = new AsyncDisposableStack()
  t.after(() => closing.disposeAsync())
  const plane = closing.use(await startControlPlane())
  const root = await mkdtemp(join(tmpdir(), 'devices-'))
  closing.defer(() => rm(root, { recursive: true, force: true }))
  const clientAs = (name: string, ...groups: string[]): ApiClient => {
    const user = { name, uid: '', groups: [...groups, 'system:authenticated'], extra: {} }
    return new ApiClient({ transport: plane.running.server.clientAs(user), clock: realClock, userAgent: 'test' })
  }
  const admin = clientAs('admin', 'system:masters')
  await admin.create(ServiceAccounts, { metadata: { namespace: 'default', name: 'default' } }).catch(() => undefined)
  await admin.create(Nodes, { metadata: { name: 'node1' }, spec: {} })
  const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock: realClock })
  let stop = new AbortController()
  closing.defer(() => stop.abort())
  const pods: Pod[] = []
  const meters = createKubeletMeters()
  return {
    root,
    meters,
    admin,
    pods,
    async restart() {
      stop.abort()
      stop = new AbortController()
      const plugins = await openPlugins({
        client: clientAs('system:node:node1', 'system:nodes'),
        clock: realClock,
        random: secureRandom,
        log,
        facts: { rootDir: root, nodeName: 'node1' },
        node: () => undefined,
        runtime: { updateContainerResources: async () => ({}) },
        recordEvent: () => undefined,
        onChange: () => undefined,
        signal: stop.signal,
        meters,
      })
      await plugins.start(() => pods.map((pod) => ({ pod, sandboxId: undefined, containers: new Map() })))
      return plugins
    },
    clientOf(path) {
      const client = createGrpcClient({ targets: [{ path: join(root, path) }], clock: realClock, random: secureRandom })
      closing.defer(() => client.close())
      return client
    },
  }
}

interface Plugin extends AsyncDisposable {
  readonly calls: string[]
  /** Registers with the running kubelet. */
  introduce(): Promise<void>
  tell(health: Record<string, string>): void
}

async function startPlugin(bed: Bed): Promise<Plugin> {
  const calls: string[] = []
  let health: Record<string, string> = { d1: 'Healthy', d2: 'Healthy', d3: 'Unhealthy' }
  let told = Promise.withResolvers<void>()
  const handlers = [
    handleUnary(DevicePlugin.getDevicePluginOptions, () => ({
      preStartRequired: true,
      getPreferredAllocationAvailable: true,
    })),
    handleServerStream(DevicePlugin.listAndWatch, async function* () {
      for (;;) {
        yield { devices: Object.entries(health).map(([id, text]) => ({ id, health: text })) }
        await told.promise
      }
    }),
    handleUnary(DevicePlugin.getPreferredAllocation, ({ containerRequests: [request] }) => {
      calls.push(`prefer ${request?.availableDeviceIds.join(' ')}`)
      return { containerResponses: [{ deviceIds: ['d2'] }] }
    }),
    handleUnary(DevicePlugin.allocate, ({ containerRequests: [request] }) => {
      const [id = ''] = request?.devicesIds ?? []
      calls.push(`allocate ${request?.devicesIds.join(' ')}`)
      const devices = [{ containerPath: `/dev/${id}`, hostPath: '/dev/null', permissions: 'rw' }]
      return { containerResponses: [{ envs: new Map([['GPU', id]]), devices, cdiDevices: [{ name: `x/gpu=${id}` }] }] }
    }),
    handleUnary(DevicePlugin.preStartContainer, ({ devicesIds }) => {
      calls.push(`start ${devicesIds.join(' ')}`)
      return {}
    }),
  ]
  const listen = async (): Promise<ReturnType<typeof createGrpcServer>> => {
    const server = createGrpcServer({ handlers, clock: realClock })
    await server.listen({ path: join(bed.root, 'device-plugins/gpu.sock') })
    return server
  }
  let server = await listen()
  return {
    calls,
    async introduce() {
      // A kubelet removes all sockets at start; plugins then listen again.
      await server.stop(0)
      server = await listen()
      const registration = { version: 'v1beta1', endpoint: 'gpu.sock', resourceName: RESOURCE }
      await bed
        .clientOf('device-plugins/kubelet.sock')
        .unary(DevicePluginRegistration.register, registration, { waitForReady: true })
    },
    tell(now) {
      health = now
      told.resolve()
      told = Promise.withResolvers()
    },
    [Symbol.asyncDispose]: () => server.stop(0),
  }
}

function podWith(uid: string, count = 1): Pod {
  const resources = { limits: { [RESOURCE]: String(count) } }
  return {
    metadata: { namespace: 'default', name: `p-${uid}`, uid },
    spec: { containers: [{ name: 'c', resources }] },
    status: {},
  }
}

const containerOf = (pod: Pod): Pod['spec']['containers'][number] => {
  const [container] = pod.spec.containers
  assert.ok(container)
  return container
}

describe('devices in the kubelet', () => {
  it('of device plugins are reported on the node, allocated to pods, and kept after a restart', async (t) => {
    const bed = await startBed(t)
    const first = await bed.restart()
    await using plugin = await startPlugin(bed)
    await assert.rejects(
      bed
        .clientOf('device-plugins/kubelet.sock')
        .unary(DevicePluginRegistration.register, { version: 'v1alpha', resourceName: RESOURCE }),
      /requested API version "v1alpha" is not supported by kubelet/,
    )
    await plugin.introduce()
    const ready = await eventually(
      () => first.amounts,
      ({ capacity }) => capacity[RESOURCE] === '3',
    )
    assert.deepEqual(ready, { capacity: { [RESOURCE]: '3' }, allocatable: { [RESOURCE]: '2' } })
    const [one, two, three] = [podWith('u1'), podWith('u2'), podWith('u3')]
    assert.equal(await first.containerManager.admit(one), undefined)
    assert.deepEqual(plugin.calls, ['prefer d1 d2', 'allocate d2'])
    const runOptions = await first.containerManager.getResources(one, containerOf(one))
    assert.deepEqual([...runOptions.envs], [['GPU', 'd2']])
    assert.deepEqual(runOptions.devices, [{ containerPath: '/dev/d2', hostPath: '/dev/null', permissions: 'rw' }])
    assert.deepEqual(runOptions.cdiDevices, ['x/gpu=d2'])
    assert.equal(plugin.calls.at(-1), 'start d2')
    assert.equal(await first.containerManager.admit(two), undefined)
    assert.deepEqual(await first.containerManager.admit(three), {
      reason: 'UnexpectedAdmissionError',
      text: `Allocate failed due to requested number of devices unavailable for ${RESOURCE}. Requested: 1, Available: 0, which is unexpected`,
    })
    const again = await bed.restart()
    assert.deepEqual([...again.containerManager.uids()], ['u1', 'u2'])
    assert.deepEqual(again.amounts.capacity, { [RESOURCE]: '0' })
    await plugin.introduce()
    await eventually(
      () => again.amounts,
      ({ capacity }) => capacity[RESOURCE] === '3',
    )
    assert.deepEqual([...(await again.containerManager.getResources(one, containerOf(one))).envs], [['GPU', 'd2']])
    bed.pods.push(one)
    const lister = bed.clientOf('pod-resources/kubelet.sock')
    const { podResources } = await lister.unary(PodResourcesLister.list, {})
    assert.deepEqual(podResources[0]?.containers[0]?.devices, [
      { resourceName: RESOURCE, deviceIds: ['d2'], topology: undefined },
    ])
    assert.equal((await lister.unary(PodResourcesLister.getAllocatableResources, {})).devices.length, 3)
    await assert.rejects(
      lister.unary(PodResourcesLister.get, { podName: 'x', podNamespace: 'default' }),
      /pod x in namespace default not found/,
    )
    await again.containerManager.release('u1')
    assert.equal(await again.containerManager.admit(three), undefined)
    plugin.tell({ d1: 'Unhealthy', d2: 'Healthy' })
    await eventually(
      () => again.amounts,
      ({ allocatable, capacity }) => capacity[RESOURCE] === '2' && allocatable[RESOURCE] === '1',
    )
  })

  it('of ResourceClaims are prepared by their driver before use, and unprepared after the last use', async (t) => {
    const bed = await startBed(t)
    const { admin, root } = bed
    const plugins = await bed.restart()
    const asked: string[] = []
    const [, methods] = DRA_SERVICES[0] ?? assert.fail('there is no service')
    const prepared = ({ uid }: Claim): [string, object] => [
      uid,
      { devices: [{ requestNames: ['gpu'], poolName: 'node1', deviceName: 'dev-0', cdiDeviceIds: ['x/dra=0'] }] },
    ]
    const told: boolean[] = []
    const server = createGrpcServer({
      clock: realClock,
      handlers: [
        handleUnary(Registration.getInfo, () => ({
          type: 'DRAPlugin',
          name: DRIVER,
          supportedVersions: ['v1.DRAPlugin'],
        })),
        handleUnary(Registration.notifyRegistrationStatus, ({ pluginRegistered }) => {
          told.push(pluginRegistered)
          return {}
        }),
        handleUnary(methods.nodePrepareResources, ({ claims }) => {
          asked.push(...claims.map(({ name }) => `prepare ${name}`))
          return { claims: new Map(claims.map(prepared)) }
        }),
        handleUnary(methods.nodeUnprepareResources, ({ claims }) => {
          asked.push(...claims.map(({ name }) => `unprepare ${name}`))
          return { claims: new Map(claims.map(({ uid }) => [uid, {}])) }
        }),
      ],
    })
    t.after(() => server.stop(0))
    const requests = [{ name: 'gpu', exactly: { deviceClassName: 'gpus' } }]
    const claim = await admin.create(ResourceClaims, {
      metadata: { namespace: 'default', name: 'claim' },
      spec: { devices: { requests } },
    })
    const pod = await admin.create(Pods, {
      metadata: { namespace: 'default', name: 'p' },
      spec: {
        nodeName: 'node1',
        resourceClaims: [{ name: 'own', resourceClaimName: 'claim' }],
        containers: [{ name: 'c', image: 'x', resources: { claims: [{ name: 'own' }] } }],
      },
    })
    await assert.rejects(
      plugins.containerManager.prepare(pod),
      /prepare dynamic resources: pod p \(.*\) is not allowed to use ResourceClaim/,
    )
    const results = [{ request: 'gpu', driver: DRIVER, pool: 'node1', device: 'dev-0' }]
    const status = {
      allocation: { devices: { results } },
      reservedFor: [{ resource: 'pods', name: 'p', uid: pod.metadata.uid ?? '' }],
    }
    await admin.update(ResourceClaims, { ...claim, status }, { subresource: 'status' })
    await assert.rejects(plugins.containerManager.prepare(pod), /DRA driver dra.example.com is not registered/)
    await server.listen({ path: join(root, 'plugins_registry/dra.sock') })
    await eventually(
      () => told,
      (all) => all.includes(true),
    )
    await plugins.containerManager.prepare(pod)
    await plugins.containerManager.prepare(pod)
    assert.deepEqual(asked, ['prepare claim'])
    const inUse = (): string[] => bed.meters.registry.render().match(/(?<=^dra_resource_claims_in_use.).*/gm) ?? []
    assert.deepEqual(inUse(), ['driver_name="<any>"} 1', `driver_name="${DRIVER}"} 1`])
    assert.deepEqual((await plugins.containerManager.getResources(pod, containerOf(pod))).cdiDevices, ['x/dra=0'])
    bed.pods.push(pod)
    const { podResources } = await bed.clientOf('pod-resources/kubelet.sock').unary(PodResourcesLister.list, {})
    assert.equal(podResources[0]?.containers[0]?.dynamicResources[0]?.claimResources[0]?.deviceName, 'dev-0')
    const again = await bed.restart()
    assert.deepEqual([...again.containerManager.uids()], [pod.metadata.uid])
    await eventually(
      () => told.length,
      (count) => count === 2,
    )
    await again.containerManager.release(pod.metadata.uid ?? '')
    assert.deepEqual(asked, ['prepare claim', 'unprepare claim'])
    assert.deepEqual([...again.containerManager.uids()], [])
    assert.deepEqual(inUse(), ['driver_name="<any>"} 0'])
  })
})
