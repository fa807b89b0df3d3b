/**
 * Checkpoint of the resources that the kubelet allocated to pods, in the form of upstream's `allocated_pods_state`. A
 * restarted kubelet therefore neither repeats nor loses a resize.
 */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { fnv1a } from '#model/template-hash.ts'

import { type CheckpointForm, readIntactCheckpoint, writeCheckpoint } from '../checkpoint/checkpoint.ts'
import type { Allocation } from '../pod/pod-allocation.ts'

export interface Allocations {
  get(uid: string): Allocation | undefined
  set(uid: string, allocation: Allocation): void
  remove(uid: string): void
  /** Removes the allocations of all other pods. */
  retain(uids: ReadonlySet<string>): void
  /** Resolves when every change so far is on disk. */
  settled(): Promise<void>
}

/** `changed` is called after each change. */
function allocationsIn(all: Map<string, Allocation>, changed: () => void): Omit<Allocations, 'settled'> {
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
      for (const uid of all.keys()) if (!uids.has(uid)) this.remove(uid)
    },
  }
}

export function createMemoryAllocations(known: ReadonlyMap<string, Allocation> = new Map()): Allocations {
  return { ...allocationsIn(new Map(known), () => undefined), settled: async () => undefined }
}

export interface AllocationFile {
  readonly path: string
  readonly clock: Clock
  readonly log: Logger
}

/** A file that is missing or damaged has no allocations. Writes run one after the other; each writes the newest state. */
export async function openAllocations({ path, clock, log }: AllocationFile): Promise<Allocations> {
  const all = new Map(await clock.during(readIntactCheckpoint(path, FORM)))
  let writing: Promise<void> | undefined
  let isStale = false
  const write = async (): Promise<void> => {
    while (isStale) {
      isStale = false
      await writeCheckpoint(path, FORM, all)
    }
  }
  const changed = (): void => {
    isStale = true
    const failed = (error: unknown): void =>
      log.error(error, 'Failed to write checkpoint of allocated pod resources', { path })
    writing ??= clock.during(write().catch(failed)).finally(() => (writing = undefined))
  }
  return { ...allocationsIn(all, changed), settled: async () => writing }
}

interface AllocationEntry {
  readonly ContainerResources: Allocation['containers']
  readonly PodLevelResources: Allocation['pod'] | null
}

const checksumOf = (data: string): number => fnv1a(Buffer.from(`(string)${JSON.stringify(data)}`))

const FORM: CheckpointForm<ReadonlyMap<string, Allocation>> = {
  print: (all) => {
    const entries = Object.fromEntries(
      Array.from(all, ([uid, { containers, pod }]): [string, AllocationEntry] => [
        uid,
        { ContainerResources: containers, PodLevelResources: pod ?? null },
      ]),
    )
    const data = JSON.stringify({ entries })
    return JSON.stringify({ data, checksum: checksumOf(data) })
  },
  parse: (text) => {
    const { data, checksum } = JSON.parse(text) as { data: string; checksum: number }
    if (checksum !== checksumOf(data)) return undefined
    const { entries } = JSON.parse(data) as { entries: Record<string, AllocationEntry> }
    return new Map(
      Object.entries(entries).map(([uid, { ContainerResources, PodLevelResources }]) => [
        uid,
        { containers: ContainerResources, pod: PodLevelResources ?? undefined },
      ]),
    )
  },
}
