/** Checks that a hostPath has the specified type, with upstream's errors. */
import type { Stats } from 'node:fs'
import { mkdir, open, stat } from 'node:fs/promises'

interface PathCheck {
  readonly fits: (stats: Stats) => boolean
  readonly what: string
  readonly make?: (path: string) => Promise<void>
}

const directory = { fits: (stats: Stats) => stats.isDirectory(), what: 'a directory' }
const file = { fits: (stats: Stats) => stats.isFile(), what: 'a file' }

const CHECKS: Readonly<Record<string, PathCheck>> = {
  Directory: directory,
  DirectoryOrCreate: {
    ...directory,
    make: async (path) => void (await mkdir(path, { recursive: true, mode: 0o755 })),
  },
  File: file,
  FileOrCreate: { ...file, make: async (path) => (await open(path, 'a', 0o644)).close() },
  Socket: { fits: (stats) => stats.isSocket(), what: 'a socket file' },
  CharDevice: { fits: (stats) => stats.isCharacterDevice(), what: 'a character device' },
  BlockDevice: { fits: (stats) => stats.isBlockDevice(), what: 'a block device' },
}

/** '' accepts anything, even a missing path. */
export async function checkHostPath(path: string, type: string): Promise<void> {
  if (type === '') return
  const check = CHECKS[type]
  if (check === undefined) throw new Error(`${type} is an invalid volume type`)
  const { fits, what, make } = check
  const found = await stat(path).catch(() => undefined)
  if (found === undefined && make !== undefined) return make(path)
  if (found === undefined || !fits(found)) throw new Error(`hostPath type check failed: ${path} is not ${what}`)
}
