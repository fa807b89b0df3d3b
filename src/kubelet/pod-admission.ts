/** Whether a node takes a pod that was bound to it: the scheduler has not seen every pod, and not every node. Pure. */
import type { Node, Pod } from '#apis/core/v1.ts'
import { parseQuantity, type Quantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'
import { fitsAffinity, isRepelled } from '#model/node-fit.ts'
import { podRequests } from '#model/pod-resources.ts'

export interface Rejection {
  readonly reason: string
  readonly text: string
}

/** Amounts by resource: CPU in thousandths. */
export type Sums = Map<string, number>

/** What a pod takes of a node. */
export function amountsOfPod(pod: Pick<Pod, 'spec' | 'status'>): Sums {
  const sums: Sums = new Map([['pods', 1]])
  for (const [name, amount] of podRequests(pod)) sums.set(name, amountOf(name, amount))
  return sums
}

function amountOf(name: string, amount: Quantity): number {
  return name === 'cpu' ? quantityMilliValue(amount) : quantityValue(amount)
}

/** Undefined: it is taken. `used` is what those who were taken before it take. */
export function judgePod(
  pod: Pick<Pod, 'metadata' | 'spec'>,
  node: Node,
  wanted: Sums,
  used: Sums,
): Rejection | undefined {
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
