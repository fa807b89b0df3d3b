/**
 * Which processors a container gets for its own: whole nodes and sockets where it needs that many, then whole cores, then
 * siblings of cores that are in use already, so that what is left stays whole. Pure.
 */
import type { Cpu } from './cpu-topology.ts'

type KeyOf = (cpu: Cpu) => string

const nodeOf: KeyOf = ({ node }) => String(node)
const socketOf: KeyOf = ({ socket }) => String(socket)
const coreOf: KeyOf = ({ core }) => core

/** Throws when there are not enough. */
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

/** Larger things first: nodes of memory are within sockets, or the other way round. */
function levelsOf(all: readonly Cpu[]): readonly [KeyOf, KeyOf] {
  const sockets = new Set(all.map(socketOf)).size
  const nodes = new Set(all.map(nodeOf)).size
  return sockets >= nodes ? [nodeOf, socketOf] : [socketOf, nodeOf]
}

/** From the largest down to the one that is asked about. */
function orderFor(level: KeyOf, [first, second]: readonly [KeyOf, KeyOf]): readonly KeyOf[] {
  if (level === first) return [first]
  return level === second ? [first, second] : [first, second, level]
}

/** Groups of the last level, those with the least that is free first, within groups of the levels above likewise. */
function inOrder(cpus: readonly Cpu[], [level, ...below]: readonly KeyOf[]): string[] {
  if (level === undefined) return []
  const groups = Map.groupBy(cpus, level)
  const sorted = [...groups].sort(([, a], [, b]) => a.length - b.length || lowest(a) - lowest(b))
  if (below.length === 0) return sorted.map(([key]) => key)
  return [...new Set(sorted.flatMap(([, members]) => inOrder(members, below)))]
}

const lowest = (cpus: readonly Cpu[]): number => Math.min(...cpus.map(({ id }) => id))
