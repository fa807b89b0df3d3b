/**
 * Files of directories that somebody else may change at any moment. Whoever goes down opens every component below the one
 * before, and never follows a link; what was opened stays what it is, whatever becomes of its name.
 */
import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readdir, rmdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'

/** A place in the file system without the right to read or write there: pipes and devices do not stir. */
const O_PATH = 0o10000000
const FLAGS = O_PATH | constants.O_NOFOLLOW

/** A path to what was opened, that nobody can redirect. Magic links of the kernel need no name. */
export const pathOf = ({ fd }: FileHandle): string => `/proc/self/fd/${fd}`

/** Of a directory of ours. Fails when it is a link. */
export async function openRoot(path: string): Promise<FileHandle> {
  return refuseLink(await open(path, FLAGS), path)
}

/** Something in a directory, and never a link: fails with `unexpected symlink found`. */
export async function openIn(parent: FileHandle, name: string): Promise<FileHandle> {
  if (name === '' || name === '.' || name === '..' || name.includes('/')) throw new Error(`no name of a file: ${name}`)
  return refuseLink(await open(join(pathOf(parent), name), FLAGS), name)
}

async function refuseLink(handle: FileHandle, name: string): Promise<FileHandle> {
  const found = await handle.stat()
  if (!found.isSymbolicLink()) return handle
  await handle.close()
  throw new Error(`unexpected symlink found ${name}`)
}

/** Made anew with exactly this mode, and opened. */
export async function makeIn(parent: FileHandle, name: string, mode: number): Promise<FileHandle> {
  await mkdir(join(pathOf(parent), name), { mode })
  // Not by the name: somebody may have put something else there.
  const made = await openIn(parent, name)
  try {
    const handle = await open(pathOf(made), constants.O_RDONLY | constants.O_DIRECTORY)
    await handle.chmod(mode).finally(() => handle.close())
    return made
  } catch (error) {
    await made.close()
    throw error
  }
}

/** What is below comes before what is above. `visit` gets the thing opened; a link is passed as its directory and name. */
export async function visitTree(
  root: FileHandle,
  visit: (thing: { readonly path: string; readonly stats: Stats }) => Promise<void>,
): Promise<void> {
  const stats = await root.stat()
  if (stats.isDirectory()) {
    for (const entry of await readdir(pathOf(root), { withFileTypes: true })) {
      if (entry.isSymbolicLink()) {
        const path = join(pathOf(root), entry.name)
        await visit({ path, stats: await lstat(path) })
        continue
      }
      const child = await openIn(root, entry.name).catch(ignoreGone)
      if (child !== undefined) await visitTree(child, visit).finally(() => child.close())
    }
  }
  await visit({ path: pathOf(root), stats })
}

/**
 * Removes a directory and everything in it, but for what is on another file system: a mount that somebody made meanwhile is
 * an error, and stays.
 */
export async function removeTree(path: string): Promise<void> {
  const root = await openRoot(path).catch(ignoreGone)
  if (root === undefined) return
  try {
    await empty(root, (await root.stat()).dev, path)
  } finally {
    await root.close()
  }
  await rmdir(path)
}

async function empty(directory: FileHandle, device: number, shown: string): Promise<void> {
  const there = await stat(pathOf(directory))
  if (there.dev !== device) throw new Error(`${shown} is a mount point`)
  for (const entry of await readdir(pathOf(directory), { withFileTypes: true })) {
    const name = join(pathOf(directory), entry.name)
    if (!entry.isDirectory()) {
      await unlink(name)
      continue
    }
    const child = await openIn(directory, entry.name)
    await empty(child, device, `${shown}/${entry.name}`).finally(() => child.close())
    await rmdir(name)
  }
}

/** Others may be faster. */
function ignoreGone(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
}
