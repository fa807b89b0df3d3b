/**
 * From which nodes of memory a container gets its own. All kinds that it asks for come from the same nodes. A node serves either
 * containers that fit into it alone, or one group of nodes together, never both: so no group is torn by a small container. Pure.
 */
import { type Hint, isNarrower, masksOf } from './hints.ts'
import { isSameGroup, type MachineState, sumOf } from './memory-table.ts'

/** Bytes by kind of memory. */
export type MemoryAsk = ReadonlyMap<string, number>

export interface MemoryQuestion {
  readonly machine: MachineState
  readonly ask: MemoryAsk
  /** What init containers of the same pod had from exactly those nodes and leave. */
  readonly reusable: (nodes: readonly number[], type: string) => number
}

/** Every set of nodes that has enough; those are preferred than which none could be smaller on an empty machine. */
export function memoryHints({ machine, ask, reusable }: MemoryQuestion): Hint[] {
  const nodes = Object.keys(machine)
    .map(Number)
    .sort((a, b) => a - b)
  const asks = [...ask]
  let smallest = nodes.length
  const fitting: (readonly number[])[] = []
  for (const mask of masksOf(nodes)) {
    if (asks.some(([type, size]) => sumOf(machine, mask, type, 'allocatable') < size)) continue
    smallest = Math.min(smallest, mask.length)
    if (mask.length === 1 ? isGrouped(machine, mask) : tearsGroups(machine, mask)) continue
    const isEnough = asks.every(([type, size]) => sumOf(machine, mask, type, 'free') + reusable(mask, type) >= size)
    if (isEnough) fitting.push(mask)
  }
  return fitting.map((mask) => ({ nodes: mask, isPreferred: mask.length === smallest }))
}

const isGrouped = (machine: MachineState, mask: readonly number[]): boolean =>
  mask.some((id) => (machine[id]?.cells.length ?? 1) > 1)

/** One of them serves single containers, or another group. */
function tearsGroups(machine: MachineState, mask: readonly number[]): boolean {
  if (mask.length === 1) return false
  return mask.some((id) => {
    const { numberOfAssignments = 0, cells = [] } = machine[id] ?? {}
    return numberOfAssignments > 0 && !isSameGroup(cells, mask)
  })
}

/** `wish`: of all that the container is given, together. Throws what the pod is refused for, in upstream's words. */
export function pickMemoryNodes(question: MemoryQuestion, wish: Hint): readonly number[] {
  const { machine, ask } = question
  const { isPreferred } = wish
  const refuse = (why: string): never => {
    throw new Error(`[memorymanager] ${why}`)
  }
  const settle = (hints: readonly Hint[], missing: string, how: string): readonly number[] => {
    const best = bestOf(hints)
    if (best?.nodes === undefined) return refuse(missing)
    return !best.isPreferred && isPreferred ? refuse(`failed to find the ${how} preferred hint`) : best.nodes
  }
  const first =
    wish.nodes ??
    settle(
      memoryHints(question),
      'failed to get the default NUMA affinity, no NUMA nodes with enough memory is available',
      'default',
    )
  const isEnough = [...ask].every(([type, size]) => sumOf(machine, first, type, 'free') >= size)
  const wider = (): Hint[] => memoryHints(question).filter(({ nodes = [] }) => first.every((id) => nodes.includes(id)))
  const nodes = isEnough
    ? first
    : settle(wider(), 'failed to find NUMA nodes to extend the current topology hint', 'extended')
  return tearsGroups(machine, nodes) ? refuse('preferred hint violates NUMA node allocation') : nodes
}

/** Preferred ones first, then the narrowest. */
function bestOf(hints: readonly Hint[]): Hint | undefined {
  return hints.reduce<Hint | undefined>((best, hint) => {
    if (best === undefined) return hint
    if (hint.isPreferred !== best.isPreferred) return hint.isPreferred ? hint : best
    return isNarrower(hint, best) ? hint : best
  }, undefined)
}
