/** Applies the fsGroup of a pod to the files of a volume. */
import { chmod, chown, lchown, stat } from 'node:fs/promises'

import { openRoot, visitTree } from './safe-files.ts'

export interface Ownership {
  readonly fsGroup: number | undefined
  readonly readOnly: boolean
  /** With `OnRootMismatch` a correct root directory stands for the whole volume. */
  readonly policy?: string | undefined
}

const READ_WRITE = 0o660
const READ_ONLY = 0o440
const ENTER = 0o110
const SET_GROUP = 0o2000

/** Gives everything in `dir` to the group with access, and sets setgid for new files. Links are not followed. */
export async function setOwnership(dir: string, { fsGroup, readOnly, policy }: Ownership): Promise<void> {
  if (fsGroup === undefined) return
  const bits = readOnly ? READ_ONLY : READ_WRITE
  if (policy === 'OnRootMismatch' && (await isRightAlready(dir, fsGroup, bits))) return
  const root = await openRoot(dir)
  try {
    await visitTree(root, async ({ path, stats }) => {
      if (stats.isSymbolicLink()) return lchown(path, -1, fsGroup)
      const extra = stats.isDirectory() ? bits | SET_GROUP | ENTER : bits
      // In this order, because chown clears special bits.
      await chown(path, -1, fsGroup)
      await chmod(path, (stats.mode & 0o7777) | extra)
    })
  } finally {
    await root.close()
  }
}

async function isRightAlready(dir: string, fsGroup: number, bits: number): Promise<boolean> {
  const { gid, mode } = await stat(dir)
  const needed = bits | ENTER | SET_GROUP
  return gid === fsGroup && (mode & needed) === needed
}
