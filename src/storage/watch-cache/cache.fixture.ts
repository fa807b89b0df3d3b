/**
 * Fixtures for tests of the watch cache: an in-memory store, entries with a color, and readers that record what they
 * receive.
 */
import type { TestContext } from 'node:test'

import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import type { Backend, KeyValue, StorageEvent } from '../backend.ts'
import { createMemoryBackend } from '../memory.ts'
import type { Collection } from './collection.ts'
import type { Filter, Reader } from './readers.ts'
import type { Change, ChangeType } from './ring.ts'
import { type CollectionSpec, type RepairEvent, WatchCache } from './watch-cache.ts'

export interface TestEntry {
  readonly key: string
  readonly modRevision: number
  /** `color:text`. */
  readonly text: string
  readonly color: string
}

const describeEntry = ({ key, value, modRevision }: KeyValue | StorageEvent): TestEntry => {
  const text = Buffer.from(value).toString()
  return { key, modRevision, text, color: text.split(':')[0] ?? '' }
}

export const pods: Required<Omit<CollectionSpec<TestEntry>, 'meter'>> = {
  prefix: '/registry/pods/',
  describe: describeEntry,
  indexOf: (entry: TestEntry) => entry.color,
}
export const everything: Filter<TestEntry> = { id: '', matches: () => true }
export const ofColor = (color: string): Filter<TestEntry> => ({
  id: `color=${color}`,
  matches: (entry) => entry.color === color,
  pin: { index: 'color', value: color },
})

export interface World {
  readonly backend: Backend
  readonly clock: VirtualClock
  readonly cache: WatchCache
  readonly pods: Collection<TestEntry>
  readonly repairs: RepairEvent[]
  put(name: string, text: string): Promise<number>
  remove(name: string): Promise<number>
}

export async function createWorld(
  t: TestContext,
  wrap: (backend: Backend) => Backend = (backend) => backend,
): Promise<World> {
  const clock = createVirtualClock()
  const store = createMemoryBackend({ clock, random: createSeededRandom(1) })
  const backend = wrap(store)
  const repairs: RepairEvent[] = []
  const cache = new WatchCache({ backend, clock, prefix: '/registry/', onRepair: (event) => repairs.push(event) })
  const collection = await cache.open(pods)
  await cache.start()
  t.after(async () => {
    await cache.close()
    await backend.close()
  })
  const commit = async (name: string, text: string | null): Promise<number> => {
    const value = text === null ? null : Buffer.from(text)
    const { revision } = await store.commit([{ key: `/registry/pods/${name}`, value }])
    return revision
  }
  return { backend, clock, cache, pods: collection, repairs, put: commit, remove: (name) => commit(name, null) }
}

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export interface Recorder {
  readonly seen: string[]
  room: number
  expired: boolean
  reader: Reader | undefined
}

export function record(
  collection: Collection<TestEntry>,
  filter: Filter<TestEntry>,
  from: number,
  room: number = Infinity,
): Recorder {
  const recorder: Recorder = { seen: [], room, expired: false, reader: undefined }
  recorder.reader = collection.watch(filter, from, {
    change(type: ChangeType, { revision, key, entry, previous }: Change<TestEntry>) {
      recorder.seen.push(
        `${type} ${key.slice(pods.prefix.length)} ${(type === 'DELETED' ? previous : entry)?.text} @${revision}`,
      )
      recorder.room--
      return recorder.room > 0
    },
    expired() {
      recorder.expired = true
    },
  })
  return recorder
}

export const texts = (entries: Iterable<TestEntry> | undefined): string[] =>
  [...(entries ?? [])].map(({ key, text }) => `${key.slice(pods.prefix.length)}=${text}`)

export const entriesAt = (collection: Collection<TestEntry>, revision: number): TestEntry[] =>
  [...(collection.stateAt(revision)?.slices(pods.prefix, '\u{10ffff}') ?? [])].flat()
