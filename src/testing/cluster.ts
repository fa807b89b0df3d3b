/**
 * A whole cluster inside a test: API server, controllers, scheduler and simulated nodes, the ones that `hyperkube up` runs,
 * with objects in memory and time as an argument. In virtual time nothing happens by chance: the same seed and the same
 * calls give the same objects, events, uids and resourceVersions.
 */
import { readFile } from 'node:fs/promises'
import { PassThrough } from 'node:stream'

import type { User } from '#apiserver/registry/resource.ts'
import { ApiClient } from '#client/api-client.ts'
import { kubeconfigText } from '#client/kubeconfig.ts'
import { type RunningCluster, runCluster } from '#cluster/cluster.ts'
import { managerSettings, podCidrFor, serverSettings } from '#cluster/settings.ts'
// Loaded before anything runs: what comes when a file has been read does not come at the same moment each time.
import '#cluster/nodes.ts'
import '#cluster/scheduler.ts'
import type { Settings } from '#control-plane/flags/flags.ts'
import type { Surroundings } from '#control-plane/site.ts'
import type { ControllerSettings } from '#controllers/settings.ts'
import type { Fault } from '#kubelet/simulated/fault.ts'
import type { NodePlan } from '#kubelet/simulated/node-life.ts'
import { type Clock, createVirtualClock, realClock, slowBackground, type VirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import type { Backend } from '#storage/backend.ts'
import { loadBackend } from '#storage/index.ts'

import { type ApiFault, ApiFaults, isApiFault } from './api-fault.ts'
import { errorLog } from './control-plane.ts'
import { processPki } from './process-pki.ts'
import { followChanges, type SettleOptions, settle } from './settle.ts'
import { type Span, spanMs } from './span.ts'

export interface ClusterOptions {
  /** How many simulated nodes there are, or which. Default: 1. */
  readonly nodes?: number | readonly NodePlan[]
  /** `virtual`: time stands still until `clock.advance` or `settle` moves it. Default: `real`. */
  readonly clock?: 'virtual' | 'real'
  /** When virtual time begins. Default: 2026-01-01T00:00:00Z. */
  readonly startTime?: Date | string
  /** Where objects are: `memory`, or `sqlite:FILE`. Default: `memory`. */
  readonly storage?: string
  /** Feature gates that differ from their default, by upstream's names. */
  readonly gates?: Readonly<Record<string, boolean>>
  /** What chance depends on: names, uids, jitter. Default: 1. */
  readonly seed?: number
  /** Which controllers run, as `--controllers` of kube-controller-manager has it. Default: `['*']`. */
  readonly controllers?: readonly string[]
  /** Whether pods get nodes. Default: true. */
  readonly scheduler?: boolean
  /**
   * How often everything happens that happens anyway: nodes report, leases are renewed, controllers look again. Default:
   * `10s`, as outside. With `30m` a year of virtual time passes quickly, and a node that is gone is missed after hours.
   */
  readonly pulse?: Span
  /** Flags of kube-apiserver, by name. */
  readonly serverSettings?: Partial<Settings>
  /** Flags of kube-controller-manager, by name; durations in milliseconds. */
  readonly managerSettings?: Partial<ControllerSettings>
}

export interface ClusterClock {
  /** What time it is in the cluster. */
  now(): Date
  /** Moves virtual time forward: everything that falls due on the way happens, in order. Rejects in real time. */
  advance(span: Span): Promise<void>
}

/** A state of a cluster, from which any number of others can begin. */
export interface Snapshot extends AsyncDisposable {
  /** The resourceVersion it was taken at. */
  readonly revision: number
  /** A cluster that goes on from here, at this state's time. All that begin here do the same when told the same. */
  start(): Promise<TestCluster>
}

export interface TestCluster extends AsyncDisposable {
  /** May do everything. */
  readonly client: ApiClient
  /** For tests of RBAC: somebody else's client. */
  clientAs(user: { readonly name: string; readonly groups?: readonly string[] }): ApiClient
  /** The text of a kubeconfig, for kubectl and for programs in any language: an administrator. */
  readonly kubeconfig: string
  /** `https://127.0.0.1:port`. */
  readonly url: string
  readonly clock: ClusterClock
  /**
   * Waits until nothing is left to do: nothing has changed for a while but leases and events. Virtual time moves on
   * meanwhile. Rejects with what keeps changing when there is no end to it.
   */
  settle(options?: SettleOptions): Promise<void>
  /** Lets something go wrong from now on, on nodes, in containers or with requests; returns what ends it. */
  inject(fault: Fault | ApiFault): () => void
  /** The state now, or at an earlier resourceVersion that is still known (five minutes). */
  snapshot(options?: { readonly revision?: number }): Promise<Snapshot>
  /** A copy that goes its own way: `snapshot`, then `start`. */
  fork(options?: { readonly revision?: number }): Promise<TestCluster>
  /** The same as `await using` does at the end. */
  stop(): Promise<void>
}

/** Starts a cluster; pods can be made when this resolves. */
export function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  const { storage = 'memory' } = options
  const openStore = async (tools: Parameters<OpenStore>[0]): Promise<Backend> => (await loadBackend(storage))(tools)
  return start(options, openStore)
}

type OpenStore = NonNullable<Surroundings['openStore']>

const START_MS = Date.UTC(2026, 0, 1)
const PULSE_MS = 10_000
const GRACE_MS = 1000

async function start(options: ClusterOptions, openStore: OpenStore, isCopy = false): Promise<TestCluster> {
  const { startTime = START_MS, pulse = PULSE_MS, seed = 1 } = options
  const virtual = options.clock === 'virtual' ? createVirtualClock(new Date(startTime).getTime()) : undefined
  const pace = spanMs(pulse) / PULSE_MS
  const own = virtual ?? realClock
  const clock = pace === 1 ? own : slowBackground(own, pace)
  const pki = await processPki()
  const apiFaults = new ApiFaults(clock)
  const closing = new AsyncDisposableStack()
  const opened = Promise.withResolvers<Backend>()
  const around = {
    clock,
    random: createSeededRandom(seed),
    log: errorLog(() => closing.disposed),
    cwd: process.cwd(),
    stdout: new PassThrough().resume(),
    readFile: async (path: string) => pki.files.get(path) ?? (await readFile(path, 'utf8')),
    graceMs: GRACE_MS,
    host: 'testing',
    interfere: apiFaults.interfere,
    openStore: async (tools: Parameters<OpenStore>[0]): Promise<Backend> => {
      const backend = await openStore(tools)
      opened.resolve(backend)
      return backend
    },
  }
  try {
    const cluster = await runCluster(planOf(options, pace), around, closing)
    // Those of a copy are what they were.
    if (!isCopy) await (virtual === undefined ? cluster.nodesReady : passTime(virtual, cluster.nodesReady))
    const url = `https://127.0.0.1:${cluster.running.port}`
    const kubeconfig = kubeconfigText({ name: 'hyperkube', server: url, ...pki.admin })
    return new StartedCluster({
      options,
      cluster,
      clock,
      virtual,
      kubeconfig,
      url,
      closing,
      apiFaults,
      backend: await opened.promise,
    })
  } catch (error) {
    await closing.disposeAsync()
    throw error
  }
}

/** Moves on until it has happened, well or not, and no further. */
async function passTime(clock: VirtualClock, happening: Promise<void>): Promise<void> {
  const seen = { isOver: false }
  const over = (): void => void (seen.isOver = true)
  happening.then(over, over)
  for (let stepMs = 0; !seen.isOver; stepMs = STEP_MS) await clock.advance(stepMs)
  return happening
}

const STEP_MS = 50

function planOf(options: ClusterOptions, pace: number): Parameters<typeof runCluster>[0] {
  const { storage = 'memory', gates = {}, controllers = ['*'], scheduler = true, nodes = 1 } = options
  const file = (name: string): string => name
  const graceMs = managerSettings(file)['node-monitor-grace-period']
  return {
    server: serverSettings(file, {
      datastore: storage,
      'bind-address': '127.0.0.1',
      'secure-port': 0,
      'feature-gates': new Map(Object.entries(gates)),
      ...options.serverSettings,
    }),
    manager: managerSettings(file, {
      'node-monitor-grace-period': graceMs * pace,
      'cluster-cidr': podCidrFor(typeof nodes === 'number' ? nodes : nodes.length),
      ...options.managerSettings,
    }),
    controllers,
    volumes: '/var/lib/hyperkube/volumes',
    hasScheduler: scheduler,
    nodes: { simulated: nodes, renewMs: PULSE_MS * pace },
  }
}

interface StartedParts {
  readonly options: ClusterOptions
  readonly cluster: RunningCluster
  readonly clock: Clock
  readonly virtual: VirtualClock | undefined
  readonly kubeconfig: string
  readonly url: string
  readonly backend: Backend
  readonly closing: AsyncDisposableStack
  readonly apiFaults: ApiFaults
}

class StartedCluster implements TestCluster {
  readonly client: ApiClient
  readonly kubeconfig: string
  readonly url: string
  readonly clock: ClusterClock
  readonly #parts: StartedParts
  readonly #changes: ReturnType<typeof followChanges>

  constructor(parts: StartedParts) {
    const { cluster, virtual, clock, backend, closing } = parts
    this.#parts = parts
    this.client = cluster.client
    this.kubeconfig = parts.kubeconfig
    this.url = parts.url
    this.clock = {
      now: () => new Date(clock.now()),
      async advance(span) {
        if (virtual === undefined) throw new Error("Real time cannot be moved: start the cluster with clock: 'virtual'")
        await virtual.advance(spanMs(span))
      },
    }
    this.#changes = followChanges(backend, clock)
    closing.defer(() => this.#changes.close())
  }

  clientAs({ name, groups = [] }: { readonly name: string; readonly groups?: readonly string[] }): ApiClient {
    const { cluster, clock } = this.#parts
    const user: User = { name, uid: '', groups: [...groups, 'system:authenticated'], extra: {} }
    return new ApiClient({ transport: cluster.running.server.clientAs(user), clock, userAgent: name })
  }

  settle(options: SettleOptions = {}): Promise<void> {
    return settle(this.#changes, this.#parts.virtual, options)
  }

  inject(fault: Fault | ApiFault): () => void {
    if (isApiFault(fault)) return this.#parts.apiFaults.inject(fault)
    const { nodes } = this.#parts.cluster
    if (nodes === undefined) throw new Error('There are no simulated nodes to which it could happen')
    return nodes.inject(fault)
  }

  async snapshot({ revision }: { readonly revision?: number } = {}): Promise<Snapshot> {
    const { backend, options, clock } = this.#parts
    const kept = await backend.fork(revision === undefined ? {} : { revision })
    const { revision: at } = await kept.health()
    const later = { ...options, storage: 'memory', startTime: new Date(clock.now()), seed: (options.seed ?? 1) + at }
    const close = (): Promise<void> => kept.close()
    return {
      revision: at,
      start: () => start(later, ({ clock: own, random }) => kept.fork({ clock: own, random }), true),
      [Symbol.asyncDispose]: close,
    }
  }

  async fork(options?: { readonly revision?: number }): Promise<TestCluster> {
    await using snapshot = await this.snapshot(options)
    return await snapshot.start()
  }

  stop(): Promise<void> {
    const { closing, virtual } = this.#parts
    const stopping = closing.disposeAsync()
    // Some may take their time, which is the cluster's.
    return virtual === undefined ? stopping : passTime(virtual, stopping)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}
