/**
 * Repeats scheduling decisions on given objects, without a running scheduler. A decision covers every node and every
 * filter, where the scheduler stops at the first filter that rejects a node.
 */
import { Namespaces, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { Informer } from '#client/informer.ts'
import type { Logger } from '#lib/log/log.ts'
import { createSeededRandom } from '#lib/random.ts'
import type { Steps } from '#lib/time-slicing.ts'
import { kindKey } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { isTerminal } from '#model/pods.ts'

import { Cluster } from './cluster/cluster.ts'
import type { NodeInfo } from './cluster/node-info.ts'
import { Nominations } from './cluster/nominations.ts'
import { PodInfo } from './cluster/pod-info.ts'
import { Decider } from './decision/decision.ts'
import { UNMETERED } from './decision/meters.ts'
import { explain } from './framework/explanation.ts'
import type { CycleState, Handle, PluginRefusal, Verdict } from './framework/framework.ts'
import type { EnabledPlugin, Profile } from './framework/profile.ts'
import { createProfile, DEFAULT_PROFILE } from './profiles.ts'

export interface Reconsidered {
  /** A PreEnqueue plugin keeps the pod out of the queue. */
  readonly gate?: PluginRefusal
  /** The pod is rejected before any node is considered. */
  readonly refused?: PluginRefusal
  /** In the scheduler's order. */
  readonly nodes: readonly NodeVerdict[]
  /** The scheduler's message, without its part about preemption. */
  readonly message: string
}

export interface NodeVerdict {
  readonly node: NodeInfo
  /** Empty: the pod fits. In the order of the filters. */
  readonly refusals: readonly PluginRefusal[]
  /** The pod fits only if these pods, which are nominated for the node, do not get it. */
  readonly reservedFor: readonly PodInfo[]
}

export interface ReconsiderationOptions {
  /** The objects of a kind; kinds without objects need no entry. */
  readonly objects: ReadonlyMap<string, readonly KubeObject[]>
  /** Plugins receive it, but decisions send no requests. */
  readonly client: ApiClient
  readonly isEnabled: (gate: string) => boolean
}

export class Reconsideration {
  readonly cluster: Cluster
  readonly #nominations = new Nominations()
  readonly #profile: Profile
  readonly #decider: Decider

  /** With the default profile. */
  private constructor(options: ReconsiderationOptions, of: Handle['of']) {
    this.cluster = new Cluster((name) => of(Namespaces).get(name)?.metadata.labels)
    const { client } = options
    const random = createSeededRandom(1)
    const handle: Handle = {
      ...options,
      ...NO_EFFECTS,
      of,
      cluster: this.cluster,
      nominations: this.#nominations,
      random,
      clock: client.clock,
    }
    this.#profile = createProfile(DEFAULT_PROFILE, handle)
    this.#decider = new Decider(this.#profile, { cluster: this.cluster, nominations: this.#nominations, random })
  }

  /** Takes in the nodes and pods. */
  static *of(options: ReconsiderationOptions): Steps<Reconsideration> {
    const of = informersOf(options)
    const made = new Reconsideration(options, of)
    for (const node of of(Nodes).list()) {
      made.cluster.setNode(node)
      yield
    }
    for (const pod of of(Pods).list()) {
      made.#add(pod)
      yield
    }
    return made
  }

  #add(pod: Pod): void {
    if (isTerminal(pod)) return
    const info = new PodInfo(pod)
    this.cluster.groups.add(info)
    const { nodeName = '' } = pod.spec
    if (nodeName === '') this.#nominations.set(info, pod.status.nominatedNodeName ?? '')
    else this.cluster.setPod(info, nodeName)
  }

  /** `only`: these nodes; the others count, but have no verdict. */
  *consider(pod: Pod, only?: ReadonlySet<string>): Steps<Reconsidered> {
    const info = new PodInfo(pod)
    const gate = gateOf(this.#profile.preEnqueue, info)
    const prepared = this.#decider.prepare(info)
    if ('plugin' in prepared) {
      const refused = { refused: prepared, nodes: [] }
      return { ...(gate && { gate }), ...refused, message: this.#messageOf(info, refused, []) }
    }
    const { cycleState, narrowedBy, nodes: named } = prepared
    const nodes: NodeVerdict[] = []
    for (const node of this.cluster.nodes) {
      if (only !== undefined && !only.has(node.name)) continue
      const isNamed = named === undefined || named.has(node.name)
      nodes.push(isNamed ? this.#verdictOn(info, node, cycleState) : unnamed(node, narrowedBy))
      yield
    }
    return { ...(gate && { gate }), nodes, message: this.#messageOf(info, { nodes }, narrowedBy) }
  }

  #verdictOn(pod: PodInfo, node: NodeInfo, cycleState: CycleState): NodeVerdict {
    const refusals = this.#profile.filter.flatMap(({ name, plugin }) => {
      const verdict = plugin.filter === undefined ? patiently(cycleState, name, node) : plugin.filter(pod, node)
      return verdict === undefined ? [] : [{ ...verdict, plugin: name }]
    })
    const isFree = this.#nominations.isEmpty || refusals.length > 0
    const beside = isFree ? undefined : this.#decider.filterWithNominated(pod, node, cycleState)
    if (beside === undefined) return { node, refusals, reservedFor: [] }
    return { node, refusals: [beside], reservedFor: this.#nominations.before(pod, node.name) }
  }

  #messageOf(
    pod: PodInfo,
    { refused, nodes }: Pick<Reconsidered, 'refused' | 'nodes'>,
    narrowedBy: readonly string[],
  ): string {
    const count = this.cluster.nodes.length
    if (count === 0) return 'no nodes available to schedule pods'
    const visited = nodes.filter(({ refusals }) => !refusals.some(({ reasons }) => reasons === UNNAMED_REASONS))
    const refusals = new Map(visited.flatMap(({ node, refusals: [first] }) => (first ? [[node.name, first]] : [])))
    const rest = { pod, cycleState: new Map(), feasible: [], nodes: [], start: 0, feasibleLimit: 0, visited: 0 }
    const search = { ...rest, refusals, narrowedBy, isUnfinished: false }
    return explain({ ...search, ...(refused !== undefined && { refused }) }, count, [])
  }
}

const UNNAMED_REASONS: readonly string[] = ["node(s) didn't satisfy plugin(s)"]

function unnamed(node: NodeInfo, narrowedBy: readonly string[]): NodeVerdict {
  const refusals = narrowedBy.map((plugin) => ({ plugin, code: 'unresolvable' as const, reasons: UNNAMED_REASONS }))
  return { node, refusals, reservedFor: [] }
}

/** A slow plugin gets as many time slices as it needs. */
function patiently(cycleState: CycleState, plugin: string, node: NodeInfo): Verdict {
  const state = cycleState.get(plugin)
  for (;;) {
    const verdict = state?.filter?.(node)
    if (verdict?.code !== 'busy') return verdict
    state?.resume?.()
  }
}

function gateOf(plugins: readonly EnabledPlugin[], pod: PodInfo): PluginRefusal | undefined {
  for (const { name, plugin } of plugins) {
    const verdict = plugin.preEnqueue?.(pod)
    if (verdict !== undefined) return { ...verdict, plugin: name }
  }
  return undefined
}

const SILENT: Logger = {
  info: () => undefined,
  error: () => undefined,
  v: () => undefined,
  withValues: () => SILENT,
  withName: () => SILENT,
}

/** The part of the handle that decisions do not use. */
const NO_EFFECTS: Pick<Handle, 'log' | 'meter' | 'record' | 'runInBackground' | 'activate' | 'cancelBinding'> = {
  log: SILENT,
  meter: UNMETERED,
  record: () => undefined,
  runInBackground: () => undefined,
  activate: () => undefined,
  cancelBinding: () => false,
}

function informersOf({ client, objects }: ReconsiderationOptions): Handle['of'] {
  const informers = new Map<string, Informer<KubeObject>>()
  return <T extends KubeObject>(kind: Kind<T>): Informer<T> => {
    const key = kindKey(kind)
    let found = informers.get(key)
    if (found === undefined) {
      const options = { client, kind, random: createSeededRandom(1), onError: () => undefined }
      found = Informer.holding<KubeObject>(options, objects.get(key) ?? [])
      informers.set(key, found)
    }
    // Entries under this key have this kind.
    return found as unknown as Informer<T>
  }
}
