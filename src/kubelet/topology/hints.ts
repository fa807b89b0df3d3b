/** Computes topology hints, the NUMA nodes that can satisfy a request, and merges hints by policy. Pure. */

/** `nodes` are NUMA nodes; undefined: any. */
export interface Hint {
  readonly nodes: readonly number[] | undefined
  readonly isPreferred: boolean
}

export type TopologyPolicy = 'none' | 'best-effort' | 'restricted' | 'single-numa-node'

/** The NUMA nodes of each unit; empty: any. */
export type UnitNodes = readonly (readonly number[])[]

export interface HintInput {
  /** NUMA nodes of the machine. */
  readonly nodes: readonly number[]
  readonly count: number
  /** All units, allocated or not. */
  readonly all: UnitNodes
  readonly available: UnitNodes
  /** Units that must be used. */
  readonly reusable: UnitNodes
}

/** All sets of nodes with enough units. A set is preferred if no smaller one could suffice on an empty machine. */
export function hintsFor({ nodes, count, all, available, reusable }: HintInput): Hint[] {
  const isAt = (mask: readonly number[], nodesOfUnit: readonly number[]): boolean =>
    nodesOfUnit.length === 0 || nodesOfUnit.some((node) => mask.includes(node))
  const countAt = (mask: readonly number[], unitNodes: UnitNodes): number =>
    unitNodes.filter((nodesOfUnit) => isAt(mask, nodesOfUnit)).length
  let smallest = nodes.length
  const hints: { nodes: readonly number[] }[] = []
  for (const mask of masksOf(nodes)) {
    if (countAt(mask, all) >= count) smallest = Math.min(smallest, mask.length)
    if (!reusable.every((nodesOfUnit) => isAt(mask, nodesOfUnit))) continue
    if (countAt(mask, available) + reusable.length >= count) hints.push({ nodes: mask })
  }
  return hints.map((hint) => ({ ...hint, isPreferred: hint.nodes.length === smallest }))
}

/** All non-empty sets of nodes, smaller ones first. */
export function masksOf(nodes: readonly number[]): number[][] {
  const masks = nodes.reduce<number[][]>((sets, node) => [...sets, ...sets.map((set) => [...set, node])], [[]])
  return masks.filter((mask) => mask.length > 0).sort((a, b) => a.length - b.length)
}

export interface Decision extends Hint {
  readonly isAdmitted: boolean
}

/** The decision without topology alignment. */
export const ANYWHERE: Decision = { nodes: undefined, isPreferred: false, isAdmitted: true }

/** `hints` per resource; undefined: no preference, empty: impossible. */
export function decide(
  policy: TopologyPolicy,
  nodes: readonly number[],
  hints: readonly (readonly Hint[] | undefined)[],
): Decision {
  if (policy === 'none') return ANYWHERE
  const candidates = hints.map((each): readonly Hint[] => {
    if (each === undefined) return [{ nodes: undefined, isPreferred: true }]
    return each.length === 0 ? [{ nodes: undefined, isPreferred: false }] : each
  })
  const isSingle = policy === 'single-numa-node'
  const fitting = isSingle ? candidates.map((each) => each.filter(isSingleNode)) : candidates
  const best = bestOf(fitting, nodes)
  const isAdmitted = policy === 'best-effort' || best.isPreferred
  const isAnywhere = isSingle && best.nodes?.length === nodes.length && nodes.length > 1
  return { nodes: isAnywhere ? undefined : best.nodes, isPreferred: best.isPreferred, isAdmitted }
}

const isSingleNode = ({ nodes, isPreferred }: Hint): boolean =>
  isPreferred && (nodes === undefined || nodes.length === 1)

/** The best merge over all combinations of one hint per resource. */
function bestOf(candidates: readonly (readonly Hint[])[], nodes: readonly number[]): Hint {
  const least = Math.max(0, ...candidates.map(narrowest))
  let best: Hint | undefined
  for (const choice of choicesOf(candidates)) {
    const merged = merge(choice, nodes)
    if (merged.nodes?.length === 0) continue
    if (best === undefined || isBetter(merged, best, least)) best = merged
  }
  return best ?? { nodes, isPreferred: false }
}

const narrowest = (hints: readonly Hint[]): number => {
  const counts = hints.flatMap(({ nodes }) => (nodes === undefined ? [] : [nodes.length]))
  return counts.length === 0 ? 0 : Math.min(...counts)
}

function* choicesOf(candidates: readonly (readonly Hint[])[]): Iterable<readonly Hint[]> {
  const [first, ...others] = candidates
  if (first === undefined) return yield []
  for (const hint of first) for (const rest of choicesOf(others)) yield [hint, ...rest]
}

/** The common nodes; preferred if all hints are equal and preferred. */
function merge(choice: readonly Hint[], nodes: readonly number[]): Hint {
  const masks = choice.flatMap((hint) => (hint.nodes === undefined ? [] : [hint.nodes]))
  const common = nodes.filter((node) => masks.every((mask) => mask.includes(node)))
  const [first] = masks
  const isSame = masks.every((mask) => mask.join() === first?.join())
  return { nodes: common, isPreferred: isSame && choice.every(({ isPreferred }) => isPreferred) }
}

/** `least` is the largest number of nodes that a resource needs. */
function isBetter(candidate: Hint, current: Hint, least: number): boolean {
  const [wide, size] = [current.nodes?.length ?? 0, candidate.nodes?.length ?? 0]
  if (candidate.isPreferred !== current.isPreferred) return candidate.isPreferred
  if (candidate.isPreferred || wide > least) return isNarrower(candidate, current)
  if (wide === least) return size === least && isNarrower(candidate, current)
  if (size > least) return false
  if (size === least) return true
  return size === wide ? isNarrower(candidate, current) : size > wide
}

/** Of two sets of equal size, the one without the highest differing number. */
export function isNarrower({ nodes: a = [] }: Hint, { nodes: b = [] }: Hint): boolean {
  if (a.length !== b.length) return a.length < b.length
  const own = a.filter((node) => !b.includes(node))
  const others = b.filter((node) => !a.includes(node))
  return own.length > 0 && Math.max(...own) < Math.max(...others)
}
