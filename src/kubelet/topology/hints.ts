/** Where in a machine something could come from, and how wishes of several are brought together. Pure. */

/** Nodes of memory; undefined: anywhere. */
export interface Hint {
  readonly nodes: readonly number[] | undefined
  readonly isPreferred: boolean
}

export type TopologyPolicy = 'none' | 'best-effort' | 'restricted' | 'single-numa-node'

/** A thing that can be given, and the nodes of memory at which it is; none: anywhere. */
export type Places = readonly (readonly number[])[]

export interface HintAsk {
  /** Of the machine. */
  readonly nodes: readonly number[]
  readonly count: number
  /** Whether somebody has them or not. */
  readonly all: Places
  readonly available: Places
  /** What must be among them. */
  readonly reusable: Places
}

/** Every set of nodes that has enough; those are preferred than which none could be smaller on an empty machine. */
export function hintsFor({ nodes, count, all, available, reusable }: HintAsk): Hint[] {
  const isAt = (mask: readonly number[], place: readonly number[]): boolean =>
    place.length === 0 || place.some((node) => mask.includes(node))
  const countAt = (mask: readonly number[], places: Places): number =>
    places.filter((place) => isAt(mask, place)).length
  let smallest = nodes.length
  const hints: { nodes: readonly number[] }[] = []
  for (const mask of masksOf(nodes)) {
    if (countAt(mask, all) >= count) smallest = Math.min(smallest, mask.length)
    if (!reusable.every((place) => isAt(mask, place))) continue
    if (countAt(mask, available) + reusable.length >= count) hints.push({ nodes: mask })
  }
  return hints.map((hint) => ({ ...hint, isPreferred: hint.nodes.length === smallest }))
}

/** All sets of nodes but the empty one, the smaller first. */
export function masksOf(nodes: readonly number[]): number[][] {
  const masks = nodes.reduce<number[][]>((sets, node) => [...sets, ...sets.map((set) => [...set, node])], [[]])
  return masks.filter((mask) => mask.length > 0).sort((a, b) => a.length - b.length)
}

export interface Decision extends Hint {
  readonly isAdmitted: boolean
}

/** Nobody asks where anything is. */
export const ANYWHERE: Decision = { nodes: undefined, isPreferred: false, isAdmitted: true }

/** `hints`: of each resource; undefined: it does not care, an empty list: there is nothing that would do. */
export function decide(
  policy: TopologyPolicy,
  nodes: readonly number[],
  hints: readonly (readonly Hint[] | undefined)[],
): Decision {
  if (policy === 'none') return ANYWHERE
  const wishes = hints.map((each): readonly Hint[] => {
    if (each === undefined) return [{ nodes: undefined, isPreferred: true }]
    return each.length === 0 ? [{ nodes: undefined, isPreferred: false }] : each
  })
  const isSingle = policy === 'single-numa-node'
  const fitting = isSingle ? wishes.map((each) => each.filter(isSingleNode)) : wishes
  const best = bestOf(fitting, nodes)
  const isAdmitted = policy === 'best-effort' || best.isPreferred
  const isAnywhere = isSingle && best.nodes?.length === nodes.length && nodes.length > 1
  return { nodes: isAnywhere ? undefined : best.nodes, isPreferred: best.isPreferred, isAdmitted }
}

const isSingleNode = ({ nodes, isPreferred }: Hint): boolean =>
  isPreferred && (nodes === undefined || nodes.length === 1)

/** One hint of each, in every way, brought together: of those the best. */
function bestOf(wishes: readonly (readonly Hint[])[], nodes: readonly number[]): Hint {
  const least = Math.max(0, ...wishes.map(narrowest))
  let best: Hint | undefined
  for (const choice of choicesOf(wishes)) {
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

function* choicesOf(wishes: readonly (readonly Hint[])[]): Iterable<readonly Hint[]> {
  const [first, ...others] = wishes
  if (first === undefined) return yield []
  for (const hint of first) for (const rest of choicesOf(others)) yield [hint, ...rest]
}

/** What all of them have in common; preferred when all prefer the very same. */
function merge(choice: readonly Hint[], nodes: readonly number[]): Hint {
  const masks = choice.flatMap((hint) => (hint.nodes === undefined ? [] : [hint.nodes]))
  const common = nodes.filter((node) => masks.every((mask) => mask.includes(node)))
  const [first] = masks
  const isSame = masks.every((mask) => mask.join() === first?.join())
  return { nodes: common, isPreferred: isSame && choice.every(({ isPreferred }) => isPreferred) }
}

/** `least`: how many nodes the one that needs most of them needs. */
function isBetter(candidate: Hint, current: Hint, least: number): boolean {
  const [wide, size] = [current.nodes?.length ?? 0, candidate.nodes?.length ?? 0]
  if (candidate.isPreferred !== current.isPreferred) return candidate.isPreferred
  if (candidate.isPreferred || wide > least) return isNarrower(candidate, current)
  if (wide === least) return size === least && isNarrower(candidate, current)
  if (size > least) return false
  if (size === least) return true
  return size === wide ? isNarrower(candidate, current) : size > wide
}

/** Of two of the same size the one without the highest number that they do not share. */
export function isNarrower({ nodes: a = [] }: Hint, { nodes: b = [] }: Hint): boolean {
  if (a.length !== b.length) return a.length < b.length
  const own = a.filter((node) => !b.includes(node))
  const others = b.filter((node) => !a.includes(node))
  return own.length > 0 && Math.max(...own) < Math.max(...others)
}
