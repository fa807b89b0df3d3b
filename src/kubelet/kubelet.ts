/**
 * A kubelet: one node, its pods on a container runtime, and the port on which it is asked about them. Everything it does it
 * does as `system:node:<name>`.
 */
import { join } from 'node:path'

import { type Node, Nodes, type Pod, Pods, type Service, Services } from '#apis/core/v1.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { EventRecorder } from '#client/event-recorder.ts'
import { follow } from '#client/follow.ts'
import type { Clock } from '#lib/clock.ts'
import { compareText } from '#lib/go-text.ts'
import { createHttpClient } from '#lib/http/client.ts'
import type { Logger } from '#lib/log.ts'
import { createRegistry, type Registry } from '#lib/metrics.ts'
import type { Random } from '#lib/random.ts'
import { startRounds } from '#lib/rounds.ts'
import type { Certificate } from '#lib/x509/certificate.ts'
import type { ObjectEvent } from '#meta/watch.ts'
import { userAgent } from '#model/version.ts'

import type { NodeTraits } from './admission-rules.ts'
import type { Reserved } from './allocatable.ts'
import { NO_CGROUPS, type PodCgroups } from './cgroups/pod-cgroups.ts'
import type { Runtime } from './cri/runtime.ts'
import { type EvictionSettings, startEviction } from './eviction/node-eviction.ts'
import { NO_GRANTS } from './grants/container-grant.ts'
import { CGROUP_V1, type Note } from './kubelet-notes.ts'
import { LOG_POLICY, type LogPolicy, startLogRotation } from './log-rotation.ts'
import type { Machine } from './machine/machine.ts'
import { Measuring, WINDOW_MS } from './machine/measuring.ts'
import { cadvisorMetrics } from './metrics/cadvisor.ts'
import { registerKubeletMetrics } from './metrics/kubelet-metrics.ts'
import { countOperations } from './metrics/runtime-operations.ts'
import { NodeKeeper } from './node-keeper.ts'
import { type NodePlugins, openPlugins } from './node-plugins.ts'
import { NodeRegistration } from './node-registration.ts'
import { resourceMetrics, statsSummary } from './node-stats.ts'
import { type NodeFacts, pressureIlls } from './node-status.ts'
import { createPodObjects } from './object-cache.ts'
import { openAllocations } from './pods/allocations.ts'
import type { PodWorkersOptions } from './pods/pod-host.ts'
import type { PodFacts, PodOfNode } from './pods/pod-of-node.ts'
import { PodWorkers } from './pods/pod-workers.ts'
import { SYNC_MS } from './runtime-health.ts'
import { Access } from './server/access.ts'
import type { KubeletApiOptions } from './server/kubelet-api.ts'
import { openPorts, type Serving } from './server/ports.ts'
import { fromServer } from './static-pods/manifest.ts'
import { type SourceOptions, startSources, type StaticSources } from './static-pods/sources.ts'
import { StaticPods } from './static-pods/static-pods.ts'
import type { TopologySettings } from './topology/topology-settings.ts'
import type { VolumeKeeper } from './volumes/volume-keeper.ts'
import { volumesOnDisk } from './volumes/volumes-on-disk.ts'

export interface KubeletOptions {
  readonly name: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** How to reach the API server as `system:node:<name>`. */
  readonly connect: Pick<ApiClientOptions, 'transport' | 'server' | 'bearerToken'>
  readonly runtime: Runtime
  readonly machine: Machine
  readonly pods: Omit<PodFacts, 'nodeName' | 'addresses' | 'memoryBytes'>
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: NonNullable<Node['spec']['taints']>
  /** Default: as a kubelet that was told nothing. */
  readonly node?: NodeSettings
  /** Default: as upstream's. */
  readonly logs?: LogPolicy
  /** Default: on the disk, below `pods.rootDir`. */
  readonly volumes?: VolumeKeeper
  /** When pods are ended for others. Default: as upstream's. */
  readonly eviction?: EvictionSettings
  readonly garbage?: PodWorkersOptions['garbage']
  readonly pulls?: PodWorkersOptions['pulls']
  /** Default: processors are shared by all. */
  readonly topology?: TopologySettings
  /** Default: the runtime makes the cgroups of pods, and nobody removes them. */
  readonly cgroups?: PodCgroups
  /** What pods are refused for, beside what the Node tells. */
  readonly traits?: Pick<NodeTraits, 'allowedSysctls' | 'hasAppArmor'>
  /** Pods that come from no API server. Default: none. */
  readonly staticPods?: StaticSources & { readonly isEnabled: (gate: string) => boolean }
  readonly serving: Serving
  /** `/configz`. */
  readonly configuration: object
}

/** What a KubeletConfiguration says of the node itself. */
export interface NodeSettings {
  readonly reserved?: Reserved
  readonly maxImages?: number
  readonly providerId?: string
  readonly registers?: boolean
  readonly lookMs?: number
  readonly reportMs?: number
  readonly leaseSeconds?: number
  readonly callLimitMs?: number
  readonly limits?: { readonly qps: number; readonly burst: number }
  readonly eventLimits?: { readonly qps: number; readonly burst: number }
}

/** A lease is renewed when so much of it has passed. */
const RENEWED_SHARE = 0.25

/** What the API server says that pods need to know. */
interface Known {
  node: Node | undefined
  readonly services: Map<string, Service>
  /** `MemoryPressure` and so on. */
  pressures: () => readonly string[]
  /** What the node says of itself has changed. */
  hurry: () => void
}

interface Parts {
  readonly client: ApiClient
  readonly recorder: EventRecorder
  readonly workers: PodWorkers
  readonly statics: StaticPods
  readonly known: Known
  /** None where volumes are nowhere. */
  readonly plugins: NodePlugins | undefined
  readonly signal: AbortSignal
}

/** Resolves when the node is registered. Containers go on when it ends, and are found again by the next. */
export async function startKubelet(given: KubeletOptions, closing: AsyncDisposableStack): Promise<{ port: number }> {
  const registry = createRegistry()
  const options = { ...given, registry, runtime: countOperations(given.runtime, registry, given.clock) }
  const { name, clock, random, log, runtime, machine, taints, node = {} } = options
  const stop = new AbortController()
  const parts = await createParts(options, stop.signal)
  const { client, recorder, workers, plugins, signal } = parts
  const end = async (): Promise<void> => {
    stop.abort()
    await workers.stop()
  }
  const port = await serve(options, parts, closing).catch(async (error: unknown) => {
    await end()
    throw error
  })
  closing.defer(end)
  const registration = new NodeRegistration({
    client,
    name,
    facts: () =>
      nodeFacts(options, [...keeper.ills, ...pressureIlls(parts.known.pressures())], { keeper, port, plugins }),
    ...node,
    ...(taints !== undefined && { taints }),
    warnings: machine.cgroupVersion === 1 ? [CGROUP_V1] : [],
    say: (note) => recorder.record({ kind: 'Node', name, apiVersion: 'v1' }, note),
  })
  const { leaseSeconds } = node
  const renewMs = leaseSeconds === undefined ? {} : { renewMs: leaseSeconds * RENEWED_SHARE * 1000 }
  const listedMs = (): number | undefined => workers.listedMs
  const around = { runtime, clock, random, log, signal, listedMs }
  const keeper: NodeKeeper = new NodeKeeper({ registration, ...around, ...node, ...renewMs })
  parts.known.hurry = () => keeper.hurry()
  await startStatics(options, parts, closing)
  await keeper.start()
  await plugins?.start(() => workers.pods())
  startLogRotation({ clock, runtime, log, pods: () => workers.pods(), policy: options.logs ?? LOG_POLICY }, signal)
  followAll(options, parts)
  return { port }
}

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

async function createParts(options: KubeletOptions, signal: AbortSignal): Promise<Parts> {
  const { name, clock, random, log, runtime, machine } = options
  const { client, recorder } = openClients(options, signal)
  const known: Known = { node: undefined, services: new Map(), pressures: () => [], hurry: () => undefined }
  const { addresses, memoryBytes } = machine
  const facts = { ...options.pods, nodeName: name, addresses, memoryBytes }
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
  const about = { node, note, onChange, signal, runtime, reserved, ...(topology !== undefined && { topology }) }
  const plugins = options.volumes === undefined ? await openPlugins({ ...tools, ...about }) : undefined
  const csi = plugins === undefined ? {} : { csi: plugins.csi }
  const volumes = options.volumes ?? volumesOnDisk({ ...tools, node, ...csi })
  const noteNode = (said: Note): void => recorder.record({ kind: 'Node', name, apiVersion: 'v1' }, said)
  const traits = (): NodeTraits => ({ ...options.traits, pressures: known.pressures() })
  const statics: StaticPods = new StaticPods({
    client,
    random,
    signal,
    node: cluster.node,
    learn: (event) => workers.learn(event),
    onError: (error) => log.error(error, 'A mirror pod could not be kept'),
  })
  const ofStatics = {
    writerFor: (pod: Pod) => statics.writerFor(pod),
    onGone: (uid: string): void => statics.gone(uid),
  }
  const grants = plugins?.grants ?? NO_GRANTS
  const means = { ...tools, runtime, recorder, allocations, volumes, noteNode, traits, ...ofStatics }
  const { garbage = {}, cgroups = NO_CGROUPS, pulls, node: { callLimitMs } = {} } = options
  const asked = { ...(pulls !== undefined && { pulls }), ...(callLimitMs !== undefined && { callLimitMs }) }
  const workers: PodWorkers = new PodWorkers({ ...means, ...asked, garbage, cgroups, ...cluster, grants })
  const { eviction: settings = {} } = options
  const eviction = startEviction({ settings, clock, log, signal, runtime, workers, facts, note: noteNode })
  known.pressures = () => eviction.pressures
  return { client, recorder, workers, statics, known, plugins, signal }
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

interface Counted extends KubeletOptions {
  readonly registry: Registry
}

/** A runtime that does not count sandboxes says nothing of their network. */
async function cadvisorPage(
  { runtime, clock, machine, pods: facts }: KubeletOptions,
  pods: () => Iterable<PodOfNode>,
): Promise<string> {
  const [{ stats: containers }, { stats: sandboxes }] = await Promise.all([
    runtime.listContainerStats({}),
    runtime.listPodSandboxStats({}).catch(() => ({ stats: [] })),
  ])
  const { memoryBytes, capacity } = machine
  const about = { facts: { ...facts, memoryBytes }, cpus: Number(capacity['cpu'] ?? 0), nowMs: clock.now() }
  return cadvisorMetrics({ pods: Array.from(pods()), containers, sandboxes, ...about })
}

/** Returns the port on which it listens. */
function serve(options: Counted, { client, workers }: Parts, closing: AsyncDisposableStack): Promise<number> {
  const { name, clock, log, runtime, machine, serving, configuration, registry } = options
  const { allowsAnonymous, rules, hasDebugging } = serving
  const pods = (): Iterable<PodOfNode> => workers.pods()
  registerKubeletMetrics(registry, { node: name, clock, pods })
  const measuring = new Measuring({ name, clock, runtime, capacityBytes: machine.memoryBytes, pods })
  const unmeasured = (error: unknown): void =>
    log.v(2)?.info('What is used could not be measured', { err: String(error) })
  const looking = startRounds(
    { clock, periodMs: WINDOW_MS, onError: unmeasured },
    async () => void (await measuring.measure()),
  )
  closing.defer(() => looking.stop())
  // Whoever asks before the first round has something to compare with.
  void measuring.measure().catch(unmeasured)
  const http = createHttpClient({ clock, http1Only: true })
  closing.defer(() => http.close())
  const startedMs = clock.now()
  const api = (authorities: () => readonly Certificate[]): KubeletApiOptions => ({
    clock,
    access: new Access({ client, node: name, authorities, allowsAnonymous, ...(rules !== undefined && { rules }) }),
    ...(hasDebugging !== undefined && { hasDebugging }),
    runtime,
    http,
    pods,
    find: (...which) => workers.find(...which),
    isInSync: () => clock.now() - (workers.listedMs ?? startedMs) < SYNC_MS,
    configuration,
    summary: async () => statsSummary(await measuring.measure(), clock.now()),
    resourceMetrics: async () => resourceMetrics(await measuring.measure(), clock.now()),
    cadvisorMetrics: () => cadvisorPage(options, pods),
    metrics: () => registry.render(),
  })
  const onError = (error: unknown, path: string): void => log.error(error, 'A request failed', { path })
  return openPorts({ clock, serving, api, onError }, closing)
}

function followAll({ name, random, log }: KubeletOptions, parts: Parts): void {
  const { client, known, signal } = parts
  const failed = (error: unknown): void => log.error(error, 'What the API server says could not be heard')
  const all = { client, random, signal }
  void follow(
    { ...all, kind: Nodes, selection: { fieldSelector: `metadata.name=${name}` } },
    {
      replace: ([node]) => void (known.node = node),
      change: ({ type, object }: ObjectEvent<Node>) => void (known.node = type === 'DELETED' ? undefined : object),
      failed,
    },
  )
  void follow({ ...all, kind: Services }, servicesInto(known.services, failed))
  const ofNode = { fieldSelector: `spec.nodeName=${name}` }
  void follow({ ...all, kind: Pods, selection: ofNode }, podsInto(parts, failed))
}

type Failed = (error: unknown) => void

function servicesInto(services: Map<string, Service>, failed: Failed): Parameters<typeof follow<Service>>[1] {
  const key = ({ metadata }: Service): string => `${metadata.namespace}/${metadata.name}`
  return {
    replace(all) {
      services.clear()
      for (const service of all) services.set(key(service), service)
    },
    change({ type, object }) {
      if (type === 'DELETED') services.delete(key(object))
      else services.set(key(object), object)
    },
    failed,
  }
}

const byAge = ({ metadata: a }: Pod, { metadata: b }: Pod): number =>
  compareText(a.creationTimestamp ?? '', b.creationTimestamp ?? '')

/** What has gone while nobody listened is told as deleted. Mirrors of static pods are not run. */
function podsInto({ workers, statics }: Parts, failed: Failed): Parameters<typeof follow<Pod>>[1] {
  return {
    replace(all) {
      const there = new Set(all.map(({ metadata }) => metadata.uid))
      const gone = Array.from(workers.pods(), ({ pod }) => pod).filter(
        ({ metadata: { uid = '' } }) => !there.has(uid) && !statics.has(uid),
      )
      for (const object of gone) workers.learn({ type: 'DELETED', object })
      // Who came first is taken first.
      for (const object of statics.hearsAll(all).toSorted(byAge)) {
        workers.learn({ type: 'ADDED', object: fromServer(object) })
      }
      workers.sourcesReady()
    },
    change(event) {
      if (!statics.hears(event)) workers.learn({ ...event, object: fromServer(event.object) })
    },
    failed,
  }
}

interface Reported {
  readonly keeper: NodeKeeper
  readonly port: number
  readonly plugins: NodePlugins | undefined
}

function nodeFacts(
  { name, machine, labels = {}, node = {} }: KubeletOptions,
  ills: NodeKeeper['ills'],
  { keeper: { view }, port, plugins }: Reported,
): NodeFacts {
  const { capacity, addresses, machineId, systemUuid, bootId, kernel, osImage, architecture } = machine
  const handlers = view.handlers.map(({ name: handler, features }) => ({
    name: handler,
    features: {
      recursiveReadOnlyMounts: features?.recursiveReadOnlyMounts ?? false,
      userNamespaces: features?.userNamespaces ?? false,
    },
  }))
  return {
    name,
    addresses,
    capacity,
    labels,
    ...node,
    machineId,
    systemUuid,
    bootId,
    kernel,
    osImage,
    architecture,
    port,
    ills,
    ...(plugins !== undefined && { volumesInUse: plugins.csi.inUse, devices: plugins.amounts }),
    runtime: view.version,
    images: view.images,
    ...(handlers.length > 0 && { handlers }),
    features: view.features === undefined ? null : { supplementalGroupsPolicy: view.features.supplementalGroupsPolicy },
  }
}
