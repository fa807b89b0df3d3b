/** Creates the directory of a volume, on disk or in memory, empty or with content from the API. */
import { chmod, mkdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import { setOwnership } from '../ownership.ts'
import type { MemoryMount, Payload } from '../volume-plugin.ts'
import { writeAtomically } from './atomic-writer.ts'
import type { Mounter, MountRequest } from './mounter.ts'

export interface DirectoryRequest {
  readonly dir: string
  /** Marks a complete setup. */
  readonly ready: string
  /** Unset: on disk. */
  readonly memory?: MemoryMount
  readonly fsGroup: number | undefined
  /** Content to keep current; unset for a directory that the pod writes. */
  readonly files?: Payload
  /** Mount points of other volumes inside it. */
  readonly nested: readonly string[]
}

export interface DirectoryTools {
  readonly mounter: Mounter
  readonly clock: Clock
  readonly random: Random
}

/** Existing parts are left unchanged. */
export async function setUpDirectory(request: DirectoryRequest, tools: DirectoryTools): Promise<void> {
  const { dir, files, fsGroup, nested } = request
  await setUpEmpty(request, tools.mounter)
  if (files === undefined) return
  for (const path of nested) await mkdir(join(dir, path), { recursive: true, mode: 0o755 })
  const { clock, random } = tools
  // The ownership of the whole volume, which contains more than the new files the first time.
  const beforeShown = (): Promise<void> => setOwnership(dir, { fsGroup, readOnly: true })
  await writeAtomically({ dir, files, clock, random, beforeShown })
}

async function setUpEmpty({ dir, ready, memory, fsGroup }: DirectoryRequest, mounter: Mounter): Promise<void> {
  const isMounted = memory !== undefined && (await mounter.list()).some(({ path }) => path === dir)
  if ((await isThere(ready)) && (memory === undefined ? await isThere(dir) : isMounted)) return
  await mkdir(dir, { recursive: true, mode: 0o750 })
  if (!isMounted) {
    // Sets the mode explicitly, because the umask reduces the mode of a new directory.
    await chmod(dir, 0o777)
    if (memory !== undefined) await mounter.mount(mountOf(memory, dir, mounter))
  }
  await setOwnership(dir, { fsGroup, readOnly: false })
  await mkdir(dirname(ready), { recursive: true, mode: 0o750 })
  await writeFile(ready, '', { mode: 0o640 })
}

function mountOf({ type, options }: MemoryMount, target: string, { hasNoSwap }: Mounter): MountRequest {
  if (type === 'hugetlbfs') return { source: 'nodev', target, type, options }
  return { source: type, target, type, options: hasNoSwap ? [...options, 'noswap'] : options }
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )
