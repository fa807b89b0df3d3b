/** A directory of the pod's own: on the disk or in memory, empty or with what the API holds. */
import { chmod, mkdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import { writeAtomically } from './atomic-writer.ts'
import type { MountAsk, Mounter } from './mounter.ts'
import { setOwnership } from './ownership.ts'
import type { MemoryMount, Payload } from './volume-plugin.ts'

export interface DirectoryAsk {
  readonly dir: string
  /** Says that it was made whole. */
  readonly ready: string
  /** On the disk without it. */
  readonly memory?: MemoryMount
  readonly fsGroup: number | undefined
  /** What is kept in it up to date; none for a directory that is its pod's alone. */
  readonly files?: Payload
  /** Directories in it on which others are mounted. */
  readonly nested: readonly string[]
}

export interface Tools {
  readonly mounter: Mounter
  readonly clock: Clock
  readonly random: Random
}

/** Whatever of it is there already stays as it is. */
export async function setUpDirectory(ask: DirectoryAsk, tools: Tools): Promise<void> {
  const { dir, files, fsGroup, nested } = ask
  await setUpEmpty(ask, tools.mounter)
  if (files === undefined) return
  for (const path of nested) await mkdir(join(dir, path), { recursive: true, mode: 0o755 })
  const { clock, random } = tools
  // Of the whole volume: the first time, there is more in it than what was written.
  const beforeShown = (): Promise<void> => setOwnership(dir, { fsGroup, readOnly: true })
  await writeAtomically({ dir, files, clock, random, beforeShown })
}

async function setUpEmpty({ dir, ready, memory, fsGroup }: DirectoryAsk, mounter: Mounter): Promise<void> {
  const isMounted = memory !== undefined && (await mounter.list()).some(({ path }) => path === dir)
  if ((await isThere(ready)) && (memory === undefined ? await isThere(dir) : isMounted)) return
  await mkdir(dir, { recursive: true, mode: 0o750 })
  if (!isMounted) {
    // Set apart: that of a new directory is cut by the mask of the process.
    await chmod(dir, 0o777)
    if (memory !== undefined) await mounter.mount(mountOf(memory, dir, mounter))
  }
  await setOwnership(dir, { fsGroup, readOnly: false })
  await mkdir(dirname(ready), { recursive: true, mode: 0o750 })
  await writeFile(ready, '', { mode: 0o640 })
}

function mountOf({ type, options }: MemoryMount, target: string, { hasNoSwap }: Mounter): MountAsk {
  if (type === 'hugetlbfs') return { source: 'nodev', target, type, options }
  return { source: type, target, type, options: hasNoSwap ? [...options, 'noswap'] : options }
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )
