/**
 * Starts any number of simulated nodes in one process: they have the lifecycle of nodes and pods, but no containers.
 * All share one watch of pods, one of nodes and one queue. A pod is queued only for a change, so a running pod costs
 * only memory.
 */
import { type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { follow } from '#client/reflector.ts'
import { createItemBackoff, type Growth } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import { type Requeue, WorkQueue } from '#lib/work-queue.ts'
import type { ObjectEvent } from '#meta/watch.ts'
import { isTerminal } from '#model/pods.ts'
import { userAgent } from '#model/version.ts'

import { type Fault, type Silence, silenceOf } from './fault.ts'
import { createSimulatedApi } from './http-api.ts'
import { Mounts } from './mounts.ts'
import { type EventChoice, type NodePlan, SimulatedNode } from './simulated-node.ts'
import { SimulatedPod } from './simulated-pod.ts'

/** A user of the API server. */
export interface Identity {
  readonly name: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

export interface SimulatedNodesOptions {
  /** Connection options for a user: `system:node:<name>` for each node, and `WATCHER` for the shared watches. */
  readonly connect: (user: Identity) => Pick<ApiClientOptions, 'transport' | 'server' | 'bearerToken'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** The number of nodes, named `node-0` and so on, or a list of them. */
  readonly nodes: number | readonly NodePlan[]
  /** Which events are recorded. Default: all; only warnings for more than 500 nodes. */
  readonly events?: EventChoice
  /**
   * Interval of lease renewals; a lease lasts four intervals. Default: 10 s, as in kubelets; for more than 1,000
   * nodes up to 25 s, which is half of the grace period of the node lifecycle controller.
   */
  readonly renewMs?: number
  /** The reported kubelet port. Default: 10250. */
  readonly port?: number
}

/** Watches pods and nodes. It is in system:masters, so that it needs no role. */
const WATCHER: Identity = {
  name: 'hyperkube:simulated-nodes',
  uid: '',
  groups: ['system:masters', 'system:authenticated'],
  extra: {},
}

/** Much longer than the server needs to finish a deletion. */
const LEAVING_MS = 10_000

export interface SimulatedNodes extends AsyncDisposable {
  /** Injects a fault; the returned function removes it. */
  inject(fault: Fault): () => void
  /**
   * The kubelet API at an address, for `Network.kubeletAt` of a server in the same process. Undefined for other
   * addresses.
   */
  kubeletAt(host: string): ((exchange: Exchange) => Promise<void>) | undefined
  /** Stops all activity; nodes and pods stay in the API. */
  stop(): Promise<void>
}

/** Enough to keep a server busy without starving other clients. */
const WORKERS = 64
/** For heartbeats. They are few unless they are late, and then they are most urgent. */
const NODE_WORKERS = 256
const RETRY: Growth = { baseMs: 100, capMs: 7000 }
const KUBELET_PORT = 10_250
/** Limit of renewals per second over all nodes. */
const RENEWALS_PER_SECOND = 100
/** With more nodes, normal events would outnumber all other writes. */
const MAX_NODES_WITH_ALL_EVENTS = 500

function eventsFor(nodes: number): EventChoice {
  return nodes > MAX_NODES_WITH_ALL_EVENTS ? 'warnings' : 'all'
}

function renewMsFor(nodes: number): number {
  return Math.min(25_000, Math.max(10_000, (nodes / RENEWALS_PER_SECOND) * 1000))
}

/** Resolves when all nodes are registered. */
export async function startSimulatedNodes(options: SimulatedNodesOptions): Promise<SimulatedNodes> {
  const kubelets = new Kubelets(options)
  await kubelets.registered()
  return kubelets
}

class Kubelets implements SimulatedNodes {
  readonly #options: SimulatedNodesOptions
  readonly #nodes = new Map<string, SimulatedNode>()
  readonly #byAddress = new Map<string, SimulatedNode>()
  readonly #pods = new Map<string, SimulatedPod>()
  readonly #hosts = new Map<SimulatedPod, SimulatedNode>()
  readonly #faults = new Set<Fault>()
  readonly #mounts = new Mounts()
  /** Separate queues, so that nodes never wait for pods. */
  readonly #podQueue: WorkQueue<SimulatedPod>
  readonly #nodeQueue: WorkQueue<SimulatedNode>
  readonly #stop = new AbortController()
  readonly #running: Promise<unknown>
  readonly #registered = Promise.withResolvers<void>()
  readonly #serve: (exchange: Exchange) => Promise<void>
  readonly #count: number
  #unregistered = 0

  constructor(options: SimulatedNodesOptions) {
    this.#options = options
    const { clock, nodes } = options
    this.#podQueue = new WorkQueue({ clock, rateLimiter: createItemBackoff(RETRY) })
    this.#nodeQueue = new WorkQueue({ clock, rateLimiter: createItemBackoff(RETRY) })
    const plans = typeof nodes === 'number' ? Array.from({ length: nodes }, (_, at) => ({ name: `node-${at}` })) : nodes
    this.#count = plans.length
    for (const [index, plan] of plans.entries()) this.#add(plan, index)
    this.#serve = createSimulatedApi({ clock, nodeAt: (address) => this.#byAddress.get(address) })
    if (plans.length === 0) this.#registered.resolve()
    const { signal } = this.#stop
    const around = { signal, onError: (error: unknown): void => this.#logError(error) }
    this.#running = Promise.all([
      this.#podQueue.run({
        workers: WORKERS,
        handle: (simulatedPod) => this.#requeue(this.#stepPod(simulatedPod)),
        ...around,
      }),
      this.#nodeQueue.run({ workers: NODE_WORKERS, handle: (node) => this.#requeue(this.#stepNode(node)), ...around }),
      this.#registered.promise.then(() => this.#watch(signal)),
    ])
  }

  registered(): Promise<void> {
    return this.#registered.promise
  }

  inject(fault: Fault): () => void {
    this.#faults.add(fault)
    this.#applyFault(fault)
    return () => {
      if (this.#faults.delete(fault)) this.#applyFault(fault)
    }
  }

  kubeletAt(host: string): ((exchange: Exchange) => Promise<void>) | undefined {
    return this.#byAddress.has(host) ? this.#serve : undefined
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    this.#registered.resolve()
    await this.#running
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  #add(plan: NodePlan, index: number): void {
    const { clock, random, port = KUBELET_PORT } = this.#options
    const { events = eventsFor(this.#count), renewMs = renewMsFor(this.#count) } = this.#options
    const user = {
      name: `system:node:${plan.name}`,
      uid: '',
      groups: ['system:nodes', 'system:authenticated'],
      extra: {},
    }
    const node = new SimulatedNode({
      plan,
      index,
      client: new ApiClient({ ...this.#options.connect(user), clock, userAgent: userAgent('kubelet') }),
      random,
      faults: this.#faults,
      events,
      port,
      renewMs,
      onError: (error) => this.#logError(error),
      signal: this.#stop.signal,
    })
    this.#nodes.set(plan.name, node)
    for (const address of node.addresses) this.#byAddress.set(address, node)
    this.#unregistered++
    this.#nodeQueue.add(node)
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { clock, random, connect } = this.#options
    const client = new ApiClient({ ...connect(WATCHER), clock, userAgent: userAgent('kubelet') })
    const failed = (error: unknown): void => this.#logError(error)
    const around = { client, random, signal, isShared: true }
    await Promise.all([
      follow<Node>(
        { ...around, kind: Nodes },
        {
          replace: (nodes) => nodes.forEach((node) => this.#updateNode(node)),
          change: ({ object }) => this.#updateNode(object),
          failed,
        },
      ),
      follow<Pod>(
        { ...around, kind: Pods, selection: { fieldSelector: 'spec.nodeName!=' } },
        {
          replace: (pods) => this.#replacePods(pods),
          change: (event) => this.#handlePod(event),
          failed,
        },
      ),
    ])
  }

  #updateNode(seen: Node): void {
    const node = this.#nodes.get(seen.metadata.name ?? '')
    if (node === undefined) return
    node.update(seen)
    this.#setSilence(node, this.#silenceOf(node.name) ?? silenceOf(seen.metadata.annotations))
  }

  #replacePods(pods: readonly Pod[]): void {
    const gone = new Map(this.#pods)
    for (const pod of pods) {
      gone.delete(pod.metadata.uid ?? '')
      this.#handlePod({ type: 'ADDED', object: pod })
    }
    for (const { pod } of gone.values()) this.#handlePod({ type: 'DELETED', object: pod })
  }

  #handlePod(event: ObjectEvent<Pod>): void {
    const { type, object } = event
    const node = this.#nodes.get(object.spec.nodeName ?? '')
    if (node === undefined) return
    if (node.silence !== undefined) node.missed.set(object.metadata.uid ?? '', event)
    else if (type === 'DELETED') this.#forget(object)
    else this.#updatePod(object, node)
  }

  #updatePod(pod: Pod, node: SimulatedNode): void {
    const { uid = '' } = pod.metadata
    const known = this.#pods.get(uid)
    if (known !== undefined) {
      const hasChanged =
        known.pod.metadata.generation !== pod.metadata.generation ||
        known.pod.metadata.deletionTimestamp !== pod.metadata.deletionTimestamp ||
        (pod.spec.readinessGates ?? []).length > 0
      known.update(pod)
      if (hasChanged) this.#podQueue.add(known)
      return
    }
    if (isTerminal(pod) && pod.metadata.deletionTimestamp === undefined) return
    const simulatedPod = new SimulatedPod(pod, node, this.#options.clock.now())
    this.#pods.set(uid, simulatedPod)
    this.#hosts.set(simulatedPod, node)
    node.pods.set(uid, simulatedPod)
    this.#podQueue.add(simulatedPod)
  }

  #forget({ metadata: { uid = '' } }: Pod): void {
    const simulatedPod = this.#pods.get(uid)
    if (simulatedPod === undefined) return
    simulatedPod.leave()
    this.#hosts.get(simulatedPod)?.pods.delete(uid)
    this.#hosts.delete(simulatedPod)
    this.#pods.delete(uid)
  }

  async #requeue(step: Promise<number>): Promise<Requeue | void> {
    const dueMs = await step
    if (dueMs !== Infinity) return { requeueAfterMs: dueMs - this.#options.clock.now() }
  }

  async #stepNode(node: SimulatedNode): Promise<number> {
    const wasRegistered = node.isRegistered
    const dueMs = await node.step()
    if (!wasRegistered && node.isRegistered && --this.#unregistered === 0) this.#registered.resolve()
    return dueMs
  }

  async #stepPod(simulatedPod: SimulatedPod): Promise<number> {
    const node = this.#hosts.get(simulatedPod)
    if (node === undefined || node.silence === 'down') return Infinity
    const isCut = node.silence !== undefined
    const retryMs = simulatedPod.isWaiting && !isCut ? await node.mount(simulatedPod, this.#mounts) : Infinity
    const dueMs = simulatedPod.step(this.#options.clock.now())
    if (!isCut && simulatedPod.isLeaving && !simulatedPod.wasLeaving) {
      simulatedPod.wasLeaving = true
      return this.#options.clock.now() + LEAVING_MS
    }
    if (!isCut && (await node.reportPod(simulatedPod))) return Infinity
    return Math.min(dueMs, retryMs)
  }

  #applyFault(fault: Fault): void {
    if (fault.type === 'node-down' || fault.type === 'network-cut') {
      const node = this.#nodes.get(fault.node)
      if (node !== undefined) this.#setSilence(node, this.#silenceOf(node.name))
      return
    }
    const nowMs = this.#options.clock.now()
    for (const simulatedPod of this.#pods.values()) {
      simulatedPod.applyFaults(nowMs)
      this.#podQueue.add(simulatedPod)
    }
  }

  #silenceOf(name: string): Silence | undefined {
    let silence: Silence | undefined
    for (const fault of this.#faults) {
      if (fault.type === 'node-down' && fault.node === name) return 'down'
      if (fault.type === 'network-cut' && fault.node === name) silence = 'network-cut'
    }
    return silence
  }

  #setSilence(node: SimulatedNode, silence: Silence | undefined): void {
    const before = node.silence
    if (before === silence) return
    node.silence = silence
    if (before === 'down')
      for (const simulatedPod of node.pods.values()) simulatedPod.stopAll(this.#options.clock.now())
    if (silence === undefined) this.#wake(node, before === 'down')
    this.#nodeQueue.add(node)
    for (const simulatedPod of node.pods.values()) this.#podQueue.add(simulatedPod)
  }

  #wake(node: SimulatedNode, wasDown: boolean): void {
    node.wake(wasDown)
    const missed = [...node.missed.values()]
    node.missed.clear()
    for (const event of missed) this.#handlePod(event)
  }

  #logError(error: unknown): void {
    if (!this.#stop.signal.aborted) this.#options.log.error(error, 'Failed to sync simulated node')
  }
}
