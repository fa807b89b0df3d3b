/**
 * A complete cluster inside a test: API server, controllers, scheduler and simulated nodes, as in `hyperkube up`.
 * Objects are in memory, and the clock is virtual or real. Virtual time is deterministic: the same seed and calls give
 * the same objects, events, uids and resourceVersions.
 */
import { readFile } from 'node:fs/promises'
import { PassThrough } from 'node:stream'

import type { Kind } from '#apis/kinds.ts'
import type { User } from '#auth/user.ts'
import { ApiClient, type Where } from '#client/api-client.ts'
import { kubeconfigText } from '#client/connection/kubeconfig.ts'
import { type RunningCluster, runCluster } from '#cluster/cluster.ts'
import { managerSettings, podCidrFor, serverSettings } from '#cluster/settings.ts'
// Loaded eagerly: dynamic imports would complete at different moments.
import '#cluster/nodes.ts'
import '#cluster/scheduler.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import type { Settings } from '#control-plane/flags/flags.ts'
import type { ControllerSettings } from '#controllers/settings.ts'
import type { Explanation } from '#explain/explanation.ts'
import { type Clock, createVirtualClock, realClock, slowBackground, type VirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { type Span, spanMs } from '#lib/span.ts'
import { type Moment, parseMoment } from '#lib/time/moment.ts'
import type { Fault } from '#simulated-node/fault.ts'
import type { NodePlan } from '#simulated-node/simulated-node.ts'
import type { Backend } from '#storage/backend.ts'
import { loadBackend } from '#storage/index.ts'
import { revisionOf } from '#storage/revision-of.ts'

import { type ApiFault, ApiFaults, isApiFault } from './api-fault.ts'
import { errorLog } from './control-plane.ts'
import { explainKey, explainObject } from './explaining.ts'
import { processPki } from './process-pki.ts'
import { followChanges, type SettleOptions, settle } from './settle.ts'

export interface ClusterOptions {
  /** The number of simulated nodes, or the nodes. Default: 1. */
  readonly nodes?: number | readonly NodePlan[]
  /** `virtual`: time advances only with `clock.advance` or `settle`. Default: `real`. */
  readonly clock?: 'virtual' | 'real'
  /** The start of virtual time. Default: 2026-01-01T00:00:00Z. */
  readonly startTime?: Date | string
  /** `memory`, or `sqlite:FILE`. Default: `memory`. */
  readonly storage?: string
  /** Feature gates that differ from their default, by upstream's names. */
  readonly gates?: Readonly<Record<string, boolean>>
  /** The seed of names, uids and jitter. Default: 1. */
  readonly seed?: number
  /** As `--controllers` of kube-controller-manager. Default: `['*']`. */
  readonly controllers?: readonly string[]
  /** Whether the scheduler runs. Default: true. */
  readonly scheduler?: boolean
  /**
   * The period of heartbeats, lease renewals and resyncs. Default: `10s`, as outside. With `30m` a year of virtual time
   * passes quickly, but a lost node is noticed after hours.
   */
  readonly pulse?: Span
  /** kube-apiserver's flags by name. */
  readonly serverSettings?: Partial<Settings>
  /** kube-controller-manager's flags by name; durations in milliseconds. */
  readonly managerSettings?: Partial<ControllerSettings>
}

export interface ClusterClock {
  /** The current time of the cluster. */
  now(): Date
  /** Advances virtual time and runs everything due, in order. Rejects in real time. */
  advance(span: Span): Promise<void>
}

/** A state of the last five minutes; without `revision` and `at`, the current one. */
export interface SnapshotOptions {
  /** A resourceVersion. The time is that of its change, to a second. */
  readonly revision?: number
  /** A time, or a span before now: `-2m`. */
  readonly at?: Date | string
  /** Of the clusters that start from the state. Default: their names and jitter follow from the cluster's seed. */
  readonly seed?: number
}

/** A state of a cluster, from which any number of clusters can start. */
export interface Snapshot extends AsyncDisposable {
  /** Its resourceVersion. */
  readonly revision: number
  /** Starts a cluster from this state and time. All of them behave the same with the same calls. */
  start(): Promise<TestCluster>
}

export interface TestCluster extends AsyncDisposable {
  /** Has all permissions. */
  readonly client: ApiClient
  /** A client of another user, for tests of RBAC. */
  clientAs(user: { readonly name: string; readonly groups?: readonly string[] }): ApiClient
  /** A kubeconfig for an administrator. */
  readonly kubeconfig: string
  /** `https://127.0.0.1:port`. */
  readonly url: string
  readonly clock: ClusterClock
  /**
   * Waits until only leases and events change; virtual time advances. Rejects with the changing object, and why it changes, after
   * the limit.
   */
  settle(options?: SettleOptions): Promise<void>
  /** Says why an object is in its state, as `kubectl why` does; `verdict` has the answer in one sentence. */
  why(kind: Kind, where: Where): Promise<Explanation>
  /** Injects a fault into nodes, containers or requests; returns a function that ends it. */
  inject(fault: Fault | ApiFault): () => void
  /** The current state, or an earlier one of the last five minutes. */
  snapshot(options?: SnapshotOptions): Promise<Snapshot>
  /** An independent copy: `snapshot`, then `start`. */
  fork(options?: SnapshotOptions): Promise<TestCluster>
  /** Stops the cluster, as `await using` does. */
  stop(): Promise<void>
}

/** Starts a cluster; resolves when pods can be created. */
export function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  const { storage = 'memory' } = options
  const openStore = async (tools: Parameters<OpenStore>[0]): Promise<Backend> => (await loadBackend(storage))(tools)
  return start(options, openStore)
}

type OpenStore = NonNullable<EnvironmentOptions['openStore']>

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
    // A copy keeps the state of its nodes.
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

/** Advances time until the promise settles, and no further. */
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
      // The addresses of the machine would show in objects.
      'advertise-address': '192.0.2.1',
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
        if (virtual === undefined)
          throw new Error("Real time cannot be advanced: start the cluster with clock: 'virtual'")
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
    return settle(this.#changes, this.#parts.virtual, options, (key) => explainKey(this.client, key))
  }

  why(kind: Kind, where: Where): Promise<Explanation> {
    return explainObject(this.client, kind, where)
  }

  inject(fault: Fault | ApiFault): () => void {
    if (isApiFault(fault)) return this.#parts.apiFaults.inject(fault)
    const { nodes } = this.#parts.cluster
    if (nodes === undefined) throw new Error('There are no simulated nodes for this fault')
    return nodes.inject(fault)
  }

  async snapshot(choice: SnapshotOptions = {}): Promise<Snapshot> {
    const { backend, options, clock } = this.#parts
    const moment = momentOf(choice, clock.now())
    const kept = await backend.fork(moment === undefined ? {} : { revision: revisionOf(backend, moment) })
    const { revision } = await kept.health()
    const startTime = new Date(timeOf(moment, kept) ?? clock.now())
    const seed = choice.seed ?? (options.seed ?? 1) + revision
    const later = { ...options, storage: 'memory', startTime, seed }
    const close = (): Promise<void> => kept.close()
    return {
      revision,
      start: () => start(later, ({ clock: own, random }) => kept.fork({ clock: own, random }), true),
      [Symbol.asyncDispose]: close,
    }
  }

  async fork(options?: SnapshotOptions): Promise<TestCluster> {
    await using snapshot = await this.snapshot(options)
    return await snapshot.start()
  }

  stop(): Promise<void> {
    const { closing, virtual } = this.#parts
    const stopping = closing.disposeAsync()
    // Stopping may need virtual time.
    return virtual === undefined ? stopping : passTime(virtual, stopping)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}

/** Undefined: now. */
function momentOf({ revision, at }: SnapshotOptions, nowMs: number): Moment | undefined {
  if (revision !== undefined && at !== undefined) throw new TypeError('Give either revision or at, not both')
  if (revision !== undefined) return { revision }
  if (at === undefined) return undefined
  return parseMoment(at instanceof Date ? at.toISOString() : at, nowMs)
}

function timeOf(moment: Moment | undefined, backend: Backend): number | undefined {
  if (moment === undefined) return undefined
  return 'timeMs' in moment ? moment.timeMs : backend.timeOf(moment.revision)
}
