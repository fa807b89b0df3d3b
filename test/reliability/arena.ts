/**
 * The environment of one run of the reliability tests: an empty store under test, and the faults that can be injected
 * into it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { startCluster, type TestCluster, whyNoEtcd } from '#storage/etcd/etcd-cluster.fixture.ts'
import { createMemoryBackend } from '#storage/memory.ts'

import { startCache } from './cache-watch.ts'
import { withDefect } from './defects.ts'
import { Disk, whyNoDisk } from './disk.ts'
import { Server } from './server.ts'
import type { Store } from './store.ts'
import { createTextStore } from './text-store.ts'

export type BackendName = 'memory' | 'sqlite' | 'etcd'

export interface ArenaOptions {
  readonly backend: BackendName
  readonly seed: number
  readonly defect?: string
  /** The store is on a disk of its own, of this size. */
  readonly diskMebibytes?: number
  /** Of etcd. */
  readonly members?: number
}

export interface Arena {
  readonly store: Store
  /** The child with the store; the memory backend lives in this process. */
  readonly server?: Server
  readonly disk?: Disk
  readonly cluster?: TestCluster
  /** The write-ahead log of a sqlite store: it changes while a commit is under way. */
  readonly walFile?: string
  /** The output of the store's process. */
  readonly output: () => string
  /** Ends everything and removes every trace; resolves to what went wrong on the way, if anything. */
  close(): Promise<string | undefined>
}

/** A full disk must be full of the traffic, not of what is set aside. */
const BALLAST_BYTES = 1 << 20

/** Why the backend cannot be tested here; undefined when it can. */
export function whyNoBackend(backend: BackendName): string | undefined {
  return backend === 'etcd' ? whyNoEtcd() : undefined
}

let diskTrouble: { readonly reason: string | undefined } | undefined

/** Why there can be no disk of its own here; found out once. */
export function whyNoArenaDisk(): string | undefined {
  diskTrouble ??= { reason: whyNoDisk() }
  return diskTrouble.reason
}

export function createArena(options: ArenaOptions): Promise<Arena> {
  return options.backend === 'memory' ? memoryArena(options) : serverArena(options)
}

async function memoryArena({ seed, defect }: ArenaOptions): Promise<Arena> {
  const random = createSeededRandom(seed)
  const memory = createMemoryBackend({ clock: realClock, random, historyMs: Infinity, progressEveryMs: 30 })
  const backend = withDefect(memory, defect, random)
  const cached = await startCache(backend)
  const close = async (): Promise<undefined> => {
    await cached.cache.close()
    await backend.close()
  }
  return { store: createTextStore(backend, cached), output: () => '', close }
}

async function serverArena({ backend, seed, defect, diskMebibytes, members = 1 }: ArenaOptions): Promise<Arena> {
  const folder = mkdtempSync(join(tmpdir(), 'reliability-'))
  const disk = diskMebibytes === undefined ? undefined : new Disk(diskMebibytes)
  const cluster = backend === 'etcd' ? await startCluster({ members }) : undefined
  const file = join(disk?.mount ?? folder, 'store.db')
  const server = new Server({
    location: cluster?.urls.join(',') ?? `sqlite:${file}`,
    socket: join(folder, 'socket'),
    seed,
    ballastBytes: disk === undefined ? 0 : BALLAST_BYTES,
    ...(defect !== undefined && { defect }),
  })
  const close = async (): Promise<string | undefined> => {
    const code = await server.stop().catch(() => null)
    await server.kill()
    await cluster?.stop()
    disk?.remove()
    rmSync(folder, { recursive: true, force: true })
    return code === 0 ? undefined : `The store did not close properly (exit code ${code}): ${server.output}`
  }
  try {
    await server.start()
  } catch (error) {
    await close()
    throw error
  }
  return {
    store: server,
    server,
    ...(disk && { disk }),
    ...(cluster && { cluster }),
    ...(cluster === undefined && { walFile: `${file}-wal` }),
    output: () => server.output,
    close,
  }
}
