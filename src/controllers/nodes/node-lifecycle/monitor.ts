/** Checks all nodes periodically: marks unresponsive ones and queues them for the NoExecute taint of their zone. */
import { Leases } from '#apis/coordination/v1.ts'
import { type Node, type NodeCondition, Nodes } from '#apis/core/v1.ts'
import { causeOf, withCauses } from '#lib/causes.ts'
import { sleep } from '#lib/clock.ts'
import { keyOf, semanticEqual } from '#meta/object.ts'

import type { ControllerContext } from '../../controller.ts'
import { recordNodeEvent, recordNodeStatus } from '../node-events.ts'
import { podsOn } from '../node-pods.ts'
import { isSilent, type NodeHealth, observe, readyOf, unknownConditions } from './health.ts'
import { markNotReady } from './pods.ts'
import { changeTaints, DRIVING, drivingTaint, hasTaint } from './taints.ts'
import { type Census, type TaintQueue, zoneOf, Zones } from './zones.ts'

const AT_ONCE = 8
const TRIES = 5
const RETRY_MS = 20
/** The period of the taint queues. */
const TAINT_MS = 100
const LEASES = 'kube-node-lease'
const UNCOUNTED = 'node.kubernetes.io/exclude-disruption'

/** A node after a check. */
interface CheckedNode {
  readonly node: Node
  /** The `Ready` condition before the check; undefined if it had none. */
  readonly before: NodeCondition | undefined
}

export class Monitor {
  readonly #context: ControllerContext
  readonly #zones: Zones
  readonly #known = new Map<string, Node>()
  readonly #health = new Map<string, NodeHealth>()
  /** Nodes with pods that could not be marked. */
  readonly #unfinished = new Set<string>()
  /** Zones with metrics. */
  readonly #reportedZones = new Set<string>()
  #isTainting = false

  constructor(context: ControllerContext) {
    this.#context = context
    this.#zones = new Zones(context.clock, context.settings)
  }

  /** The node's `Ready` condition at the last check. */
  readyOf(node: string): NodeCondition | undefined {
    return this.#health.get(node)?.ready
  }

  async check(): Promise<void> {
    const { clock, meters } = this.#context
    const startMs = clock.elapsed()
    await this.#checkAll()
    const seconds = meters.family('node_collector_update_all_nodes_health_duration_seconds').labels()
    seconds.observe((clock.elapsed() - startMs) / 1000)
  }

  async #checkAll(): Promise<void> {
    const nodes = [...this.#context.cache.list(Nodes)]
    await this.#register(nodes)
    const censuses = new Map<string, Census>()
    const rest = nodes.values()
    const work = async (): Promise<void> => {
      for (const node of rest) await this.#checkNode(node, censuses)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    this.#recordZones(censuses)
    const turn = this.#zones.count(censuses)
    if (turn === 'all-lost') for (const node of nodes) await this.#tryRemoveTaints(node)
    if (turn === 'some-back') this.#beginAgain()
    this.#taintSoon()
  }

  async #register(nodes: readonly Node[]): Promise<void> {
    for (const node of nodes) {
      const { name = '' } = node.metadata
      if (this.#known.has(name)) continue
      recordNodeEvent(node, 'RegisteredNode', `Registered Node ${name} in Controller`, this.#context)
      this.#known.set(name, node)
      await this.#tryRemoveTaints(node)
    }
    const there = new Set(nodes.map(({ metadata }) => metadata.name))
    for (const [name, node] of this.#known) {
      if (there.has(name)) continue
      recordNodeEvent(node, 'RemovingNode', `Removing Node ${name} from Controller`, this.#context)
      for (const memory of [this.#known, this.#health, this.#unfinished]) memory.delete(name)
    }
  }

  /** An empty zone reports the values of a healthy one. */
  #recordZones(censuses: ReadonlyMap<string, Census>): void {
    const { meters } = this.#context
    for (const zone of censuses.keys()) this.#reportedZones.add(zone)
    for (const zone of this.#reportedZones) {
      const { ready, all } = censuses.get(zone) ?? { ready: 0, all: 0 }
      meters.family('node_collector_zone_size').labels(zone).set(all)
      meters
        .family('node_collector_zone_health')
        .labels(zone)
        .set(all === 0 ? 100 : (100 * ready) / all)
      meters
        .family('node_collector_unhealthy_nodes_in_zone')
        .labels(zone)
        .set(all - ready)
      meters.family('node_collector_evictions_total').labels(zone)
    }
  }

  /** An error of one node does not stop the checks of others. */
  async #checkNode(found: Node, censuses: Map<string, Census>): Promise<void> {
    const { log, signal, clock, meters } = this.#context
    const { name = '' } = found.metadata
    const startMs = clock.elapsed()
    try {
      const looked = await this.#probe(found)
      const { node } = looked
      const status = readyOf(node)?.status
      if (node.metadata.labels?.[UNCOUNTED] === undefined) {
        const { ready, all } = censuses.get(zoneOf(node)) ?? { ready: 0, all: 0 }
        censuses.set(zoneOf(node), { ready: ready + (status === 'True' ? 1 : 0), all: all + 1 })
      }
      if (status === undefined) return
      await this.#queue(node, status)
      await this.#markPods(looked, status)
    } catch (error) {
      if (!signal.aborted) log.error(error, 'Update health of Node from Controller error', { node: name })
    }
    const seconds = meters.family('node_collector_update_node_health_duration_seconds').labels()
    seconds.observe((clock.elapsed() - startMs) / 1000)
  }

  async #probe(found: Node): Promise<CheckedNode> {
    const { client, clock, signal } = this.#context
    const { name = '' } = found.metadata
    let node = found
    for (let tries = 1; ; tries++) {
      try {
        return await this.#probeOnce(node)
      } catch (error) {
        if (tries >= TRIES) throw error
      }
      await sleep(clock, RETRY_MS, signal)
      node = await client.get(Nodes, { name }, { signal })
    }
  }

  async #probeOnce(node: Node): Promise<CheckedNode> {
    const { cache, client, clock, settings, signal } = this.#context
    const { name = '' } = node.metadata
    const before = readyOf(node)
    const nowMs = clock.now()
    const lease = cache.get(Leases, keyOf(LEASES, name))
    const health = observe(this.#health.get(name), node, lease, nowMs)
    this.#health.set(name, health)
    if (!isSilent(health, node, settings, nowMs)) return { node, before }
    const marked = { ...node, status: { ...node.status, conditions: unknownConditions(node, nowMs) } }
    if (semanticEqual(readyOf(marked), before)) return { node, before }
    // The node is silent since this lease or status.
    const last = health.lease === undefined ? causeOf(Nodes, node) : causeOf(Leases, health.lease)
    const written = await withCauses([last], () => client.updateStatus(Nodes, marked, { signal }))
    this.#health.set(name, { seenMs: health.seenMs, ready: readyOf(written), lease })
    return { node: written, before }
  }

  /** Replaces one NoExecute taint by the other at once; a node without either waits in the queue. */
  async #queue(node: Node, status: string): Promise<void> {
    if (status === 'True') return this.#removeTaints(node)
    const { wanted, other } = drivingTaint(status)
    if (hasTaint(node, other)) return changeTaints(node, { add: [wanted], remove: [other] }, this.#context)
    const { queue } = this.#zones.of(node)
    const { name = '' } = node.metadata
    if (!hasTaint(node, wanted) && !queue.has(name)) queue.remove(name)
    queue.add(name)
  }

  async #markPods({ node, before }: CheckedNode, status: string): Promise<void> {
    const { name = '' } = node.metadata
    const isLost = status !== 'True' && before?.status === 'True'
    if (isLost) recordNodeStatus(node, 'NodeNotReady', this.#context)
    if (isLost || (this.#unfinished.has(name) && before?.status !== 'True')) {
      this.#unfinished.add(name)
      await withCauses([causeOf(Nodes, node)], () => markNotReady(podsOn(name, this.#context.cache), this.#context))
    }
    this.#unfinished.delete(name)
  }

  async #tryRemoveTaints(node: Node): Promise<void> {
    const { log, signal } = this.#context
    await this.#removeTaints(node).catch((error: unknown) => {
      if (!signal.aborted) log.error(error, 'Failed to remove taints from node', { node: node.metadata.name })
    })
  }

  async #removeTaints(node: Node): Promise<void> {
    const { name = '' } = node.metadata
    const { queue } = this.#zones.of(node)
    await changeTaints(node, { add: [], remove: DRIVING }, this.#context)
    queue.remove(name)
  }

  /** While all zones were unresponsive, no node's health could be observed. */
  #beginAgain(): void {
    const seenMs = this.#context.clock.now()
    for (const [name, health] of this.#health) this.#health.set(name, { ...health, seenMs })
  }

  #taintSoon(): void {
    const { clock, signal, log } = this.#context
    const isWaiting = Array.from(this.#zones.all(), ({ queue }) => queue.size).some((size) => size > 0)
    if (this.#isTainting || !isWaiting || signal.aborted) return
    this.#isTainting = true
    const taint = async (): Promise<void> => {
      for (const { queue } of this.#zones.all()) await this.#taint(queue)
    }
    clock.after(
      TAINT_MS,
      () => {
        void taint()
          .catch((error: unknown) => {
            if (!signal.aborted) log.error(error, 'Failed to taint nodes')
          })
          .finally(() => {
            this.#isTainting = false
            this.#taintSoon()
          })
      },
      { background: true },
    )
  }

  #taint(queue: TaintQueue): Promise<void> {
    const { cache, log, meters, signal } = this.#context
    return queue.serve(async (name) => {
      const node = cache.get(Nodes, name)
      const status = node && readyOf(node)?.status
      if (node === undefined || status === 'True') return true
      if (status === undefined) return false
      const { wanted, other } = drivingTaint(status)
      try {
        await changeTaints(node, { add: [wanted], remove: [other] }, this.#context)
        meters.family('node_collector_evictions_total').labels(zoneOf(node)).inc()
        return true
      } catch (error) {
        if (!signal.aborted) log.error(error, 'Failed to taint node', { node: name })
        return false
      }
    })
  }
}
