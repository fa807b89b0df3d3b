/**
 * Chooses exclusive CPUs for a container: whole NUMA nodes and sockets first, then whole cores, then single CPUs of
 * cores in use. Pure.
 */
import type { Cpu } from './cpu-topology.ts'

type KeyOf = (cpu: Cpu) => string

const nodeOf: KeyOf = ({ node }) => String(node)
const socketOf: KeyOf = ({ socket }) => String(socket)
const coreOf: KeyOf = ({ core }) => core

/** Throws when not enough CPUs are available. */
export function pickCpus(all: readonly Cpu[], available: ReadonlySet<number>, count: number): Set<number> {
  const taken = new Set<number>()
  if (count > available.size) {
    const counts = `requested=${count}, available=${available.size}`
    throw new Error(`not enough cpus available to satisfy request: ${counts}`)
  }
  const free = (): Cpu[] => all.filter(({ id }) => available.has(id) && !taken.has(id))
  const levels = levelsOf(all)
  for (const level of [...levels, coreOf]) {
    for (const group of inOrder(free(), orderFor(level, levels))) {
      const whole = all.filter((cpu) => level(cpu) === group)
      const isFree = whole.every(({ id }) => available.has(id) && !taken.has(id))
      if (isFree && count - taken.size >= whole.length) whole.forEach(({ id }) => taken.add(id))
    }
  }
  const left = free()
  const cores = inOrder(left, orderFor(coreOf, levels))
  for (const core of cores) {
    for (const cpu of left) if (coreOf(cpu) === core && taken.size < count) taken.add(cpu.id)
  }
  return taken
}

/** Larger units first: NUMA nodes may be inside sockets or contain them. */
function levelsOf(all: readonly Cpu[]): readonly [KeyOf, KeyOf] {
  const sockets = new Set(all.map(socketOf)).size
  const nodes = new Set(all.map(nodeOf)).size
  return sockets >= nodes ? [nodeOf, socketOf] : [socketOf, nodeOf]
}

/** The levels from the largest down to `level`. */
function orderFor(level: KeyOf, [first, second]: readonly [KeyOf, KeyOf]): readonly KeyOf[] {
  if (level === first) return [first]
  return level === second ? [first, second] : [first, second, level]
}

/** Groups of the last level, fewest free CPUs first, ordered by the levels above in the same way. */
function inOrder(cpus: readonly Cpu[], [level, ...below]: readonly KeyOf[]): string[] {
  if (level === undefined) return []
  const groups = Map.groupBy(cpus, level)
  const sorted = [...groups].sort(([, a], [, b]) => a.length - b.length || lowest(a) - lowest(b))
  if (below.length === 0) return sorted.map(([key]) => key)
  return [...new Set(sorted.flatMap(([, members]) => inOrder(members, below)))]
}

const lowest = (cpus: readonly Cpu[]): number => Math.min(...cpus.map(({ id }) => id))
