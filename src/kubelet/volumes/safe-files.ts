/**
 * File access in directories that other processes may change at any time. Each path component is opened relative to
 * its parent, without following links.
 */
import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readdir, rmdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'

/** Opens a path without read or write access, so that pipes and devices are not triggered. */
const O_PATH = 0o10000000
const FLAGS = O_PATH | constants.O_NOFOLLOW

/** A path to the open file that no one can redirect (a magic link of the kernel). */
export const pathOf = ({ fd }: FileHandle): string => `/proc/self/fd/${fd}`

/** Opens a directory owned by the kubelet. Fails when it is a link. */
export async function openRoot(path: string): Promise<FileHandle> {
  return refuseLink(await open(path, FLAGS), path)
}

/** Opens an entry of a directory. Fails for a link with `unexpected symlink found`. */
export async function openIn(parent: FileHandle, name: string): Promise<FileHandle> {
  if (name === '' || name === '.' || name === '..' || name.includes('/')) throw new Error(`invalid file name: ${name}`)
  return refuseLink(await open(join(pathOf(parent), name), FLAGS), name)
}

async function refuseLink(handle: FileHandle, name: string): Promise<FileHandle> {
  const found = await handle.stat()
  if (!found.isSymbolicLink()) return handle
  await handle.close()
  throw new Error(`unexpected symlink found ${name}`)
}

/** Creates a directory with exactly this mode and opens it. */
export async function makeIn(parent: FileHandle, name: string, mode: number): Promise<FileHandle> {
  await mkdir(join(pathOf(parent), name), { mode })
  // Not by name, because another process may have replaced it.
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

/** Visits the tree bottom-up. `visit` gets a path to the open file; for a link, the directory's path and the name. */
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

/** Removes a directory with its content. Fails, and removes nothing further, when it finds a mount inside. */
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

/** Another process may have removed it first. */
function ignoreGone(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
}
