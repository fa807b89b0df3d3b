/**
 * What was granted to the pods of a node, kept where the next kubelet finds it: a resize that was granted is not asked for
 * again after a restart, and one that was not is not taken for granted. In the form of upstream's `allocated_pods_state`.
 */
import { readFile, rename, writeFile } from 'node:fs/promises'

import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import { fnv1a } from '#model/template-hash.ts'

import type { Allocation } from '../pod-allocation.ts'

export interface Allocations {
  get(uid: string): Allocation | undefined
  set(uid: string, allocation: Allocation): void
  remove(uid: string): void
  /** Whoever is not among these has gone. */
  retain(uids: ReadonlySet<string>): void
  /** Resolves when all so far is written. */
  settled(): Promise<void>
}

export function createMemoryAllocations(known: ReadonlyMap<string, Allocation> = new Map()): Allocations {
  const all = new Map(known)
  return {
    get: (uid) => all.get(uid),
    set: (uid, allocation) => void all.set(uid, allocation),
    remove: (uid) => void all.delete(uid),
    retain: (uids) => void drop(all, uids),
    settled: async () => undefined,
  }
}

export interface AllocationFile {
  readonly path: string
  readonly clock: Clock
  readonly log: Logger
}

/** Reads what is there; what cannot be read is as if nothing was. Writes follow each other, the newest state each time. */
export async function openAllocations({ path, clock, log }: AllocationFile): Promise<Allocations> {
  const all = parse(await clock.during(readFile(path, 'utf8').catch(() => '')))
  let writing: Promise<void> | undefined
  let isStale = false
  const write = async (): Promise<void> => {
    while (isStale) {
      isStale = false
      await writeFile(`${path}.tmp`, textOf(all), { mode: 0o600 })
      await rename(`${path}.tmp`, path)
    }
  }
  const changed = (): void => {
    isStale = true
    const failed = (error: unknown): void => log.error(error, 'What pods are granted could not be written', { path })
    writing ??= clock.during(write().catch(failed)).finally(() => (writing = undefined))
  }
  return {
    get: (uid) => all.get(uid),
    set(uid, allocation) {
      if (JSON.stringify(all.get(uid)) === JSON.stringify(allocation)) return
      all.set(uid, allocation)
      changed()
    },
    remove(uid) {
      if (all.delete(uid)) changed()
    },
    retain(uids) {
      if (drop(all, uids)) changed()
    },
    settled: async () => writing,
  }
}

function drop(all: Map<string, Allocation>, uids: ReadonlySet<string>): boolean {
  const gone = [...all.keys()].filter((uid) => !uids.has(uid))
  for (const uid of gone) all.delete(uid)
  return gone.length > 0
}

interface Entry {
  readonly ContainerResources: Allocation['containers']
  readonly PodLevelResources: Allocation['pod'] | null
}

function textOf(all: ReadonlyMap<string, Allocation>): string {
  const entries = Object.fromEntries(
    Array.from(all, ([uid, { containers, pod }]): [string, Entry] => [
      uid,
      { ContainerResources: containers, PodLevelResources: pod ?? null },
    ]),
  )
  const data = JSON.stringify({ entries })
  return JSON.stringify({ data, checksum: checksumOf(data) })
}

const checksumOf = (data: string): number => fnv1a(Buffer.from(`(string)${JSON.stringify(data)}`))

function parse(text: string): Map<string, Allocation> {
  try {
    const { data, checksum } = JSON.parse(text) as { data: string; checksum: number }
    if (checksum !== checksumOf(data)) return new Map()
    const { entries } = JSON.parse(data) as { entries: Record<string, Entry> }
    return new Map(
      Object.entries(entries).map(([uid, { ContainerResources, PodLevelResources }]) => [
        uid,
        { containers: ContainerResources, pod: PodLevelResources ?? undefined },
      ]),
    )
  } catch {
    return new Map()
  }
}
