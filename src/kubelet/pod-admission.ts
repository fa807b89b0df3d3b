/** Whether a node takes a pod that was bound to it: the scheduler has not seen every pod, and not every node. */
import type { Node, Pod } from '#apis/core/v1.ts'
import { parseQuantity, type Quantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'
import { podRequests } from '#model/pod-resources.ts'

import {
  type HostPort,
  hostPortsOf,
  type NodeTraits,
  type Rejection,
  RULES_AFTER,
  RULES_BEFORE,
  takenPort,
} from './admission-rules.ts'
import { type Note, rejected } from './kubelet-notes.ts'
import type { PodView } from './pod-status.ts'
import type { Amounts } from './preemption.ts'

/** What becomes of a pod that was not taken, and what is said of it. */
export const refusalOf = ({ reason, text }: Rejection): { verdict: NonNullable<PodView['verdict']>; note: Note } => ({
  verdict: { reason, message: `Pod was rejected: ${text}` },
  note: rejected(reason, text),
})

/** Whatever else a pod is refused for is not told apart where it is counted. */
const COUNTED_REASONS: ReadonlySet<string> = new Set([
  'AppArmor',
  'PodOSSelectorNodeLabelDoesNotMatch',
  'PodOSNotSupported',
  'InvalidNodeInfo',
  'SupplementalGroupsPolicyNotSupported',
  'UnexpectedAdmissionError',
  'OutOfcpu',
  'OutOfmemory',
  'OutOfephemeral-storage',
  'OutOfpods',
  'Evicted',
  'SysctlForbidden',
  'TopologyAffinityError',
  'NodeShutdown',
])

/** Under which label a refusal is counted, so that there are never many. */
export function rejectionLabel({ reason }: Rejection): string {
  if (COUNTED_REASONS.has(reason)) return reason
  return reason.startsWith('OutOf') ? 'OutOfExtendedResources' : 'Other'
}

/** Amounts by resource: CPU in thousandths. */
type Sums = Map<string, number>

/** What a pod takes of a node. */
function amountsOfPod(pod: Pick<Pod, 'spec' | 'status'>): Sums {
  const sums: Sums = new Map([['pods', 1]])
  for (const [name, amount] of podRequests(pod)) sums.set(name, amountOf(name, amount))
  return sums
}

function amountOf(name: string, amount: Quantity): number {
  return name === 'cpu' ? quantityMilliValue(amount) : quantityValue(amount)
}

interface Charge {
  readonly sums: Sums
  readonly ports: readonly HostPort[]
}

/** What the pods of a node take of it, each and together. */
export class Charges {
  readonly #charged = new Map<string, Charge>()
  readonly #used: Sums = new Map()

  /** Undefined: it is taken, and charged. Those who are there already are; so are all while nobody knows the node. */
  admit(pod: Pod, node: Node | undefined, isThere: boolean, traits: NodeTraits = {}): Rejection | undefined {
    const wanted = amountsOfPod(pod)
    const rejection = isThere || node === undefined ? undefined : this.#judge(pod, node, wanted, traits)
    if (rejection !== undefined) return rejection
    this.#charge(pod, wanted)
    return undefined
  }

  /** Undefined: it is granted what it asks for now, and charged with that instead. */
  resize(pod: Pod, node: Node | undefined): Rejection | undefined {
    const wanted = amountsOfPod(pod)
    const own = this.#charged.get(pod.metadata.uid ?? '')?.sums
    const others = new Map(Array.from(this.#used, ([name, amount]) => [name, amount - (own?.get(name) ?? 0)]))
    const rejection = node === undefined ? undefined : lacking(node, wanted, others)
    if (rejection !== undefined) return rejection
    this.release(pod)
    this.#charge(pod, wanted)
    return undefined
  }

  /** What the node lacks for a pod, of each resource. */
  missing(pod: Pod, node: Node): Amounts {
    const lacks = Array.from(amountsOfPod(pod), ([name, asked]) => {
      const has = capacityOf(node, name)
      return [name, has === undefined || asked === 0 ? 0 : (this.#used.get(name) ?? 0) + asked - has] as const
    })
    return new Map(lacks.filter(([, amount]) => amount > 0))
  }

  /** What a pod was charged with. */
  takenBy({ metadata: { uid = '' } }: Pod): Amounts {
    return this.#charged.get(uid)?.sums ?? new Map()
  }

  release({ metadata: { uid = '' } }: Pod): void {
    for (const [name, amount] of this.#charged.get(uid)?.sums ?? [])
      this.#used.set(name, (this.#used.get(name) ?? 0) - amount)
    this.#charged.delete(uid)
  }

  #charge({ metadata: { uid = '' }, spec }: Pod, sums: Sums): void {
    this.#charged.set(uid, { sums, ports: hostPortsOf(spec) })
    for (const [name, amount] of sums) this.#used.set(name, (this.#used.get(name) ?? 0) + amount)
  }

  #judge(pod: Pod, node: Node, wanted: Sums, traits: NodeTraits): Rejection | undefined {
    for (const rule of RULES_BEFORE) {
      const rejection = rule(pod, node, traits)
      if (rejection !== undefined) return rejection
    }
    const noRoom = lacking(node, wanted, this.#used)
    if (noRoom !== undefined) return noRoom
    for (const rule of RULES_AFTER) {
      const rejection = rule(pod, node, traits)
      if (rejection !== undefined) return rejection
    }
    const taken = [...this.#charged.values()].flatMap(({ ports }) => ports)
    return takenPort(hostPortsOf(pod.spec), taken)
  }
}

function capacityOf({ status }: Node, name: string): number | undefined {
  const amount = status.allocatable?.[name]
  return amount === undefined ? undefined : amountOf(name, parseQuantity(amount))
}

/** Those a node does not list are ignored, as by kubelets. */
function lacking(node: Node, wanted: Sums, used: Sums): Rejection | undefined {
  for (const [name, asked] of wanted) {
    const has = capacityOf(node, name)
    if (has === undefined || asked === 0) continue
    const taken = used.get(name) ?? 0
    if (taken + asked <= has) continue
    const amounts = `requested: ${asked}, used: ${taken}, capacity: ${has}`
    return { reason: `OutOf${name}`, text: `Node didn't have enough resource: ${name}, ${amounts}` }
  }
  return undefined
}
