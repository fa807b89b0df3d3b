/** Whether a node takes a pod that was bound to it: the scheduler has not seen every pod, and not every node. */
import type { Node, Pod } from '#apis/core/v1.ts'
import { parseQuantity, type Quantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'
import { fitsAffinity, isRepelled } from '#model/node-fit.ts'
import { podRequests } from '#model/pod-resources.ts'

import { type Note, rejected } from './kubelet-notes.ts'
import type { PodView } from './pod-status.ts'

export interface Rejection {
  readonly reason: string
  readonly text: string
}

/** What becomes of a pod that was not taken, and what is said of it. */
export const refusalOf = ({ reason, text }: Rejection): { verdict: NonNullable<PodView['verdict']>; note: Note } => ({
  verdict: { reason, message: `Pod was rejected: ${text}` },
  note: rejected(reason, text),
})

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

/** What the pods of a node take of it, each and together. */
export class Charges {
  readonly #charged = new Map<string, Sums>()
  readonly #used: Sums = new Map()

  /** Undefined: it is taken, and charged. Those who are there already are; so are all while nobody knows the node. */
  admit(pod: Pod, node: Node | undefined, isThere: boolean): Rejection | undefined {
    const wanted = amountsOfPod(pod)
    const rejection = isThere || node === undefined ? undefined : judgePod(pod, node, wanted, this.#used)
    if (rejection !== undefined) return rejection
    this.#charge(pod, wanted)
    return undefined
  }

  /** Undefined: it is granted what it asks for now, and charged with that instead. */
  resize(pod: Pod, node: Node | undefined): Rejection | undefined {
    const wanted = amountsOfPod(pod)
    const own = this.#charged.get(pod.metadata.uid ?? '')
    const others = new Map(Array.from(this.#used, ([name, amount]) => [name, amount - (own?.get(name) ?? 0)]))
    const rejection = node === undefined ? undefined : lacking(node, wanted, others)
    if (rejection !== undefined) return rejection
    this.release(pod)
    this.#charge(pod, wanted)
    return undefined
  }

  #charge({ metadata: { uid = '' } }: Pod, wanted: Sums): void {
    this.#charged.set(uid, wanted)
    for (const [name, amount] of wanted) this.#used.set(name, (this.#used.get(name) ?? 0) + amount)
  }

  release({ metadata: { uid = '' } }: Pod): void {
    for (const [name, amount] of this.#charged.get(uid) ?? [])
      this.#used.set(name, (this.#used.get(name) ?? 0) - amount)
    this.#charged.delete(uid)
  }
}

/** Undefined: it is taken. `used` is what those who were taken before it take. */
function judgePod(pod: Pick<Pod, 'metadata' | 'spec'>, node: Node, wanted: Sums, used: Sums): Rejection | undefined {
  return lacking(node, wanted, used) ?? mismatch(pod, node)
}

/** Those a node does not list are ignored, as by kubelets. */
function lacking({ status }: Node, wanted: Sums, used: Sums): Rejection | undefined {
  for (const [name, asked] of wanted) {
    const capacity = status.allocatable?.[name]
    if (capacity === undefined || asked === 0) continue
    const has = amountOf(name, parseQuantity(capacity))
    const taken = used.get(name) ?? 0
    if (taken + asked <= has) continue
    const amounts = `requested: ${asked}, used: ${taken}, capacity: ${has}`
    return { reason: `OutOf${name}`, text: `Node didn't have enough resource: ${name}, ${amounts}` }
  }
  return undefined
}

const failedPredicate = (name: string, why: string): Rejection => ({
  reason: name,
  text: `Predicate ${name} failed: ${why}`,
})

function mismatch({ spec }: Pick<Pod, 'spec'>, node: Node): Rejection | undefined {
  if (!fitsAffinity(spec, node)) {
    return failedPredicate('NodeAffinity', "node(s) didn't match Pod's node affinity/selector")
  }
  if (isRepelled(node.spec.taints, spec.tolerations, ['NoExecute'])) {
    return failedPredicate('TaintToleration', "node(s) had taints that the pod didn't tolerate")
  }
  if (spec.os !== undefined && spec.os.name !== 'linux') {
    return { reason: 'PodOSNotSupported', text: "Failed to admit pod as the OS field doesn't match node OS" }
  }
  return undefined
}
