/** File operations of the host interface that are the same on all platforms. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { access, lstat, mkdir, readFile, rename, rm, rmdir } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'

import { writeFileAtomically } from '#lib/files/atomic-file.ts'

import type { HostFiles } from './host.ts'

/** `parentOf`: the parent path on the platform. `folderMode`: the mode of created folders. */
export function hostFiles(
  parentOf: (path: string) => string,
  folderMode?: number,
): Omit<HostFiles, 'empty' | 'download' | 'signer'> {
  const makeFolder = async (path: string): Promise<void> => {
    await mkdir(path, { recursive: true, ...(folderMode !== undefined && { mode: folderMode }) })
  }
  return {
    exists: (path) =>
      access(path).then(
        () => true,
        () => false,
      ),
    read: (path) => readFile(path, 'utf8').catch(() => undefined),
    async write(path, text) {
      await makeFolder(parentOf(path))
      await writeFileAtomically(path, text, { mode: 0o600 })
    },
    makeFolder,
    async remove(path) {
      const found = await lstat(path).catch(() => undefined)
      if (found !== undefined) await (found.isDirectory() ? rmdir(path) : rm(path, { force: true }))
    },
    move: rename,
    async sha256(path) {
      const hash = createHash('sha256')
      await pipeline(createReadStream(path), hash)
      return hash.digest('hex')
    },
  }
}
