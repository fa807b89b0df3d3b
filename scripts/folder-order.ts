/**
 * Checks the folders below `src`: no import cycles between folders, and at most 25 files in a folder. Pure: sources in,
 * complaints out.
 */
import { posix } from 'node:path'

export interface FolderSource {
  /** Below `src/`. */
  readonly path: string
  /** Paths below `src/` of the files that it imports when it is loaded. */
  readonly targets: readonly string[]
}

export const MAX_FILES = 25

/** `shelved` are files that an `index.ts` lists: a shelf may be as long as its list. */
export function checkFolders(sources: readonly FolderSource[], shelved: ReadonlySet<string>): string[] {
  const own = sources.filter(({ path }) => !/\.(test|suite|fixture)\.ts$/.test(path))
  const knots = foldersOf(own).flatMap((folder) => cycleIn(folder, own))
  const crowds = [...countFiles(own.filter(({ path }) => !shelved.has(path)))].filter(([, count]) => count > MAX_FILES)
  return [
    ...knots.map(([folder, cycle]) => `${folder}: folder cycle: ${cycle.join(' → ')}`),
    ...crowds.map(([folder, count]) => `${folder}: ${count} files, more than ${MAX_FILES}; sort them into folders`),
  ]
}

function foldersOf(sources: readonly FolderSource[]): string[] {
  const folders = new Set<string>()
  for (const { path } of sources) {
    for (let folder = posix.dirname(path); folder !== '.'; folder = posix.dirname(folder)) folders.add(folder)
  }
  return [...folders].sort()
}

function countFiles(sources: readonly FolderSource[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { path } of sources) {
    const folder = posix.dirname(path)
    counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  return counts
}

/** A cycle between the parts of a folder, which are its subfolders and its files. Empty if there is none. */
function cycleIn(folder: string, sources: readonly FolderSource[]): [folder: string, cycle: string[]][] {
  const graph = new Map<string, Set<string>>()
  for (const { path, targets } of sources) {
    const part = partOf(path, folder)
    if (part === undefined) continue
    const others = targets.map((target) => partOf(target, folder)).filter((other) => other !== undefined)
    const known = graph.get(part) ?? new Set()
    graph.set(part, known)
    for (const other of others) if (other !== part) known.add(other)
  }
  const cycle = findCycle(graph)
  return cycle === undefined ? [] : [[folder, cycle]]
}

/** `http/` for `lib/http/server.ts` and the folder `lib`; undefined for files elsewhere. */
function partOf(path: string, folder: string): string | undefined {
  if (!path.startsWith(`${folder}/`)) return undefined
  const [first = '', ...deeper] = path.slice(folder.length + 1).split('/')
  return deeper.length > 0 ? `${first}/` : first
}

function findCycle(graph: ReadonlyMap<string, ReadonlySet<string>>): string[] | undefined {
  const done = new Set<string>()
  const visit = (part: string, trail: readonly string[]): string[] | undefined => {
    const at = trail.indexOf(part)
    if (at >= 0) return [...trail.slice(at), part]
    if (done.has(part)) return undefined
    for (const next of graph.get(part) ?? []) {
      const cycle = visit(next, [...trail, part])
      if (cycle !== undefined) return cycle
    }
    done.add(part)
    return undefined
  }
  for (const part of graph.keys()) {
    const cycle = visit(part, [])
    if (cycle !== undefined) return cycle
  }
  return undefined
}
