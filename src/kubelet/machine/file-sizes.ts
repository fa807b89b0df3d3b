/** How much files take on a disk. */
import type { Dirent } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'

export interface Size {
  readonly bytes: number
  readonly inodes: number
}

/** More entries than this are not counted in one go: a directory with millions of files must not keep a kubelet. */
const MAX_ENTRIES = 200_000
/** Of what the kernel counts. */
export const BLOCK = 512

/** Of everything below, without leaving it through links. What goes away meanwhile does not count. */
export async function sizeOf(path: string): Promise<Size> {
  let [bytes, inodes] = [0, 0]
  const waiting = [path]
  for (let next = waiting.pop(); next !== undefined && inodes < MAX_ENTRIES; next = waiting.pop()) {
    const entries: Dirent[] = await readdir(next, { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const own = join(next, entry.name)
      if (entry.isDirectory()) waiting.push(own)
      const found = await lstat(own).catch(() => undefined)
      bytes += (found?.blocks ?? 0) * BLOCK
      inodes++
    }
  }
  return { bytes, inodes }
}
