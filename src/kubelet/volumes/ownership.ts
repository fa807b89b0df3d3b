/** Whose the files of a volume are, when its pod has a group for them. */
import { chmod, chown, lchown, stat } from 'node:fs/promises'

import { openRoot, visitTree } from './beneath.ts'

export interface Ownership {
  readonly fsGroup: number | undefined
  readonly readOnly: boolean
  /** `OnRootMismatch` trusts the root of a volume to speak for all of it. */
  readonly policy?: string | undefined
}

const READ_WRITE = 0o660
const READ_ONLY = 0o440
const ENTER = 0o110
const SET_GROUP = 0o2000

/** Everything in `dir` becomes the group's, and readable by it; what is made there later too. Links are not followed. */
export async function setOwnership(dir: string, { fsGroup, readOnly, policy }: Ownership): Promise<void> {
  if (fsGroup === undefined) return
  const bits = readOnly ? READ_ONLY : READ_WRITE
  if (policy === 'OnRootMismatch' && (await isRightAlready(dir, fsGroup, bits))) return
  const root = await openRoot(dir)
  try {
    await visitTree(root, async ({ path, stats }) => {
      if (stats.isSymbolicLink()) return lchown(path, -1, fsGroup)
      const extra = stats.isDirectory() ? bits | SET_GROUP | ENTER : bits
      // In this order: a change of the owner takes special bits away.
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
