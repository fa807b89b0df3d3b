/** Pod admission: checks whether the node can run a pod bound to it, since bindings may bypass the scheduler. */
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
import { type EventSpec, rejected } from './events.ts'
import type { PodView } from './pod-status.ts'
import type { Amounts } from './preemption.ts'

/** The failure and the event of a rejected pod. */
export const refusalOf = ({
  reason,
  text,
}: Rejection): { verdict: NonNullable<PodView['verdict']>; event: EventSpec } => ({
  verdict: { reason, message: `Pod was rejected: ${text}` },
  event: rejected(reason, text),
})

/** Reasons with their own metric label; the others share a label. */
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

/** The metric label of a rejection, from a bounded set. */
export function rejectionLabel({ reason }: Rejection): string {
  if (COUNTED_REASONS.has(reason)) return reason
  return reason.startsWith('OutOf') ? 'OutOfExtendedResources' : 'Other'
}

/** Amounts by resource; CPU in millicores. */
type Sums = Map<string, number>

/** The resources that a pod uses of the node. */
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

/** Resources allocated to the pods of a node, per pod and in total. */
export class AllocatedResources {
  readonly #charged = new Map<string, Charge>()
  readonly #used: Sums = new Map()

  /**
   * Undefined: the pod is admitted and charged. Pods that already run (`isThere`) are always admitted, as are all
   * pods while the Node is unknown.
   */
  admit(pod: Pod, node: Node | undefined, isThere: boolean, traits: NodeTraits = {}): Rejection | undefined {
    const wanted = amountsOfPod(pod)
    const rejection = isThere || node === undefined ? undefined : this.#check(pod, node, wanted, traits)
    if (rejection !== undefined) return rejection
    this.#charge(pod, wanted)
    return undefined
  }

  /** Undefined: the resize fits, and the pod is charged with the new amounts. */
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

  /** The amount that the node lacks for a pod, by resource. */
  missing(pod: Pod, node: Node): Amounts {
    const lacks = Array.from(amountsOfPod(pod), ([name, requested]) => {
      const has = capacityOf(node, name)
      return [name, has === undefined || requested === 0 ? 0 : (this.#used.get(name) ?? 0) + requested - has] as const
    })
    return new Map(lacks.filter(([, amount]) => amount > 0))
  }

  /** The amounts charged to a pod. */
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

  #check(pod: Pod, node: Node, wanted: Sums, traits: NodeTraits): Rejection | undefined {
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

/** Resources that the node does not list are ignored, as in upstream. */
function lacking(node: Node, wanted: Sums, used: Sums): Rejection | undefined {
  for (const [name, requested] of wanted) {
    const has = capacityOf(node, name)
    if (has === undefined || requested === 0) continue
    const taken = used.get(name) ?? 0
    if (taken + requested <= has) continue
    const amounts = `requested: ${requested}, used: ${taken}, capacity: ${has}`
    return { reason: `OutOf${name}`, text: `Node didn't have enough resource: ${name}, ${amounts}` }
  }
  return undefined
}
