/**
 * Measures the memory of a store: fills it behind a watch cache. storage.bench.ts runs it as a separate process with
 * `--expose-gc`. Arguments: the location of the store, the number of objects, the size of each.
 */
import { Buffer } from 'node:buffer'

import { realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import type { Backend } from '#storage/backend.ts'
import { openBackend } from '#storage/index.ts'
import { WatchCache } from '#storage/watch-cache/watch-cache.ts'

import { describeEntry, PREFIX } from './stored-entry.ts'

export interface MemoryReport {
  readonly heapBytes: number
  readonly residentBytes: number
}

/** Commits under way at once while filling. */
const BATCH = 100

async function main(location: string, count: number, sizeBytes: number): Promise<MemoryReport> {
  const backend = await openBackend(location, { clock: realClock, random: createSeededRandom(1) })
  const cache = new WatchCache({ backend, clock: realClock, prefix: PREFIX })
  const collection = await cache.open({ prefix: `${PREFIX}objects/`, describe: describeEntry })
  await cache.start()
  const before = memoryInUse()
  for (let first = 0; first < count; first += BATCH) await fill(backend, first, sizeBytes)
  await cache.waitFor(await backend.currentRevision())
  const after = memoryInUse()
  if (collection.size !== count) throw new Error(`The cache has ${collection.size} objects of ${count}`)
  await cache.close()
  await backend.close()
  return {
    heapBytes: after.heapBytes - before.heapBytes,
    residentBytes: after.residentBytes - before.residentBytes,
  }
}

async function fill(backend: Backend, first: number, sizeBytes: number): Promise<void> {
  const commits = Array.from({ length: BATCH }, (_, index) => {
    const key = `${PREFIX}objects/ns/object-${String(first + index).padStart(6, '0')}`
    return backend.commit([{ key, value: Buffer.alloc(sizeBytes, index) }])
  })
  await Promise.all(commits)
}

function memoryInUse(): MemoryReport {
  const { gc } = globalThis as { gc?: () => void }
  if (gc === undefined) throw new Error('Run with --expose-gc')
  // The second run collects what the first one has released, such as buffers and weak references.
  gc()
  gc()
  const { heapUsed, external, rss } = process.memoryUsage()
  return { heapBytes: heapUsed + external, residentBytes: rss }
}

const [location = '', count = '', sizeBytes = ''] = process.argv.slice(2)
process.stdout.write(JSON.stringify(await main(location, Number(count), Number(sizeBytes))))
