/** Creates the plugin managers of a node (CSI volumes, devices, DRA, CPU and memory) and connects them. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'

import { type Node, PersistentVolumeClaims, type Pod, Secrets } from '#apis/core/v1.ts'
import { type CSIDriver, CSIDrivers, VolumeAttachments } from '#apis/storage/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/reflector.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import { isTerminalPhase } from '#model/pods.ts'

import type { ContainerManager } from './container-manager/container-manager.ts'
import { NodeContainerManager } from './container-manager/node-container-manager.ts'
import { servePodResources } from './container-manager/pod-resources.ts'
import { DeviceManager } from './devices/device-manager.ts'
import type { DeviceAmounts } from './devices/device-plugins.ts'
import { ClaimManager } from './dra/claim-manager.ts'
import { PluginWatcher } from './plugins/plugin-watcher.ts'
import type { EventSpec } from './pod/events.ts'
import type { PodFacts, PodOfNode } from './pod/pod-of-node.ts'
import { startCpuReconciler } from './topology/cpu-reconciler.ts'
import { openTopology, type TopologyOptions } from './topology/open-topology.ts'
import { NO_TOPOLOGY } from './topology/topology-settings.ts'
import { CsiDrivers } from './volumes/csi/csi-drivers.ts'
import { grownClaim } from './volumes/csi/csi-growth.ts'
import type { CsiSources } from './volumes/csi/csi-sources.ts'
import { CsiVolumes } from './volumes/csi/csi-volumes.ts'
import { NodeDrivers } from './volumes/csi/node-drivers.ts'
import { PodTokens } from './volumes/pod-tokens.ts'

export interface NodePluginsOptions extends TopologyOptions {
  /** As `system:node:<name>`. */
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
  readonly facts: Pick<PodFacts, 'rootDir' | 'nodeName'>
  /** From the API server; undefined until it was read. */
  readonly node: () => Node | undefined
  readonly recordEvent: (pod: Pod, event: EventSpec) => void
  readonly runtime: Pick<Runtime, 'updateContainerResources'>
  /** Called when something in the Node status has changed. */
  readonly onChange: () => void
  readonly signal: AbortSignal
}

export interface NodePlugins {
  readonly csi: CsiVolumes
  readonly containerManager: ContainerManager
  /** Amounts of plugin devices. */
  readonly amounts: DeviceAmounts
  /**
   * Call after the node is registered. `pods` are those that have not ended. Resolves when existing plugins are
   * registered.
   */
  start(pods: () => Iterable<PodOfNode>): Promise<void>
}

export async function openPlugins(options: NodePluginsOptions): Promise<NodePlugins> {
  const { client, clock, random, log, facts, recordEvent, onChange, signal, meters } = options
  const { rootDir, nodeName } = facts
  const objects = followDrivers(options)
  const nodeDrivers = new NodeDrivers({ client, random, nodeName })
  const ofDrivers = { clock, random, log, nodeDrivers, signal, meters }
  const drivers = new CsiDrivers({ ...ofDrivers, object: (name) => objects.get(name) })
  const sources = csiSources(options, objects)
  const csi = new CsiVolumes({ rootDir, nodeName, drivers, sources, clock, log, recordEvent, onInUse: onChange })
  await clock.during(csi.start())
  const tools = { clock, random, log, signal, meters }
  const devices = new DeviceManager({ ...tools, dir: join(rootDir, 'device-plugins'), onChange })
  const claims = new ClaimManager({ ...tools, path: join(rootDir, 'dra_manager_state'), nodeName, client })
  const { topology = NO_TOPOLOGY, runtime } = options
  await mkdir(rootDir, { recursive: true, mode: 0o750 })
  const { cpus, memory, nodes } = await openTopology(options)
  await clock.during(Promise.all([claims.start(), devices.start()]))
  const { topologyPolicy: policy, scope, keepsCpuQuota } = topology
  const placed = { policy, scope, nodes, keepsCpuQuota }
  const handlers = { CSIPlugin: drivers, DevicePlugin: devices.handler, DRAPlugin: claims }
  const watcher = new PluginWatcher({ dir: join(rootDir, 'plugins_registry'), handlers, clock, random, log, signal })
  return {
    csi,
    containerManager: new NodeContainerManager({ devices, claims, cpus, memory, ...placed, clock, meters }),
    get amounts() {
      return devices.amounts
    },
    start: async (pods) => {
      await mkdir(join(rootDir, 'plugins'), { recursive: true, mode: 0o750 })
      await watcher.start()
      const path = join(rootDir, 'pod-resources', 'kubelet.sock')
      await servePodResources({ path, clock, devices, claims, cpus, memory, pods: () => activePods(pods()), signal })
      startCpuReconciler({ cpus, runtime, pods, clock, log, periodMs: topology.reconcileMs, signal })
    },
  }
}

/** Pods that have not ended. */
function* activePods(pods: Iterable<PodOfNode>): Iterable<Pod> {
  for (const { pod } of pods) if (!isTerminalPhase(pod.status.phase)) yield pod
}

/** CSIDrivers by name, from the API server. */
function followDrivers({ client, random, log, signal }: NodePluginsOptions): ReadonlyMap<string, CSIDriver> {
  const objects = new Map<string, CSIDriver>()
  const nameOf = ({ metadata }: CSIDriver): string => metadata.name ?? ''
  void follow(
    { client, kind: CSIDrivers, random, signal },
    {
      replace(all) {
        objects.clear()
        for (const object of all) objects.set(nameOf(object), object)
      },
      change({ type, object }) {
        if (type === 'DELETED') objects.delete(nameOf(object))
        else objects.set(nameOf(object), object)
      },
      failed: (error) => log.error(error, 'Failed to watch CSIDrivers'),
    },
  )
  return objects
}

function csiSources(options: NodePluginsOptions, objects: ReadonlyMap<string, CSIDriver>): CsiSources {
  const { client, random, log, node } = options
  const onError = (error: unknown): void => log.error(error, "Couldn't update token")
  const tokens = new PodTokens({ client, random, onError })
  return {
    node,
    driver: (name) => objects.get(name),
    attachment: (name) => client.get(VolumeAttachments, { name }),
    secret: async (ref) => {
      const { data = {} } = await client.get(Secrets, ref)
      return new Map(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]))
    },
    token: (ask) => tokens.status(ask),
    forget: (uid) => tokens.forget(uid),
    grown: async ({ claim, persistent }) => {
      const { namespace = '', name = '' } = claim?.metadata ?? {}
      const size = persistent?.spec.capacity?.['storage'] ?? ''
      if (claim === undefined) return
      const place = { namespace, name, subresource: 'status' }
      await client.patch(PersistentVolumeClaims, place, { type: 'merge', value: grownClaim(claim, size) })
    },
  }
}
