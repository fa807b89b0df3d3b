/**
 * The faults that a reliability run can inject into the store, one per run. `inject` resolves when the fault is over.
 */
import { watch } from 'node:fs'

import type { Random } from '#lib/random.ts'

import type { Arena, ArenaOptions, BackendName } from './arena.ts'
import { whyNoArenaDisk } from './arena.ts'
import type { Violation } from './check/violation.ts'
import type { Recorder } from './history.ts'
import { pause } from './pause.ts'
import { under } from './store.ts'

export interface Scene {
  readonly arena: Arena
  readonly recorder: Recorder
  readonly random: Random
  /** Violations that the fault itself has found. */
  readonly violations: Violation[]
}

export interface Fault {
  readonly backends: readonly BackendName[]
  readonly arena?: Partial<ArenaOptions>
  /** Larger values than usual. */
  readonly valueBytes?: number
  /** Why it cannot be injected here. */
  readonly whyNot?: () => string | undefined
  inject(scene: Scene): Promise<void>
}

export type FaultName = 'none' | 'kill' | 'commit-kill' | 'power' | 'full' | 'leader' | 'pause' | 'compaction'

const ALL: readonly BackendName[] = ['memory', 'sqlite', 'etcd']
/** A commit that is under way shows within this time, or there was none. */
const COMMIT_MS = 500
/** After space has come back, writing works again within this time. */
const RECOVER_MS = 5000

export const FAULTS: Readonly<Record<FaultName, Fault>> = {
  none: { backends: ALL, inject: async () => undefined },
  kill: {
    backends: ['sqlite', 'etcd'],
    async inject({ arena, random }) {
      const { server, cluster } = arena
      // Of an etcd, either the cluster dies or the process that uses it.
      if (cluster !== undefined && random.int(2) === 0) {
        await Promise.all(cluster.members.map((member) => member.kill()))
        await Promise.all(cluster.members.map((member) => member.start()))
        return
      }
      await server?.kill()
      await server?.start()
    },
  },
  'commit-kill': {
    backends: ['sqlite'],
    async inject({ arena: { server, walFile = '' } }) {
      await nextChange(walFile)
      await server?.kill()
      await server?.start()
    },
  },
  power: {
    backends: ['sqlite'],
    arena: { diskMebibytes: 64 },
    whyNot: whyNoArenaDisk,
    async inject({ arena: { disk, server }, recorder }) {
      const known = recorder.operations.length
      disk?.cutPower()
      // The store lives a moment longer than its disk, and must not acknowledge anything in it.
      await server?.kill()
      recorder.doubt(known)
      await disk?.restorePower()
      await server?.start()
    },
  },
  full: {
    backends: ['sqlite'],
    arena: { diskMebibytes: 24 },
    valueBytes: 60_000,
    whyNot: whyNoArenaDisk,
    inject: fillDisk,
  },
  leader: {
    backends: ['etcd'],
    arena: { members: 3 },
    async inject({ arena: { cluster }, random }) {
      const leader = await cluster?.leader()
      await leader?.kill()
      await pause(random.int(1500))
      await leader?.start()
    },
  },
  pause: {
    backends: ['sqlite', 'etcd'],
    arena: { members: 3 },
    async inject({ arena: { cluster, server }, random }) {
      const members = cluster?.members ?? []
      const member = random.int(2) === 0 ? await cluster?.leader() : members[random.int(members.length)]
      if (member === undefined) server?.signal('SIGSTOP')
      else member.pause()
      await pause(200 + random.int(2000))
      if (member === undefined) server?.signal('SIGCONT')
      else member.resume()
    },
  },
  compaction: {
    backends: ALL,
    async inject({ recorder, random, arena: { server } }) {
      for (let n = 0; n < 20; n++) {
        const revision = await recorder.call(90, 'revision', null)
        if (revision !== undefined && revision > 0) await recorder.call(90, 'compact', revision - random.int(3))
        await pause(random.int(20))
      }
      if (server === undefined || random.int(2) === 0) return
      await server.kill()
      await server.start()
    },
  },
}

/** The faults that can be injected into a backend. */
export function faultsFor(backend: BackendName): FaultName[] {
  const names = Object.keys(FAULTS) as FaultName[]
  return names.filter((name) => FAULTS[name].backends.includes(backend) && FAULTS[name].whyNot?.() === undefined)
}

/** Resolves as soon as the file changes: its writer is then between writing and flushing. */
async function nextChange(file: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const watcher = watch(file, () => resolve())
  await Promise.race([promise, pause(COMMIT_MS)])
  watcher.close()
}

/** Reads and deletes go on; writes are refused until there is space again, and then not any more. */
async function fillDisk({ arena: { disk }, recorder, random, violations }: Scene): Promise<void> {
  const fault = (detail: string): void => void violations.push({ rule: 'full disk', detail })
  disk?.fill(random.int(512 << 10))
  if (!(await eventually(() => isRefused(recorder), RECOVER_MS))) fault('No write was ever refused')
  await readAndDelete({ recorder, random }, fault)
  disk?.free()
  if (!(await eventually(() => isAccepted(recorder), RECOVER_MS))) fault('Writing did not work again within 5 s')
}

async function readAndDelete(
  { recorder, random }: Pick<Scene, 'recorder' | 'random'>,
  fault: (detail: string) => void,
): Promise<void> {
  for (let n = 0; n < 5; n++) {
    const list = await recorder.call(90, 'range', { ...under('/registry/'), via: 'backend' })
    if (list === undefined) fault(`A read failed: ${recorder.operations.at(-1)?.error?.message}`)
    const key = list?.items[random.int(list.items.length)]?.key
    if (key === undefined) continue
    const gone = await recorder.call(90, 'commit', [{ key, value: null }])
    if (gone?.ok !== true) fault(`A delete failed: ${recorder.operations.at(-1)?.error?.message}`)
    await pause(50)
  }
}

async function isRefused(recorder: Recorder): Promise<boolean> {
  return recorder.operations.some(({ error }) => error?.code === 'no-space')
}

let probes = 0

async function isAccepted(recorder: Recorder): Promise<boolean> {
  const value = `probe-${process.pid}-${++probes}~`
  return (await recorder.call(90, 'commit', [{ key: '/registry/things/ns/probe', value }])) !== undefined
}

async function eventually(isSo: () => Promise<boolean>, withinMs: number): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < withinMs; waitedMs += 20) {
    if (await isSo()) return true
    await pause(20)
  }
  return false
}
