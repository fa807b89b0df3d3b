/** Chooses the NUMA nodes for the memory of a container; all memory types come from the same nodes. Pure. */
import { type Hint, isNarrower, masksOf } from './hints.ts'
import { isSameGroup, type MachineState, sumOf } from './memory-table.ts'

/** Bytes by memory type. */
export type MemoryRequest = ReadonlyMap<string, number>

export interface MemoryInput {
  readonly machine: MachineState
  readonly request: MemoryRequest
  /** Memory that ended init containers of the pod had on exactly these nodes. */
  readonly reusable: (nodes: readonly number[], type: string) => number
}

/** All sets of nodes with enough memory. A set is preferred if no smaller one could suffice on an empty machine. */
export function memoryHints({ machine, request, reusable }: MemoryInput): Hint[] {
  const nodes = Object.keys(machine)
    .map(Number)
    .sort((a, b) => a - b)
  const requests = [...request]
  let smallest = nodes.length
  const fitting: (readonly number[])[] = []
  for (const mask of masksOf(nodes)) {
    if (requests.some(([type, size]) => sumOf(machine, mask, type, 'allocatable') < size)) continue
    smallest = Math.min(smallest, mask.length)
    if (mask.length === 1 ? isGrouped(machine, mask) : tearsGroups(machine, mask)) continue
    const isEnough = requests.every(([type, size]) => sumOf(machine, mask, type, 'free') + reusable(mask, type) >= size)
    if (isEnough) fitting.push(mask)
  }
  return fitting.map((mask) => ({ nodes: mask, isPreferred: mask.length === smallest }))
}

const isGrouped = (machine: MachineState, mask: readonly number[]): boolean =>
  mask.some((id) => (machine[id]?.cells.length ?? 1) > 1)

/** True if one of the nodes serves single containers or another group. */
function tearsGroups(machine: MachineState, mask: readonly number[]): boolean {
  if (mask.length === 1) return false
  return mask.some((id) => {
    const { numberOfAssignments = 0, cells = [] } = machine[id] ?? {}
    return numberOfAssignments > 0 && !isSameGroup(cells, mask)
  })
}

/** `hint` is the merged hint of the container. Throws upstream's text of the rejection. */
export function pickMemoryNodes(input: MemoryInput, hint: Hint): readonly number[] {
  const { machine, request } = input
  const { isPreferred } = hint
  const refuse = (why: string): never => {
    throw new Error(`[memorymanager] ${why}`)
  }
  const settle = (hints: readonly Hint[], missing: string, how: string): readonly number[] => {
    const best = bestOf(hints)
    if (best?.nodes === undefined) return refuse(missing)
    return !best.isPreferred && isPreferred ? refuse(`failed to find the ${how} preferred hint`) : best.nodes
  }
  const first =
    hint.nodes ??
    settle(
      memoryHints(input),
      'failed to get the default NUMA affinity, no NUMA nodes with enough memory is available',
      'default',
    )
  const isEnough = [...request].every(([type, size]) => sumOf(machine, first, type, 'free') >= size)
  const wider = (): Hint[] => memoryHints(input).filter(({ nodes = [] }) => first.every((id) => nodes.includes(id)))
  const nodes = isEnough
    ? first
    : settle(wider(), 'failed to find NUMA nodes to extend the current topology hint', 'extended')
  return tearsGroups(machine, nodes) ? refuse('preferred hint violates NUMA node allocation') : nodes
}

/** Preferred hints first, then the narrowest. */
function bestOf(hints: readonly Hint[]): Hint | undefined {
  return hints.reduce<Hint | undefined>((best, hint) => {
    if (best === undefined) return hint
    if (hint.isPreferred !== best.isPreferred) return hint.isPreferred ? hint : best
    return isNarrower(hint, best) ? hint : best
  }, undefined)
}
