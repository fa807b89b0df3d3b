/** Tests CSI drivers from registration to the last unmount, with a real API server and a node's permissions. */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, readlink, rm, stat, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import {
  type Node,
  Nodes,
  PersistentVolumeClaims,
  PersistentVolumes,
  type Pod,
  Pods,
  type PodSpec,
  Secrets,
  ServiceAccounts,
} from '#apis/core/v1.ts'
import { CSIDrivers, CSINodes, VolumeAttachments } from '#apis/storage/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { eventually } from '#kits/lib/eventually.ts'
import { statsSummary, type VolumeFsUse } from '#kubelet/machine/node-stats.ts'
import { createKubeletMeters } from '#kubelet/metrics/kubelet-families.ts'
import { type NodePlugins, openPlugins } from '#kubelet/node-plugins.ts'
import { createCsiNode } from '#kubelet/node/csi-node.ts'
import { createPodObjects } from '#kubelet/object-cache.ts'
import type { EventSpec } from '#kubelet/pod/events.ts'
import { createVolumeManager } from '#kubelet/volumes/create-volume-manager.ts'
import { attachmentName, uniqueName } from '#kubelet/volumes/csi/csi-names.ts'
import { CAPABILITY } from '#kubelet/volumes/csi/csi-node-service.ts'
import { createMounter } from '#kubelet/volumes/mounts/mounter.ts'
import type { MountResult, VolumeManager } from '#kubelet/volumes/volume-manager.ts'
import { registerVolumeMetrics } from '#kubelet/volumes/volume-metrics.ts'
import { realClock } from '#lib/clock.ts'
import { mountsBelow } from '#lib/files/mount-table.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import { createLog } from '#lib/log/log.ts'
import { formatFloat } from '#lib/metrics/text.ts'
import { secureRandom } from '#lib/random.ts'
import { startControlPlane } from '#testing/control-plane.ts'

import { type CsiDriver, type CsiDriverOptions, startCsiDriver } from './csi-driver.ts'

const DRIVER = 'test.csi.example.com'

interface Bed extends AsyncDisposable {
  readonly root: string
  readonly admin: ApiClient
  readonly events: EventSpec[]
  /** A new instance as after a restart; the previous one is stopped. */
  restart(): Promise<VolumeManager>
  startDriver(options?: Partial<CsiDriverOptions>): Promise<CsiDriver>
  makePod(spec: Partial<PodSpec>): Promise<Pod>
  mounts(): Promise<string[]>
}

async function startBed(): Promise<Bed> {
  const closing = new AsyncDisposableStack()
  const plane = closing.use(await startControlPlane())
  const root = await mkdtemp(join(tmpdir(), 'csi-'))
  const mounter = createMounter()
  closing.defer(async () => {
    for (const { path } of mountsBelow(await mounter.list(), root)) await mounter.unmount(path)
    await rm(root, { recursive: true })
  })
  const clientAs = (name: string, ...groups: string[]): ApiClient => {
    const user = { name, uid: '', groups: [...groups, 'system:authenticated'], extra: {} }
    return new ApiClient({ transport: plane.running.server.clientAs(user), clock: realClock, userAgent: 'test' })
  }
  const admin = clientAs('admin', 'system:masters')
  await admin.create(ServiceAccounts, { metadata: { namespace: 'default', name: 'default' } }).catch(() => undefined)
  const client = clientAs('system:node:node1', 'system:nodes')
  const node = await admin.create(Nodes, { metadata: { name: 'node1' }, spec: {} })
  await createCsiNode(client, { apiVersion: 'v1', kind: 'Node', name: 'node1', uid: node.metadata.uid ?? '' })
  const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock: realClock })
  let made = 0
  let stop = new AbortController()
  closing.defer(() => stop.abort())
  const events: EventSpec[] = []
  let seen: Node = node
  const bed: Bed = {
    root,
    admin,
    events,
    async restart() {
      stop.abort()
      stop = new AbortController()
      const { signal } = stop
      const runtime = { updateContainerResources: async (): Promise<object> => ({}) }
      const facts = { rootDir: root, nodeName: 'node1', memoryBytes: 1 << 26 }
      const tools = { client, clock: realClock, random: secureRandom, log, facts, node: () => seen, runtime }
      /** Copies `volumesInUse` from the kubelet to the API server. */
      let plugins: NodePlugins | undefined
      const report = async (): Promise<void> => {
        if (plugins === undefined) return
        const value = { status: { volumesInUse: plugins.csi.inUse } }
        seen = await admin.patch(Nodes, { name: 'node1', subresource: 'status' }, { type: 'strategic', value })
      }
      const onChange = (): void => void setImmediate(() => void report())
      const recordEvent = (_: Pod, event: EventSpec): void => void events.push(event)
      plugins = await openPlugins({ ...tools, recordEvent, onChange, signal, meters: createKubeletMeters() })
      await report()
      await plugins.start(() => [])
      const objects = createPodObjects({ client, random: secureRandom, signal })
      return createVolumeManager({ ...tools, recordEvent, objects, mounter, csi: plugins.csi })
    },
    startDriver: async (options = {}) => {
      const capabilities = [CAPABILITY.stage, CAPABILITY.expand]
      const settings = { name: DRIVER, dir: join(root, 'backing'), capabilities, ...options }
      const driver = closing.use(await startCsiDriver({ registry: join(root, 'plugins_registry'), ...settings }))
      return driver
    },
    makePod: async ({ volumes = [], ...spec }) => {
      const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/m/${name}` }))
      return admin.create(Pods, {
        metadata: { namespace: 'default', name: `p${++made}` },
        spec: {
          nodeName: 'node1',
          automountServiceAccountToken: false,
          containers: [{ name: 'c', image: 'x', resources: {}, volumeMounts }],
          volumes,
          ...spec,
        },
      })
    },
    mounts: async () => mountsBelow(await mounter.list(), root).map(({ path }) => path.slice(root.length + 1)),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
  return bed
}

const { signal } = new AbortController()

function pathsIn(mounted: MountResult): Map<string, string> {
  assert.ok('mounts' in mounted, JSON.stringify(mounted))
  return new Map([...mounted.mounts].map(([name, { hostPath }]) => [name, hostPath]))
}

const registered = (driver: CsiDriver): Promise<unknown> =>
  eventually(
    () => driver.told,
    (told) => told.some(({ pluginRegistered }) => pluginRegistered),
  )

/** A claim of 1Gi, bound to a volume of the driver. */
async function makeClaim(admin: ApiClient, name: string, volumeMode = 'Filesystem'): Promise<void> {
  const claimed = await admin.create(PersistentVolumeClaims, {
    metadata: { namespace: 'default', name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      volumeName: `pv-${name}`,
      storageClassName: '',
      volumeMode,
    },
  })
  await admin.create(PersistentVolumes, {
    metadata: { name: `pv-${name}` },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      volumeMode,
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name, uid: claimed.metadata.uid ?? '' },
      csi: {
        driver: DRIVER,
        volumeHandle: `handle-${name}`,
        ...(volumeMode === 'Filesystem' && { fsType: 'ext4' }),
        volumeAttributes: { color: 'red' },
        nodeStageSecretRef: { namespace: 'default', name: 'keys' },
      },
    },
  })
  const value = { status: { phase: 'Bound', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] } }
  const place = { namespace: 'default', name, subresource: 'status' }
  await admin.patch(PersistentVolumeClaims, place, { type: 'merge', value })
}

async function attach(admin: ApiClient, name: string): Promise<void> {
  const attachment = attachmentName(`handle-${name}`, DRIVER, 'node1')
  const source = { persistentVolumeName: `pv-${name}` }
  await admin.create(VolumeAttachments, {
    metadata: { name: attachment },
    spec: { attacher: DRIVER, nodeName: 'node1', source },
  })
  const value = { status: { attached: true, attachmentMetadata: { device: '/dev/x' } } }
  await admin.patch(VolumeAttachments, { name: attachment, subresource: 'status' }, { type: 'merge', value })
  const volumesAttached = [{ name: uniqueName(DRIVER, `handle-${name}`), devicePath: '' }]
  const status = { status: { volumesAttached } }
  await admin.patch(Nodes, { name: 'node1', subresource: 'status' }, { type: 'strategic', value: status })
}

const makeKeys = (admin: ApiClient): Promise<unknown> =>
  admin.create(Secrets, { metadata: { namespace: 'default', name: 'keys' }, data: { k: 'aHVzaA==' } })

/** Lines of `/metrics`. */
function pageOf(keeper: VolumeManager, measured: readonly VolumeFsUse[]): string[] {
  const meters = createKubeletMeters()
  registerVolumeMetrics(meters, keeper, () => measured)
  return meters.registry.render().split('\n')
}

/** Usage of the first volume of a pod in `/stats/summary`. */
function summaryOf(pod: Pod, volumes: readonly VolumeFsUse[]): unknown {
  const all = { startedMs: 0, cpuNanoCores: 0, cpuNanoSeconds: 0, memoryBytes: 0 }
  const node = { name: 'node1', capacityBytes: 0, pods: [{ pod, containers: [], all, volumes }], all }
  const summary = statsSummary(node, 0) as { readonly pods: { readonly volume: unknown[] }[] }
  return summary.pods[0]?.volume[0]
}

describe('CSI volumes', { skip: process.getuid?.() === 0 ? false : 'only root may mount' }, () => {
  it('are listed on the node while their driver is registered', async () => {
    await using bed = await startBed()
    await bed.restart()
    const driver = await bed.startDriver({ maxVolumes: 7, topology: { 'example.com/zone': 'z1' } })
    await registered(driver)
    const drivers = async (): Promise<unknown> => (await bed.admin.get(CSINodes, { name: 'node1' })).spec.drivers
    assert.deepEqual(await drivers(), [
      { name: DRIVER, nodeID: `${DRIVER}-node`, topologyKeys: ['example.com/zone'], allocatable: { count: 7 } },
    ])
    const { labels, annotations } = (await bed.admin.get(Nodes, { name: 'node1' })).metadata
    assert.equal(labels?.['example.com/zone'], 'z1')
    assert.equal(annotations?.['csi.volume.kubernetes.io/nodeid'], JSON.stringify({ [DRIVER]: `${DRIVER}-node` }))
    await driver[Symbol.asyncDispose]()
    await eventually(drivers, (now) => now === null || (now as unknown[]).length === 0)
    const old = await bed.startDriver({ name: 'old.example.com', versions: ['0.3.0'] })
    await eventually(
      () => old.told,
      (told) => told.some(({ error }) => error.includes('None of the versions specified ["0.3.0"] are supported')),
    )
  })

  it('are staged once, published to each pod, and unpublished, also after a restart', async () => {
    await using bed = await startBed()
    const { admin, root } = bed
    await makeKeys(admin)
    await makeClaim(admin, 'a')
    const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'a' } }]
    const [one, two] = [
      await bed.makePod({ volumes, securityContext: { fsGroup: 2000 } }),
      await bed.makePod({ volumes }),
    ]
    const keeper = await bed.restart()
    const driver = await bed.startDriver()
    await registered(driver)
    const coming = keeper.mount(one, signal)
    await eventually(
      async () => (await admin.get(Nodes, { name: 'node1' })).status.volumesInUse ?? [],
      (inUse) => inUse.includes(uniqueName(DRIVER, 'handle-a')),
    )
    assert.deepEqual(driver.calls, [], 'it waits until somebody has attached the volume')
    await attach(admin, 'a')
    const restarted = await bed.restart()
    const path = pathsIn(await restarted.mount(one, signal)).get('v') ?? ''
    void coming.catch(() => undefined)
    const { uid = '' } = one.metadata
    assert.equal(path, `${root}/pods/${uid}/volumes/kubernetes.io~csi/pv-a/mount`)
    assert.equal((await stat(path)).gid, 2000)
    const [staged] = driver.staged
    assert.equal(staged?.secrets.get('k'), 'hush')
    assert.equal(staged?.publishContext.get('device'), '/dev/x')
    assert.deepEqual(staged?.volumeCapability?.mount, { fsType: 'ext4', mountFlags: [], volumeMountGroup: '' })
    const record = JSON.parse(await readFile(join(path, '../vol_data.json'), 'utf8')) as Record<string, string>
    assert.deepEqual(
      [record['driverName'], record['volumeHandle'], record['specVolID'], record['volumeLifecycleMode']],
      [DRIVER, 'handle-a', 'pv-a', 'Persistent'],
    )
    pathsIn(await restarted.mount(two, signal))
    await restarted.unmount(uid)
    assert.deepEqual(driver.calls, ['stage handle-a', 'publish handle-a', 'publish handle-a', 'unpublish handle-a'])
    const again = await bed.restart()
    await eventually(
      () => driver.told.filter(({ pluginRegistered }) => pluginRegistered).length,
      (count) => count === 3,
    )
    await again.unmount(two.metadata.uid ?? '')
    assert.deepEqual(driver.calls.slice(4), ['unpublish handle-a', 'unstage handle-a'])
    assert.deepEqual(await bed.mounts(), [])
    await eventually(
      async () => (await admin.get(Nodes, { name: 'node1' })).status.volumesInUse ?? [],
      (inUse) => inUse.length === 0,
    )
  })

  it('have usage and health from their driver', async () => {
    await using bed = await startBed()
    const { admin } = bed
    await makeKeys(admin)
    await makeClaim(admin, 'full')
    await attach(admin, 'full')
    const pod = await bed.makePod({ volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'full' } }] })
    const { uid = '' } = pod.metadata
    const keeper = await bed.restart()
    const driver = await bed.startDriver({ capabilities: [CAPABILITY.stage, CAPABILITY.stats, CAPABILITY.condition] })
    await registered(driver)
    const mounted = await eventually(
      () => keeper.mount(pod, signal),
      (found) => 'mounts' in found,
    )
    const { blocks, bsize, files } = await statfs(pathsIn(mounted).get('v') ?? '')
    const measure = async (): Promise<readonly VolumeFsUse[]> => (await keeper.measure?.(uid)) ?? []
    const measured = await measure()
    const claim = { namespace: 'default', name: 'full' }
    const sizes = { capacityBytes: blocks * bsize, inodes: files }
    assert.partialDeepStrictEqual(measured, [{ name: 'v', claim, isAbnormal: false, ...sizes }])
    assert.ok(measured.every(({ usedBytes, availableBytes }) => usedBytes > 0 && availableBytes > 0))
    driver.isIll = true
    const lines = pageOf(keeper, await measure())
    const labels = '{namespace="default",persistentvolumeclaim="full"}'
    assert.ok(lines.includes(`kubelet_volume_stats_capacity_bytes${labels} ${formatFloat(blocks * bsize)}`))
    assert.ok(lines.includes(`kubelet_volume_stats_health_status_abnormal${labels} 1`))
    assert.partialDeepStrictEqual(summaryOf(pod, measured), { name: 'v', pvcRef: claim, ...sizes })
    driver.faults.set('stats', new GrpcError('internal', 'no idea'))
    assert.deepEqual(await measure(), [], 'of whom nobody knows nothing is told')
    await keeper.unmount(uid)
  })

  it('inline in a pod get pod attributes, and are republished if the driver requires that', async () => {
    await using bed = await startBed()
    const { admin } = bed
    const keeper = await bed.restart()
    const driver = await bed.startDriver({ capabilities: [] })
    await registered(driver)
    const pod = await bed.makePod({
      volumes: [{ name: 'v', csi: { driver: DRIVER, volumeAttributes: { size: 's' } } }],
    })
    assert.deepEqual(await keeper.mount(pod, signal), {
      failures: [
        `MountVolume.SetUp failed for volume "v" : kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: volume mode "Ephemeral" not supported by driver ${DRIVER} (no CSIDriver object)`,
      ],
    })
    await admin.create(CSIDrivers, {
      metadata: { name: DRIVER },
      spec: {
        attachRequired: false,
        podInfoOnMount: true,
        requiresRepublish: true,
        volumeLifecycleModes: ['Ephemeral'],
        tokenRequests: [{ audience: 'vault', expirationSeconds: 3600 }],
      },
    })
    await eventually(
      () => keeper.mount(pod, signal),
      (mounted) => 'mounts' in mounted,
    )
    const { volumeContext = new Map<string, string>(), volumeId } = driver.published[0] ?? {}
    assert.match(volumeId ?? '', /^csi-[0-9a-f]{64}$/)
    assert.equal(volumeContext.get('size'), 's')
    assert.equal(volumeContext.get('csi.storage.k8s.io/pod.name'), pod.metadata.name)
    assert.equal(volumeContext.get('csi.storage.k8s.io/ephemeral'), 'true')
    const tokens = JSON.parse(volumeContext.get('csi.storage.k8s.io/serviceAccount.tokens') ?? '{}') as object
    assert.deepEqual(Object.keys(tokens), ['vault'])
    const before = driver.published.length
    await keeper.mount(pod, signal)
    assert.equal(driver.published.length, before + 1)
    driver.faults.set('publish', new GrpcError('internal', 'out of ink'))
    assert.deepEqual(await keeper.mount(pod, signal), {
      failures: ['MountVolume.SetUp failed for volume "v" : rpc error: code = Internal desc = out of ink'],
    })
    assert.equal((await bed.mounts()).length, 1, 'what the pod looks at stays')
    await keeper.unmount(pod.metadata.uid ?? '')
    assert.deepEqual(await bed.mounts(), [])
  })

  it('are expanded on the node if the PersistentVolume has grown', async () => {
    await using bed = await startBed()
    const { admin } = bed
    await makeKeys(admin)
    await admin.create(CSIDrivers, { metadata: { name: DRIVER }, spec: { attachRequired: false } })
    await makeClaim(admin, 'a')
    const keeper = await bed.restart()
    const driver = await bed.startDriver()
    await registered(driver)
    const pod = await bed.makePod({ volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'a' } }] })
    await eventually(
      () => keeper.mount(pod, AbortSignal.timeout(100)),
      (mounted) => 'mounts' in mounted,
    )
    assert.equal(driver.expanded.length, 0)
    const value = { spec: { capacity: { storage: '2Gi' } } }
    await admin.patch(PersistentVolumes, { name: 'pv-a' }, { type: 'merge', value })
    pathsIn(await keeper.mount(pod, signal))
    assert.equal(Number(driver.expanded[0]?.capacityRange?.requiredBytes), 2 * 2 ** 30)
    const { status } = await admin.get(PersistentVolumeClaims, { namespace: 'default', name: 'a' })
    assert.equal(status.capacity?.['storage'], '2Gi')
    assert.deepEqual(
      bed.events.map(({ reason }) => reason),
      ['FileSystemResizeSuccessful'],
    )
    pathsIn(await keeper.mount(pod, signal))
    assert.equal(driver.expanded.length, 1)
    await keeper.unmount(pod.metadata.uid ?? '')
  })

  it('are passed as block devices to pods that request that', async () => {
    await using bed = await startBed()
    const { admin, root } = bed
    await makeKeys(admin)
    await admin.create(CSIDrivers, { metadata: { name: DRIVER }, spec: { attachRequired: false } })
    await makeClaim(admin, 'a', 'Block')
    const keeper = await bed.restart()
    const driver = await bed.startDriver()
    await registered(driver)
    const pod = await bed.makePod({
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'a' } }],
      containers: [{ name: 'c', image: 'x', resources: {}, volumeDevices: [{ name: 'v', devicePath: '/dev/xvda' }] }],
    })
    const mounted = await eventually(
      () => keeper.mount(pod, AbortSignal.timeout(100)),
      (now) => 'mounts' in now,
    )
    const { uid = '' } = pod.metadata
    const link = `${root}/pods/${uid}/volumeDevices/kubernetes.io~csi/pv-a`
    const volume = 'mounts' in mounted ? mounted.mounts.get('v') : undefined
    const expected = { hostPath: link, isDevice: true, readOnly: false, isContent: true }
    assert.partialDeepStrictEqual(volume, expected)
    const devices = `${root}/plugins/kubernetes.io/csi/volumeDevices`
    assert.equal(await readlink(link), `${devices}/publish/pv-a/${uid}`)
    assert.deepEqual(driver.published[0]?.volumeCapability?.block, {})
    await keeper.unmount(uid)
    assert.deepEqual(driver.calls, ['stage handle-a', 'publish handle-a', 'unpublish handle-a', 'unstage handle-a'])
    assert.deepEqual(await readdir(devices), ['publish', 'staging'])
    assert.deepEqual(await readdir(join(devices, 'staging')), [])
  })
})
