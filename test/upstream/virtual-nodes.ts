/**
 * Simulates ready nodes for our API server and upstream's, for tests of controllers. Annotations of a pod determine how
 * the pod runs, ends and is deleted:
 *
 *     stand-in/fate     ready (default) · running, but not ready · pending · exit N · by-index 0=1,2=ready (others end with 0;
 *                       1=0@900: this many milliseconds later)
 *     stand-in/after-ms how long a pod runs before that, or waits before it is ready
 *     stand-in/stop-ms  how long it takes to stop when it is deleted
 *     stand-in/families 2: an address of either family
 */
import { Leases } from '#apis/coordination/v1.ts'
import { Nodes, type Pod, Pods, type PodStatus } from '#apis/core/v1.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { type Controller, type ControllerContext, defineController } from '#controllers/controller.ts'
import { runControllers } from '#controllers/manager.ts'
import { type Clock, realClock, sleep } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { createLog, type Logger } from '#lib/log/log.ts'
import { type Random, secureRandom } from '#lib/random.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { isAlreadyExists, isConflict, isNotFound } from '#meta/status.ts'
import { epochMsOf, microTimeOf, timeOf } from '#meta/time.ts'
import { isTerminal } from '#model/pods.ts'
import { itself } from '#reconcile/controller.ts'

import type { Server } from './ours.ts'

const CAPACITY = { cpu: '64', memory: '256Gi', pods: '5000', 'ephemeral-storage': '1Ti' }
const HEARTBEAT_MS = 10_000
const LEASE_SECONDS = 40
/** The address of a node that joins later; scenarios have one of those at a time. */
const LATER_ADDRESS = '192.0.2.99'
/** The prefix of the annotations on pods. */
const PREFIX = 'stand-in/'

export interface VirtualNode {
  readonly name: string
  readonly labels?: Readonly<Record<string, string>>
}

export interface NodesPlan {
  readonly nodes: readonly VirtualNode[]
  /** Also assigns pods to nodes: round robin, or the node in the pod's affinity. Default: a scheduler does. */
  readonly binds?: boolean
  /**
   * The minimum time between two changes of pods in one namespace, so that their consequences are always in the same
   * order.
   */
  readonly paceMs?: number
}

export interface VirtualNodesOptions extends NodesPlan {
  readonly server: Pick<Server, 'port' | 'tls'>
}

/** A server in the same process, with its clock. */
export interface VirtualNodesSurroundings {
  readonly connection: Pick<ApiClientOptions, 'transport' | 'server'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface VirtualNodes {
  /** A client with all permissions. */
  readonly client: ApiClient
  readonly clock: Clock
  /** Adds a node, or restores a lost one. */
  join(node: VirtualNode): Promise<void>
  /** Stops the heartbeats of the node and all changes of its pods. */
  lose(name: string): void
  /** Stops all heartbeats; the Node objects stay. */
  stop(): Promise<void>
}

/** Resolves when the nodes are ready. */
export async function startVirtualNodes({ server, ...plan }: VirtualNodesOptions): Promise<VirtualNodes> {
  const { ca, cert: certificate, key } = server.tls
  const transport = createHttpClient({ clock: realClock, tls: { ca, certificate, key } })
  const nodes = await startVirtualNodesWith(plan, {
    connection: { transport, server: `https://127.0.0.1:${server.port}` },
    clock: realClock,
    random: secureRandom,
    log: createLog({ stream: process.stderr, clock: realClock, caller: false }).logger,
  })
  const stop = async (): Promise<void> => {
    await nodes.stop()
    transport.close()
  }
  return { ...nodes, stop }
}

/** Starts virtual nodes with a given client and clock. */
export async function startVirtualNodesWith(
  plan: NodesPlan,
  { connection, clock, random, log }: VirtualNodesSurroundings,
): Promise<VirtualNodes> {
  const { nodes } = plan
  const client = new ApiClient({ ...connection, clock, userAgent: 'stand-in' })
  const alive = new Set(nodes.map(({ name }) => name))
  const joinAt = (node: VirtualNode, address: string): Promise<void> => joinNode(client, node, { address, clock })
  await Promise.all(nodes.map((node, at) => joinAt(node, `192.0.2.${at + 1}`)))
  const over = new AbortController()
  const ended = runControllers(
    {
      controllers: [virtualKubelet(alive, plan, clock)],
      clock,
      random,
      log,
      connect: () => connection,
      userAgent: 'stand-in',
      isEnabled: () => true,
    },
    over.signal,
  )
  const beats = beat(client, alive, clock, over.signal)
  return {
    client,
    clock,
    async join(node) {
      await joinAt(node, LATER_ADDRESS)
      alive.add(node.name)
      // Pods that were bound to the node meanwhile.
      for (const { metadata } of (await client.list(Pods, { fieldSelector: `spec.nodeName=${node.name}` })).items) {
        const value = { metadata: { annotations: { [`${PREFIX}seen`]: timeOf(clock.now()) } } }
        await client.patch(Pods, metadata as { name: string }, { type: 'merge', value })
      }
    },
    lose: (name) => void alive.delete(name),
    async stop() {
      over.abort()
      await Promise.all([ended, beats])
    },
  }
}

async function joinNode(
  client: ApiClient,
  { name, labels = {} }: VirtualNode,
  { address, clock }: { readonly address: string; readonly clock: Clock },
): Promise<void> {
  await client
    .create(Nodes, { metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } } })
    .catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error
    })
  const at = timeOf(clock.now())
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' }
  const status = {
    capacity: CAPACITY,
    allocatable: CAPACITY,
    conditions: [{ ...ready, lastHeartbeatTime: at, lastTransitionTime: at }],
    addresses: [
      { type: 'Hostname', address: name },
      { type: 'InternalIP', address },
    ],
    nodeInfo: { kubeletVersion: 'v1.36.4', architecture: 'amd64', operatingSystem: 'linux' },
  }
  await client.patch(Nodes, { name, subresource: 'status' }, { type: 'merge', value: { status } })
  await renew(client, name, clock)
  // The server taints new nodes as not ready, and not every manager under test has the controller that removes the
  // taint.
  await client.patch(Nodes, { name }, { type: 'merge', value: { spec: { taints: null } } })
}

async function renew(client: ApiClient, name: string, clock: Clock): Promise<void> {
  const spec = { holderIdentity: name, leaseDurationSeconds: LEASE_SECONDS, renewTime: microTimeOf(clock.now()) }
  const where = { namespace: 'kube-node-lease', name }
  try {
    await client.patch(Leases, where, { type: 'merge', value: { spec } })
  } catch (error) {
    if (!isNotFound(error)) throw error
    await client.create(Leases, { metadata: where, spec })
  }
}

async function beat(client: ApiClient, alive: ReadonlySet<string>, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(clock, HEARTBEAT_MS, signal).catch(() => undefined)
    // The server may restart, so failed renewals are ignored.
    if (!signal.aborted) await Promise.all([...alive].map((name) => renew(client, name, clock).catch(() => undefined)))
  }
}

/** Returns how long a pod of the namespace must wait for its turn; 0 takes the turn. */
type Turns = (namespace: string) => number

function inTurns(paceMs: number, clock: Clock): Turns {
  const nextMs = new Map<string, number>()
  return (namespace) => {
    const waitMs = (nextMs.get(namespace) ?? 0) - clock.elapsed()
    if (waitMs > 0) return waitMs
    nextMs.set(namespace, clock.elapsed() + paceMs)
    return 0
  }
}

function virtualKubelet(
  alive: ReadonlySet<string>,
  { binds = false, paceMs = 0 }: NodesPlan,
  clock: Clock,
): Controller {
  let turn = 0
  const turns = inTurns(paceMs, clock)
  return defineController({
    name: 'virtual-kubelet',
    watches: [itself(Pods)],
    reads: [Nodes],
    workers: 20,
    rules: [],
    async reconcile(key, context) {
      const pod = context.cache.get(Pods, key)
      if (pod === undefined) return
      try {
        if (alive.has(pod.spec.nodeName ?? '')) return await live(pod, turns, context)
        if (binds && (pod.spec.nodeName ?? '') === '') await bind(pod, nodeFor(pod, [...alive], turn++), context)
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error
      }
    },
  })
}

function nodeFor({ spec }: Pod, names: readonly string[], turn: number): string {
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  return terms?.[0]?.matchFields?.[0]?.values?.[0] ?? names[turn % names.length] ?? ''
}

async function bind(pod: Pod, node: string, { client }: ControllerContext): Promise<void> {
  if ((pod.spec.schedulingGates ?? []).length > 0 || isBeingDeleted(pod)) return
  const { namespace = '', name = '' } = pod.metadata
  const binding = { kind: 'Binding', metadata: { namespace, name }, target: { kind: 'Node', name: node } }
  await client.create(Pods, binding, { subresource: 'binding' })
}

interface Fate {
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed'
  readonly isReady: boolean
  readonly exitCode?: number
  /** An additional delay for one index. */
  readonly laterMs?: number
}

const READY: Fate = { phase: 'Running', isReady: true }
const KILLED_CODE = 137

/** Reads an annotation of the pod. */
function told({ metadata }: Pod, what: 'fate' | 'after-ms' | 'stop-ms' | 'families'): string | undefined {
  return metadata.annotations?.[`${PREFIX}${what}`]
}

function fateOf(pod: Pod): Fate {
  const [word = 'ready', value = ''] = (told(pod, 'fate') ?? 'ready').split(' ')
  if (word === 'pending') return { phase: 'Pending', isReady: false }
  if (word === 'running') return { phase: 'Running', isReady: false }
  if (word === 'exit') return ended(Number(value))
  if (word === 'by-index') {
    const index = pod.metadata.annotations?.['batch.kubernetes.io/job-completion-index'] ?? ''
    const codes = new Map(value.split(',').map((each) => each.split('=') as [string, string]))
    const [code = '', laterMs = '0'] = (codes.get(index) ?? '0').split('@')
    return code === 'ready' ? READY : { ...ended(Number(code)), laterMs: Number(laterMs) }
  }
  return READY
}

function ended(exitCode: number): Fate {
  return { phase: exitCode === 0 ? 'Succeeded' : 'Failed', isReady: false, exitCode }
}

async function live(pod: Pod, turns: Turns, context: ControllerContext): Promise<Requeue | void> {
  if (isBeingDeleted(pod)) return end(pod, turns, context)
  if (isTerminal(pod)) return
  const { clock } = context
  const fate = fateOf(pod)
  const startedMs = pod.status.startTime === undefined ? clock.now() : epochMsOf(pod.status.startTime)
  const restMs = startedMs + Number(told(pod, 'after-ms') ?? 0) + (fate.laterMs ?? 0) - clock.now()
  const next: Fate = restMs <= 0 || fate.phase === 'Pending' ? fate : { phase: 'Running', isReady: false }
  if (isNews(pod, next, clock.now())) {
    const waitMs = turns(pod.metadata.namespace ?? '')
    if (waitMs > 0) return { requeueAfterMs: waitMs }
    await report(pod, next, context)
  }
  if (next !== fate) return { requeueAfterMs: restMs }
}

async function end(pod: Pod, turns: Turns, context: ControllerContext): Promise<Requeue | void> {
  const { client, clock } = context
  const { namespace = '', name = '', uid = '', deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata
  const graceMs = deletionGracePeriodSeconds * 1000
  const stopMs = Math.min(Number(told(pod, 'stop-ms') ?? 0), graceMs)
  const waitMs = Math.max(epochMsOf(deletionTimestamp ?? '') - graceMs + stopMs - clock.now(), 0) || turns(namespace)
  if (waitMs > 0) return { requeueAfterMs: waitMs }
  if (!isTerminal(pod)) await report(pod, ended(KILLED_CODE), context)
  await client.delete(Pods, { namespace, name }, { gracePeriodSeconds: 0, preconditions: { uid } })
}

function isNews(pod: Pod, fate: Fate, nowMs: number): boolean {
  const status = statusFor(pod, fate, timeOf(nowMs))
  return status.phase !== pod.status.phase || readyIn(status) !== readyIn(pod.status)
}

async function report(pod: Pod, fate: Fate, { client, clock }: ControllerContext): Promise<void> {
  const { namespace, name = '' } = pod.metadata
  const status = statusFor(pod, fate, timeOf(clock.now()))
  await client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'strategic', value: { status } })
}

function readyIn({ conditions }: Partial<PodStatus>): string {
  return conditions?.find(({ type }) => type === 'Ready')?.status ?? 'None'
}

/** An address that depends only on the pod's UID, and differs for almost any two pods. */
function addressOf({ metadata: { uid = '' } }: Pod): string {
  return `10.${[0, 2, 4].map((at) => Number.parseInt(uid.slice(at, at + 2), 16)).join('.')}`
}

function statusFor(pod: Pod, { phase, isReady, exitCode }: Fate, now: string): Partial<PodStatus> {
  const { containers } = pod.spec
  const is = (type: string, isTrue: boolean): object => ({
    type,
    status: isTrue ? 'True' : 'False',
    ...(readyIn(pod.status) !== 'None' && readyIn(pod.status) === (isReady ? 'True' : 'False')
      ? {}
      : { lastTransitionTime: now }),
  })
  const podIP = addressOf(pod)
  const startTime = pod.status.startTime ?? now
  if (phase === 'Pending') return { phase, startTime }
  const state =
    exitCode === undefined
      ? { running: { startedAt: startTime } }
      : {
          running: null,
          terminated: {
            exitCode,
            reason: exitCode === 0 ? 'Completed' : 'Error',
            startedAt: startTime,
            finishedAt: now,
          },
        }
  return {
    phase,
    startTime,
    podIP,
    podIPs: [
      { ip: podIP },
      ...(told(pod, 'families') === '2' ? [{ ip: `fd00:${podIP.replaceAll('.', ':')}::1` }] : []),
    ],
    conditions: [is('Ready', isReady), is('ContainersReady', isReady), is('Initialized', true)],
    containerStatuses: containers.map(({ name, image = '' }) => ({
      name,
      image,
      imageID: image,
      ready: isReady,
      restartCount: 0,
      state,
    })),
  } as never
}
