/** Receives file uploads in parts. The received part stays beside the target until its digest matches. */
import { createHash } from 'node:crypto'
import { chmod, open, rename, rm, stat } from 'node:fs/promises'

import { MachineError, type Upload } from '../machine.ts'
import type { Journal } from './journal.ts'

export interface Uploads {
  at(upload: Upload): Promise<{ readonly at: number; readonly isDone: boolean }>
  part(upload: Upload & { readonly at: number; readonly content: Buffer }): Promise<void>
  end(upload: Upload & { readonly mode: number }): Promise<void>
}

export function openUploads(journal: Journal): Uploads {
  return {
    async at({ path, sha256 }) {
      if ((await digestOf(path)) === sha256) return { at: 0, isDone: true }
      const { size } = await stat(partOf({ path, sha256 })).catch(() => ({ size: 0 }))
      return { at: size, isDone: false }
    },
    async part({ path, sha256, at, content }) {
      const part = partOf({ path, sha256 })
      await journal.file(part)
      await using handle = await open(part, at === 0 ? 'w' : 'r+', 0o600)
      await handle.write(content, 0, content.length, at)
      await handle.sync()
    },
    async end({ path, sha256, mode }) {
      const part = partOf({ path, sha256 })
      const found = await digestOf(part)
      if (found === undefined && (await digestOf(path)) === sha256) return
      if (found !== sha256) {
        await rm(part, { force: true })
        throw new MachineError(`${path} was not uploaded correctly: its digest is ${found ?? 'nothing'}, not ${sha256}`)
      }
      await journal.file(path)
      await chmod(part, mode)
      await rename(part, path)
    },
  }
}

function partOf({ path, sha256 }: Upload): string {
  return `${path}.${sha256.slice(0, 12)}.part`
}

/** Undefined if the file does not exist. */
export async function digestOf(path: string): Promise<string | undefined> {
  try {
    await using handle = await open(path, 'r')
    const hash = createHash('sha256')
    for await (const chunk of handle.createReadStream({ autoClose: false })) hash.update(chunk as Buffer)
    return hash.digest('hex')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}
