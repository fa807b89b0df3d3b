/** A copy of a node with pods added or removed, and with the plugins' state for it, to simulate preemption. */
import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import type { CycleState, PluginState } from '../framework/framework.ts'

export class HypotheticalNode {
  readonly node: NodeInfo
  readonly cycleState: CycleState

  /** Copies; the originals stay unchanged. */
  constructor(node: NodeInfo, cycleState: CycleState) {
    this.node = node.clone()
    this.cycleState = new Map<string, PluginState>(Array.from(cycleState, ([name, one]) => [name, one.fork?.() ?? one]))
  }

  add(other: PodInfo): void {
    this.node.add(other)
    for (const one of this.cycleState.values()) one.add?.(other, this.node)
  }

  remove(other: PodInfo): void {
    this.node.remove(other)
    for (const one of this.cycleState.values()) one.remove?.(other, this.node)
  }
}
