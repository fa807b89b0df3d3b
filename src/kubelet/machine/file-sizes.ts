/** Measures the disk usage of directories. */
import type { Dirent } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'

export interface Size {
  readonly bytes: number
  readonly inodes: number
}

/** Maximum number of counted entries, so that huge directories do not block the kubelet. */
const MAX_ENTRIES = 200_000
/** Block size of the kernel's counts. */
export const BLOCK = 512

/** Counts everything below without following links. Files removed meanwhile are ignored. */
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
