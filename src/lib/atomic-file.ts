/**
 * Files that are either as they were or wholly new, whatever happens in between: a crash, a full disk, a power cut. The
 * new content goes into a second file beside the first, which then takes its name.
 */
import { open, realpath, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface AtomicWriteOptions {
  /** Permissions of the new file, whatever the umask. */
  readonly mode: number
}

/** Tells the writes of this process apart. */
let count = 0

/** The content is on disk when this resolves. A symbolic link stays: what it leads to is replaced. */
export async function writeFileAtomically(
  file: string,
  content: string | Uint8Array,
  { mode }: AtomicWriteOptions,
): Promise<void> {
  const target = await targetOf(file)
  const part = `${target}.${process.pid}-${count++}.new`
  try {
    await writeWhole(part, content, mode)
    await rename(part, target)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
  await syncFolder(dirname(target))
}

async function writeWhole(file: string, content: string | Uint8Array, mode: number): Promise<void> {
  await using handle = await open(file, 'wx', mode)
  await handle.chmod(mode)
  await handle.writeFile(content)
  await handle.sync()
}

async function targetOf(file: string): Promise<string> {
  try {
    return await realpath(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return file
    throw error
  }
}

/** Without this, a power cut may take the new name back. Windows refuses to do it to a folder. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  await using handle = await open(folder, 'r')
  await handle.sync()
}
