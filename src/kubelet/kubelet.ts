/**
 * A kubelet: one node, its pods on a container runtime, and the port on which it is asked about them. Everything it does it
 * does as `system:node:<name>`.
 */
import { uptime } from 'node:os'
import { join } from 'node:path'

import type { Pod } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { EventRecorder } from '#client/event-recorder.ts'
import { timedTransport } from '#client/timed-transport.ts'
import { writeFileAtomically } from '#lib/atomic-file.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { readProcess, registerProcessMetrics } from '#lib/metrics-process.ts'
import { createRegistry, type Registry } from '#lib/metrics.ts'
import type { ObjectEvent } from '#meta/watch.ts'
import { userAgent } from '#model/version.ts'

import type { NodeTraits } from './admission-rules.ts'
import { NO_CGROUPS_AT_ALL, sharingCgroups } from './cgroups/node-cgroups.ts'
import { countCgroups } from './cgroups/pod-cgroups.ts'
import { openProviders } from './credentials/open-providers.ts'
import { VERIFICATION } from './credentials/pull-policy.ts'
import { PullRecords } from './credentials/pull-records.ts'
import type { Image } from './cri/runtime-messages.ts'
import { startEviction } from './eviction/node-eviction.ts'
import { NO_GRANTS } from './grants/container-grant.ts'
import { CGROUP_V1, type Note } from './kubelet-notes.ts'
import type { KubeletOptions, NodeSettings } from './kubelet-options.ts'
import { LOG_POLICY, startLogRotation } from './log-rotation.ts'
import { createKubeletMeters, type KubeletMeters } from './metrics/kubelet-families.ts'
import { NodeStartup } from './metrics/node-startup.ts'
import { ProbeCounts } from './metrics/probe-counts.ts'
import { countOperations } from './metrics/runtime-operations.ts'
import { nodeFacts } from './node-facts.ts'
import { NodeKeeper } from './node-keeper.ts'
import { followAll, type Known, nothingKnown, traitsKnown } from './node-news.ts'
import { type NodePlugins, openPlugins } from './node-plugins.ts'
import { openNodePort } from './node-port.ts'
import { NodeRegistration } from './node-registration.ts'
import { pressureIlls } from './node-status.ts'
import { createPodObjects } from './object-cache.ts'
import { openAllocations } from './pods/allocations.ts'
import { PodWorkers } from './pods/pod-workers.ts'
import { ShutdownManager } from './shutdown/shutdown-manager.ts'
import { type SourceOptions, startSources } from './static-pods/sources.ts'
import { StaticPods } from './static-pods/static-pods.ts'
import type { VolumeKeeper } from './volumes/volume-keeper.ts'
import { volumesOnDisk } from './volumes/volumes-on-disk.ts'

/** A lease is renewed when so much of it has passed. */
const RENEWED_SHARE = 0.25

interface Parts {
  readonly client: ApiClient
  readonly recorder: EventRecorder
  readonly workers: PodWorkers
  /** Whose containers have not ended for good. */
  readonly active: () => Pod[]
  readonly statics: StaticPods
  readonly known: Known
  /** None where volumes are nowhere. */
  readonly plugins: NodePlugins | undefined
  readonly volumes: VolumeKeeper
  readonly signal: AbortSignal
  /** Told about the node. */
  readonly noteNode: (said: Note) => void
}

interface Counted extends KubeletOptions {
  readonly meters: KubeletMeters
  readonly probes: ProbeCounts
}

/** Resolves when the node is registered. Containers go on when it ends, and are found again by the next. */
export async function startKubelet(given: KubeletOptions, closing: AsyncDisposableStack): Promise<{ port: number }> {
  const options = countedOf(given)
  const { name, clock, random, log, runtime, machine, taints, node = {}, meters } = options
  const startup = new NodeStartup(meters, clock, clock.now() - uptime() * 1000)
  const stop = new AbortController()
  const parts = await createParts(options, stop.signal)
  const { client, workers, plugins, signal, volumes, active } = parts
  const end = async (): Promise<void> => {
    stop.abort()
    await workers.stop()
  }
  const shutdown = openShutdown(options, parts)
  const port = await openNodePort({ ...options, client, workers, keeper: volumes }, closing).catch(
    async (error: unknown) => {
      await end()
      throw error
    },
  )
  closing.defer(end)
  const registration = new NodeRegistration({
    client: openHeartbeat(options),
    name,
    facts: () => {
      const ills = [...keeper.ills, ...pressureIlls(parts.known.pressures())]
      const brought = plugins === undefined ? {} : { volumesInUse: plugins.csi.inUse, devices: plugins.amounts }
      return nodeFacts({ ...options, view: keeper.view, port, ills, ...brought })
    },
    ...node,
    ...(taints !== undefined && { taints }),
    warnings: machine.cgroupVersion === 1 ? [CGROUP_V1] : [],
    say: parts.noteNode,
    startup,
  })
  const { leaseSeconds } = node
  const renewMs = leaseSeconds === undefined ? {} : { renewMs: leaseSeconds * RENEWED_SHARE * 1000 }
  const listedMs = (): number | undefined => workers.listedMs
  const fault = (): string | undefined => (shutdown?.isShuttingDown === true ? 'node is shutting down' : undefined)
  const around = { runtime, clock, random, log, signal, listedMs, fault }
  const keeper: NodeKeeper = new NodeKeeper({ registration, ...around, ...node, ...renewMs })
  parts.known.hurry = () => keeper.hurry()
  await options.cgroups?.node.start({ pods: active, note: parts.noteNode, signal })
  await startStatics(options, parts, closing)
  await keeper.start()
  await plugins?.start(() => workers.pods())
  startLogRotation({ clock, runtime, log, pods: () => workers.pods(), policy: options.logs ?? LOG_POLICY }, signal)
  followAll({ ...options, ...parts })
  void shutdown?.run()
  return { port }
}

function countedOf(given: KubeletOptions): Counted {
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

/** Undefined when nobody is to be told. */
function openShutdown(
  { shutdown, clock, log, meters: { registry }, pods: { rootDir } }: Counted,
  { workers, active, known, signal, noteNode }: Parts,
): ShutdownManager | undefined {
  if (shutdown === undefined || shutdown.periods.length === 0) return undefined
  const manager = new ShutdownManager({
    ...shutdown,
    clock,
    log,
    signal,
    registry,
    save: (state) => writeFileAtomically(join(rootDir, 'graceful_node_shutdown_state'), state, { mode: 0o644 }),
    pods: active,
    end: (pod, graceSeconds) => workers.shutDown(pod, graceSeconds),
    changed: () => known.hurry(),
    note: noteNode,
  })
  known.isShuttingDown = () => manager.isShuttingDown
  return manager
}

/**
 * Of the node nobody hears while a request hangs: a heartbeat is given up when the next is due, or when the lease would be over. It
 * waits for no other requests.
 */
function openHeartbeat({ connect, clock, node = {} }: Counted): ApiClient {
  const { lookMs = BEAT_MS, leaseSeconds = LEASE_SECONDS } = node
  const transport = timedTransport(connect.transport, Math.min(lookMs, leaseSeconds * 1000))
  return new ApiClient({ ...connect, transport, clock, userAgent: userAgent('kubelet') })
}

const BEAT_MS = 10_000
const LEASE_SECONDS = 40

/** Events have a connection of their own: however many there are, nothing else waits for them. */
function openClients(options: KubeletOptions, signal: AbortSignal): Pick<Parts, 'client' | 'recorder'> {
  const { name, clock, log } = options
  const { limits, eventLimits } = options.node ?? {}
  const open = (rate: NodeSettings['limits']): ApiClient =>
    new ApiClient({
      ...options.connect,
      clock,
      userAgent: userAgent('kubelet'),
      ...(rate !== undefined && { limits: rate }),
    })
  const client = open(limits)
  const onError = (error: unknown): void => {
    if (!signal.aborted) log.error(error, 'An event could not be written')
  }
  const recorder = new EventRecorder({
    client: open(eventLimits),
    source: { component: 'kubelet', host: name },
    onError,
  })
  return { client, recorder }
}

async function createParts(options: Counted, signal: AbortSignal): Promise<Parts> {
  const { name, clock, random, log, runtime, machine, meters, probes } = options
  const { client, recorder } = openClients(options, signal)
  const known = nothingKnown()
  const { addresses, memoryBytes, capacity, limitsSwap: forbidsSwap } = machine
  const facts = { ...options.pods, nodeName: name, addresses, memoryBytes, forbidsSwap }
  const cluster = { node: () => known.node, services: () => [...known.services.values()] }
  const objects = createPodObjects({ client, random, signal })
  const tools = { clock, random, log, client, facts, objects }
  const allocations = await openAllocations({ path: join(facts.rootDir, 'allocated_pods_state'), clock, log })
  const note = (pod: Pod, said: Note): void => {
    const { namespace = '', name: podName = '', uid = '' } = pod.metadata
    recorder.record({ kind: 'Pod', apiVersion: 'v1', namespace, name: podName, uid }, said)
  }
  const onChange = (): void => known.hurry()
  const { node } = cluster
  const { topology, node: { reserved = {} } = {} } = options
  const placed = { reserved, capacity, ...(topology !== undefined && { topology }) }
  const about = { node, note, onChange, signal, runtime, meters, ...placed }
  const plugins = options.volumes === undefined ? await openPlugins({ ...tools, ...about }) : undefined
  const csi = plugins === undefined ? {} : { csi: plugins.csi }
  const volumes = options.volumes ?? volumesOnDisk({ ...tools, node, note, meters, ...csi })
  const noteNode = (said: Note): void => recorder.record({ kind: 'Node', name, apiVersion: 'v1' }, said)
  const traits = (): NodeTraits => ({ ...options.traits, ...traitsKnown(known) })
  const onError = (error: unknown): void => log.error(error, 'A mirror pod could not be kept')
  const learn = (event: ObjectEvent<Pod>): void => workers.learn(event)
  const statics: StaticPods = new StaticPods({ client, random, signal, node, learn, onError })
  const ofStatics = {
    writerFor: (pod: Pod) => statics.writerFor(pod),
    onGone: (uid: string): void => statics.gone(uid),
  }
  const grants = plugins?.grants ?? NO_GRANTS
  const ofImages = { providers: openProviders({ ...options, client }), ...(await openRecords(options)) }
  const ofPods = { recorder, allocations, volumes, noteNode, traits, meters, probes, ...ofImages }
  const means = { ...tools, runtime, ...ofPods, ...ofStatics }
  const { garbage = {}, cgroups = NO_CGROUPS_AT_ALL, pulls, node: { callLimitMs } = {} } = options
  const asked = { ...(pulls !== undefined && { pulls }), ...(callLimitMs !== undefined && { callLimitMs }) }
  const active = (): Pod[] => Array.from(workers.activePods(), ({ pod }) => pod)
  const counted = countCgroups(sharingCgroups(cgroups, active, log), meters, clock)
  const workers: PodWorkers = new PodWorkers({ ...means, ...asked, garbage, cgroups: counted, ...cluster, grants })
  const { eviction: settings = {} } = options
  const eviction = startEviction({ settings, clock, log, signal, runtime, workers, facts, note: noteNode, meters })
  known.pressures = () => eviction.pressures
  return { client, recorder, workers, active, statics, known, plugins, volumes, signal, noteNode }
}

async function openRecords(options: Counted): Promise<{ readonly records?: PullRecords }> {
  const { verification = VERIFICATION, clock, log, meters, runtime, pods } = options
  if (verification === 'off') return {}
  const folder = join(pods.rootDir, 'image_manager')
  const images = async (): Promise<readonly Image[]> => (await runtime.listImages({})).images
  return { records: await PullRecords.open({ folder, verification, clock, log, meters }, images) }
}

/** They run whether there is an API server or not. */
async function startStatics(
  options: KubeletOptions,
  { statics, signal }: Parts,
  closing: AsyncDisposableStack,
): Promise<void> {
  const { name: nodeName, clock, log, staticPods } = options
  if (staticPods === undefined) return
  const http = createHttpClient({ clock, http1Only: true })
  closing.defer(() => http.close())
  const found: SourceOptions['found'] = (kind, pods) => statics.found(kind, pods)
  await startSources(staticPods, http, { clock, log, signal, nodeName, isEnabled: staticPods.isEnabled, found })
}
