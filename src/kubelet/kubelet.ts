/**
 * A kubelet: registers one node, runs its pods on a container runtime and serves the kubelet API. It acts as
 * `system:node:<name>`.
 */
import { uptime } from 'node:os'
import { join } from 'node:path'

import type { Node, Pod } from '#apis/core/v1.ts'
import type { Image } from '#apis/wire/cri.ts'
import { ApiClient } from '#client/api-client.ts'
import { EventRecorder } from '#client/events/event-recorder.ts'
import { timedTransport } from '#client/timed-transport.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { createRegistry, type Registry } from '#lib/metrics/metrics.ts'
import { readProcess, registerProcessMetrics } from '#lib/metrics/process.ts'
import { userAgent } from '#model/version.ts'

import { NO_CGROUPS_AT_ALL, sharingCgroups } from './cgroups/node-cgroups.ts'
import { countCgroups } from './cgroups/pod-cgroups.ts'
import { STUB_CONTAINER_MANAGER } from './container-manager/container-manager.ts'
import { VERIFICATION } from './credentials/pull-policy.ts'
import { PullRecords } from './credentials/pull-records.ts'
import { startEviction } from './eviction/node-eviction.ts'
import type { KubeletOptions, NodeSettings } from './kubelet-options.ts'
import { createKubeletMeters, type KubeletMeters } from './metrics/kubelet-families.ts'
import { NodeStartup } from './metrics/node-startup.ts'
import { ProbeCounts } from './metrics/probe-counts.ts'
import { countOperations } from './metrics/runtime-operations.ts'
import { type NodePlugins, openPlugins } from './node-plugins.ts'
import { openNodePort } from './node-port.ts'
import { nodeFacts } from './node/node-facts.ts'
import { NodeHealth } from './node/node-health.ts'
import { NodeRegistration } from './node/node-registration.ts'
import { NodeState } from './node/node-state.ts'
import { NodeStatusLoop, type NodeStatusLoopOptions } from './node/node-status-loop.ts'
import { createPodObjects, type PodObjects } from './object-cache.ts'
import { openProviders } from './open-providers.ts'
import { startPodSources } from './pod-sources.ts'
import { CGROUP_V1 } from './pod/events.ts'
import type { PodFacts } from './pod/pod-of-node.ts'
import { openAllocations } from './pods/allocations.ts'
import { PodRegistry } from './pods/pod-registry.ts'
import { PodWorkers } from './pods/pod-workers.ts'
import { nodeEvents, podEvents, type RecordNodeEvent, type RecordPodEvent } from './pods/record-events.ts'
import { LOG_POLICY, startLogRotation } from './runtime/log-rotation.ts'
import { ShutdownManager } from './shutdown/shutdown-manager.ts'
import { type SourceOptions, startSources } from './static-pods/sources.ts'
import { StaticPods } from './static-pods/static-pods.ts'
import { createVolumeManager } from './volumes/create-volume-manager.ts'
import type { VolumeManager } from './volumes/volume-manager.ts'

/** Fraction of the lease duration after which the lease is renewed. */
const RENEWED_SHARE = 0.25

interface MeteredOptions extends KubeletOptions {
  readonly meters: KubeletMeters
  readonly probes: ProbeCounts
}

/** The services that most parts of the kubelet share. */
interface NodeContext extends Pick<MeteredOptions, 'clock' | 'random' | 'log' | 'runtime' | 'meters' | 'probes'> {
  readonly state: NodeState
  readonly client: ApiClient
  readonly recorder: EventRecorder
  readonly recordEvent: RecordPodEvent
  readonly recordNodeEvent: RecordNodeEvent
  readonly facts: PodFacts
  readonly objects: PodObjects
  /** From the API server; undefined until it was read. */
  readonly node: () => Node | undefined
  readonly signal: AbortSignal
}

/**
 * Resolves when the node is registered. Containers keep running when the kubelet stops; the next kubelet finds them.
 */
export async function startKubelet(given: KubeletOptions, closing: AsyncDisposableStack): Promise<{ port: number }> {
  const options = withMeters(given)
  const { clock, runtime, log, meters } = options
  const startup = new NodeStartup(meters, clock, clock.now() - uptime() * 1000)
  const stop = new AbortController()
  const { signal } = stop
  const context = createContext(options, signal)
  const { client, recordNodeEvent, state } = context
  const plugins = options.volumes === undefined ? await openNodePlugins(options, context) : undefined
  const volumes = options.volumes ?? createVolumeManager({ ...context, csi: plugins?.csi })
  const workers = await createWorkers(options, context, { plugins, volumes })
  const { registry } = workers
  const onError = (error: unknown): void => log.error(error, 'Failed to sync mirror pod')
  const statics = new StaticPods({ ...context, workers, onError })
  startPodEviction(options, context, workers)
  const end = async (): Promise<void> => {
    stop.abort()
    await workers.stop()
  }
  const shutdown = openShutdown(options, context, workers)
  const port = await openNodePort({ ...options, client, workers, volumeManager: volumes }, closing).catch(
    async (error: unknown) => {
      await end()
      throw error
    },
  )
  closing.defer(end)
  const health = new NodeHealth({ ...context, relists: workers, runtimeTimeoutMs: options.node?.runtimeTimeoutMs })
  const registration = createRegistration(options, context, { health, plugins, port, startup })
  const loop = createStatusLoop(options, { ...context, health, registration })
  const active = (): Pod[] => podsOf(registry)
  await options.cgroups?.node.start({ pods: active, recordEvent: recordNodeEvent, signal })
  await startStatics(options, context, { statics, closing })
  await loop.start()
  await plugins?.start(() => registry.pods())
  startLogRotation({ clock, runtime, log, pods: () => registry.pods(), policy: options.logs ?? LOG_POLICY }, signal)
  startPodSources({ ...context, name: options.name, nodeState: state, workers, statics })
  void shutdown?.run()
  return { port }
}

function withMeters(given: KubeletOptions): MeteredOptions {
  const { clock } = given
  const meters = createKubeletMeters(given.registry ?? ownRegistry(given))
  const probes = new ProbeCounts(createRegistry(), clock.now() - process.uptime() * 1000)
  return { ...given, meters, probes, runtime: countOperations(given.runtime, meters, clock) }
}

function ownRegistry({ clock }: KubeletOptions): Registry {
  const registry = createRegistry()
  registerProcessMetrics(registry, readProcess(clock))
  return registry
}

function createContext(options: MeteredOptions, signal: AbortSignal): NodeContext {
  const { name, clock, random, log, runtime, machine, meters, probes, node: settings = {} } = options
  const { addresses, memoryBytes, limitsSwap: forbidsSwap } = machine
  const state = new NodeState()
  const client = createClient(options, settings.limits)
  const recorder = createRecorder(options, settings.eventLimits, signal)
  return {
    clock,
    random,
    log,
    runtime,
    meters,
    probes,
    signal,
    state,
    client,
    recorder,
    recordEvent: podEvents(recorder),
    recordNodeEvent: nodeEvents(recorder, name),
    facts: { ...options.pods, nodeName: name, addresses, memoryBytes, forbidsSwap },
    objects: createPodObjects({ client, random, signal }),
    node: () => state.node,
  }
}

type Connection = Pick<KubeletOptions, 'name' | 'connect' | 'clock' | 'log'>

function createClient({ connect, clock }: Connection, limits: NodeSettings['limits']): ApiClient {
  return new ApiClient({ ...connect, clock, userAgent: userAgent('kubelet'), ...(limits !== undefined && { limits }) })
}

/** Events have their own client, so that many events never delay other requests. */
function createRecorder(options: Connection, limits: NodeSettings['limits'], signal: AbortSignal): EventRecorder {
  const { name, log } = options
  const onError = (error: unknown): void => {
    if (!signal.aborted) log.error(error, 'Failed to record event')
  }
  const source = { component: 'kubelet', host: name }
  return new EventRecorder({ client: createClient(options, limits), source, onError })
}

/**
 * Heartbeats have their own client and time out after min(interval, lease), so a hung request cannot make the node
 * NotReady.
 */
function createHeartbeatClient({ connect, clock, node: settings = {} }: MeteredOptions): ApiClient {
  const { statusUpdateMs = BEAT_MS, leaseSeconds = LEASE_SECONDS } = settings
  const transport = timedTransport(connect.transport, Math.min(statusUpdateMs, leaseSeconds * 1000))
  return new ApiClient({ ...connect, transport, clock, userAgent: userAgent('kubelet') })
}

const BEAT_MS = 10_000
const LEASE_SECONDS = 40

function openNodePlugins(options: MeteredOptions, context: NodeContext): Promise<NodePlugins> {
  const { machine, topology, node: { reserved = {} } = {} } = options
  const onChange = (): void => context.state.reportNow()
  return openPlugins({ ...context, topology, capacity: machine.capacity, reserved, onChange })
}

interface VolumeParts {
  /** Undefined when the caller supplies the volumes. */
  readonly plugins: NodePlugins | undefined
  readonly volumes: VolumeManager
}

async function createWorkers(
  options: MeteredOptions,
  context: NodeContext,
  { plugins, volumes }: VolumeParts,
): Promise<PodWorkers> {
  const { cgroups = NO_CGROUPS_AT_ALL, garbage, pulls } = options
  const { facts, client, clock, log, state, meters } = context
  const allocations = await openAllocations({ path: join(facts.rootDir, 'allocated_pods_state'), clock, log })
  const registry = new PodRegistry(facts.podLogsDir)
  return new PodWorkers({
    ...context,
    registry,
    allocations,
    volumes,
    containerManager: plugins?.containerManager ?? STUB_CONTAINER_MANAGER,
    cgroups: countCgroups(
      sharingCgroups(cgroups, () => podsOf(registry), log),
      meters,
      clock,
    ),
    services: () => [...state.services.values()],
    traits: () => ({ ...options.traits, ...state.traits }),
    runtimeTimeoutMs: options.node?.runtimeTimeoutMs,
    garbage,
    pulls,
    providers: openProviders({ ...options, client }),
    records: await openRecords(options),
  })
}

/** Pods whose containers have not all ended for good. */
const podsOf = (registry: PodRegistry): Pod[] => Array.from(registry.activePods(), ({ pod }) => pod)

async function openRecords(options: MeteredOptions): Promise<PullRecords | undefined> {
  const { verification = VERIFICATION, clock, log, meters, runtime, pods } = options
  if (verification === 'off') return undefined
  const folder = join(pods.rootDir, 'image_manager')
  const images = async (): Promise<readonly Image[]> => (await runtime.listImages({})).images
  return PullRecords.open({ folder, verification, clock, log, meters }, images)
}

function startPodEviction(
  { eviction: settings = {} }: MeteredOptions,
  context: NodeContext,
  workers: PodWorkers,
): void {
  const { recordNodeEvent: recordEvent, state } = context
  const onPressures = (pressures: readonly string[]): void => void (state.pressures = pressures)
  startEviction({ ...context, settings, recordEvent, workers, onPressures })
}

/** Undefined when graceful node shutdown is off. */
function openShutdown(
  { shutdown }: MeteredOptions,
  context: NodeContext,
  workers: PodWorkers,
): ShutdownManager | undefined {
  const { meters, state, recordNodeEvent, facts } = context
  if (shutdown === undefined || shutdown.periods.length === 0) return undefined
  return new ShutdownManager({
    ...context,
    ...shutdown,
    registry: meters.registry,
    save: (text) => writeFileAtomically(join(facts.rootDir, 'graceful_node_shutdown_state'), text, { mode: 0o644 }),
    pods: () => podsOf(workers.registry),
    end: (pod, graceSeconds) => workers.shutDown(pod, graceSeconds),
    changed: (isShuttingDown) => {
      state.isShuttingDown = isShuttingDown
      if (isShuttingDown) state.reportNow()
    },
    recordEvent: recordNodeEvent,
  })
}

interface RegistrationParts {
  readonly health: NodeHealth
  readonly plugins: NodePlugins | undefined
  readonly port: number
  readonly startup: NodeStartup
}

function createRegistration(
  options: MeteredOptions,
  { recordNodeEvent }: NodeContext,
  { health, plugins, port, startup }: RegistrationParts,
): NodeRegistration {
  const { name, taints, machine, node = {} } = options
  return new NodeRegistration({
    client: createHeartbeatClient(options),
    name,
    facts: () => {
      const { view, unhealthy } = health
      const brought = plugins === undefined ? {} : { volumesInUse: plugins.csi.inUse, devices: plugins.amounts }
      return nodeFacts({ ...options, view, port, unhealthy, ...brought })
    },
    ...node,
    ...(taints !== undefined && { taints }),
    warnings: machine.cgroupVersion === 1 ? [CGROUP_V1] : [],
    recordEvent: recordNodeEvent,
    startup,
  })
}

function createStatusLoop(
  { node = {} }: MeteredOptions,
  parts: Omit<NodeStatusLoopOptions, 'registers' | 'statusUpdateMs' | 'renewMs'>,
): NodeStatusLoop {
  const { leaseSeconds } = node
  const renewMs = leaseSeconds === undefined ? undefined : leaseSeconds * RENEWED_SHARE * 1000
  return new NodeStatusLoop({ ...parts, ...node, renewMs })
}

/** Static pods run with or without an API server. */
async function startStatics(
  { name: nodeName, staticPods }: MeteredOptions,
  context: NodeContext,
  { statics, closing }: { readonly statics: StaticPods; readonly closing: AsyncDisposableStack },
): Promise<void> {
  if (staticPods === undefined) return
  const http = createHttpClient({ clock: context.clock, http1Only: true })
  closing.defer(() => http.close())
  const found: SourceOptions['found'] = (kind, pods) => statics.found(kind, pods)
  await startSources(staticPods, http, { ...context, nodeName, isEnabled: staticPods.isEnabled, found })
}
