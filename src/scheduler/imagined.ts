/** A node as it might be: some pods more, some fewer, and what plugins would then make of it. */
import type { Case, Cases } from './framework.ts'
import type { NodeInfo } from './node-info.ts'
import type { PodInfo } from './pod-info.ts'

export class Imagined {
  readonly node: NodeInfo
  readonly cases: Cases

  /** What it is made from stays as it is. */
  constructor(node: NodeInfo, cases: Cases) {
    this.node = node.clone()
    this.cases = new Map<string, Case>(Array.from(cases, ([name, one]) => [name, one.fork?.() ?? one]))
  }

  add(other: PodInfo): void {
    this.node.add(other)
    for (const one of this.cases.values()) one.add?.(other, this.node)
  }

  remove(other: PodInfo): void {
    this.node.remove(other)
    for (const one of this.cases.values()) one.remove?.(other, this.node)
  }
}
