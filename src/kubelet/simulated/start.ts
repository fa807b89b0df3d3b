/**
 * Simulated nodes: any number of them in one process, with the life of a node and of its pods and without a container. All
 * share one watch of pods, one of nodes and one queue, in which a pod stands only when something happens to it; so a
 * pod that just runs costs memory and nothing else.
 */
import { type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { follow } from '#client/follow.ts'
import { createItemBackoff, type Growth } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import { type Requeue, WorkQueue } from '#lib/work-queue.ts'
import type { ObjectEvent } from '#meta/watch.ts'
import { isTerminal } from '#model/pods.ts'
import { userAgent } from '#model/version.ts'

import { type Fault, type Silence, silenceOf } from './fault.ts'
import { createKubeletApi } from './http-api.ts'
import { Mounts } from './mounts.ts'
import { type EventChoice, NodeLife, type NodePlan } from './node-life.ts'
import { PodLife } from './pod-life.ts'

/** Who asks: a user as the server knows users. */
export interface Identity {
  readonly name: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

export interface SimulatedNodesOptions {
  /** How to reach the server as somebody: as `system:node:<name>` for each node, and as `WATCHER` for all of them. */
  readonly connect: (user: Identity) => Pick<ApiClientOptions, 'transport' | 'server' | 'bearerToken'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** How many, named `node-0` and so on, or which. */
  readonly nodes: number | readonly NodePlan[]
  /** Which events of kubelets pods and nodes have. Default: all; only warnings where there are more than 500 nodes. */
  readonly events?: EventChoice
  /**
   * How often nodes renew their leases, which are good for four times that. Default: 10 s, as kubelets do; more where there
   * are more than 1,000 nodes, to at most 25 s, which is half of what it takes to be taken for dead.
   */
  readonly renewMs?: number
  /** What nodes say is the port of their kubelet. Default: 10250. */
  readonly port?: number
}

/** Sees pods and nodes, and changes nothing. In the group that may, so that no role has to be there before it. */
const WATCHER: Identity = {
  name: 'hyperkube:simulated-nodes',
  uid: '',
  groups: ['system:masters', 'system:authenticated'],
  extra: {},
}

/** Much longer than the server takes between what makes a pod leave and its end. */
const LEAVING_MS = 10_000

export interface SimulatedNodes extends AsyncDisposable {
  /** What is to go wrong from now on; returns what ends it. */
  inject(fault: Fault): () => void
  /**
   * Who answers for the kubelet at an address: for `Network.kubeletAt` of a server in the same process. Undefined for
   * addresses of others.
   */
  kubeletAt(host: string): ((exchange: Exchange) => Promise<void>) | undefined
  /** Nothing happens any more; nodes and pods stay as they are. */
  stop(): Promise<void>
}

/** Enough to keep a server busy, and few enough to leave room for others. */
const WORKERS = 64
/** Of heartbeats, which are few unless they are late: then nodes are about to be taken for dead, and nothing is more urgent. */
const NODE_WORKERS = 256
const RETRY: Growth = { baseMs: 100, capMs: 7000 }
const KUBELET_PORT = 10_250
/** So many renewals a second are enough. */
const RENEWALS_PER_SECOND = 100
/** More would write more about what goes well than about everything else. */
const MAX_TALKATIVE_NODES = 500

function eventsFor(nodes: number): EventChoice {
  return nodes > MAX_TALKATIVE_NODES ? 'warnings' : 'all'
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
  readonly #nodes = new Map<string, NodeLife>()
  readonly #byAddress = new Map<string, NodeLife>()
  readonly #pods = new Map<string, PodLife>()
  readonly #hosts = new Map<PodLife, NodeLife>()
  readonly #faults = new Set<Fault>()
  readonly #mounts = new Mounts()
  /** What pods do, and what nodes do, which never waits behind pods. */
  readonly #podQueue: WorkQueue<PodLife>
  readonly #nodeQueue: WorkQueue<NodeLife>
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
    this.#serve = createKubeletApi({ clock, nodeAt: (address) => this.#byAddress.get(address) })
    if (plans.length === 0) this.#registered.resolve()
    const { signal } = this.#stop
    const around = { signal, onError: (error: unknown): void => this.#complain(error) }
    this.#running = Promise.all([
      this.#podQueue.run({ workers: WORKERS, handle: (life) => this.#again(this.#stepPod(life)), ...around }),
      this.#nodeQueue.run({ workers: NODE_WORKERS, handle: (node) => this.#again(this.#stepNode(node)), ...around }),
      this.#registered.promise.then(() => this.#watch(signal)),
    ])
  }

  registered(): Promise<void> {
    return this.#registered.promise
  }

  inject(fault: Fault): () => void {
    this.#faults.add(fault)
    this.#consider(fault)
    return () => {
      if (this.#faults.delete(fault)) this.#consider(fault)
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
    const node = new NodeLife({
      plan,
      index,
      client: new ApiClient({ ...this.#options.connect(user), clock, userAgent: userAgent('kubelet') }),
      random,
      faults: this.#faults,
      events,
      port,
      renewMs,
      onError: (error) => this.#complain(error),
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
    const failed = (error: unknown): void => this.#complain(error)
    const around = { client, random, signal, isShared: true }
    await Promise.all([
      follow<Node>(
        { ...around, kind: Nodes },
        {
          replace: (nodes) => nodes.forEach((node) => this.#seeNode(node)),
          change: ({ object }) => this.#seeNode(object),
          failed,
        },
      ),
      follow<Pod>(
        { ...around, kind: Pods, selection: { fieldSelector: 'spec.nodeName!=' } },
        {
          replace: (pods) => this.#replacePods(pods),
          change: (event) => this.#hear(event),
          failed,
        },
      ),
    ])
  }

  #seeNode(seen: Node): void {
    const node = this.#nodes.get(seen.metadata.name ?? '')
    if (node === undefined) return
    node.learn(seen)
    this.#quieten(node, this.#silenceOf(node.name) ?? silenceOf(seen.metadata.annotations))
  }

  #replacePods(pods: readonly Pod[]): void {
    const gone = new Map(this.#pods)
    for (const pod of pods) {
      gone.delete(pod.metadata.uid ?? '')
      this.#hear({ type: 'ADDED', object: pod })
    }
    for (const { pod } of gone.values()) this.#hear({ type: 'DELETED', object: pod })
  }

  #hear(event: ObjectEvent<Pod>): void {
    const { type, object } = event
    const node = this.#nodes.get(object.spec.nodeName ?? '')
    if (node === undefined) return
    if (node.silence !== undefined) node.missed.set(object.metadata.uid ?? '', event)
    else if (type === 'DELETED') this.#forget(object)
    else this.#seePod(object, node)
  }

  #seePod(pod: Pod, node: NodeLife): void {
    const { uid = '' } = pod.metadata
    const known = this.#pods.get(uid)
    if (known !== undefined) {
      const isNews =
        known.pod.metadata.generation !== pod.metadata.generation ||
        known.pod.metadata.deletionTimestamp !== pod.metadata.deletionTimestamp ||
        (pod.spec.readinessGates ?? []).length > 0
      known.learn(pod)
      if (isNews) this.#podQueue.add(known)
      return
    }
    if (isTerminal(pod) && pod.metadata.deletionTimestamp === undefined) return
    const life = new PodLife(pod, node, this.#options.clock.now())
    this.#pods.set(uid, life)
    this.#hosts.set(life, node)
    node.pods.set(uid, life)
    this.#podQueue.add(life)
  }

  #forget({ metadata: { uid = '' } }: Pod): void {
    const life = this.#pods.get(uid)
    if (life === undefined) return
    life.leave()
    this.#hosts.get(life)?.pods.delete(uid)
    this.#hosts.delete(life)
    this.#pods.delete(uid)
  }

  async #again(step: Promise<number>): Promise<Requeue | void> {
    const dueMs = await step
    if (dueMs !== Infinity) return { requeueAfterMs: dueMs - this.#options.clock.now() }
  }

  async #stepNode(node: NodeLife): Promise<number> {
    const wasRegistered = node.isRegistered
    const dueMs = await node.step()
    if (!wasRegistered && node.isRegistered && --this.#unregistered === 0) this.#registered.resolve()
    return dueMs
  }

  async #stepPod(life: PodLife): Promise<number> {
    const node = this.#hosts.get(life)
    if (node === undefined || node.silence === 'down') return Infinity
    const isCut = node.silence !== undefined
    const retryMs = life.isWaiting && !isCut ? await node.bring(life, this.#mounts) : Infinity
    const dueMs = life.step(this.#options.clock.now())
    if (!isCut && life.isLeaving && !life.wasLeaving) {
      life.wasLeaving = true
      return this.#options.clock.now() + LEAVING_MS
    }
    if (!isCut && (await node.reportPod(life))) return Infinity
    return Math.min(dueMs, retryMs)
  }

  #consider(fault: Fault): void {
    if (fault.type === 'node-down' || fault.type === 'network-cut') {
      const node = this.#nodes.get(fault.node)
      if (node !== undefined) this.#quieten(node, this.#silenceOf(node.name))
      return
    }
    const nowMs = this.#options.clock.now()
    for (const life of this.#pods.values()) {
      life.reconsider(nowMs)
      this.#podQueue.add(life)
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

  #quieten(node: NodeLife, silence: Silence | undefined): void {
    const before = node.silence
    if (before === silence) return
    node.silence = silence
    if (before === 'down') for (const life of node.pods.values()) life.lose(this.#options.clock.now())
    if (silence === undefined) this.#wake(node, before === 'down')
    this.#nodeQueue.add(node)
    for (const life of node.pods.values()) this.#podQueue.add(life)
  }

  #wake(node: NodeLife, wasDown: boolean): void {
    node.wake(wasDown)
    const missed = [...node.missed.values()]
    node.missed.clear()
    for (const event of missed) this.#hear(event)
  }

  #complain(error: unknown): void {
    if (!this.#stop.signal.aborted) this.#options.log.error(error, 'A simulated node could not do what it wanted')
  }
}
