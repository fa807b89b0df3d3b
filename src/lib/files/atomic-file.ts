/**
 * Writes files atomically: after a crash or a full disk a file is either unchanged or completely new. The new content
 * is written to a temporary file, which then replaces the old file.
 */
import { constants, type Stats, writeFile } from 'node:fs'
import { open, readlink, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'

export interface AtomicWriteOptions {
  /** Permissions of the new file, independent of the umask. A device or a pipe keeps its own. */
  readonly mode: number
}

/** Tells the writes of this process apart. */
let count = 0

/**
 * The content is on disk when this resolves. A symbolic link stays, and the file at its end is replaced or created.
 * Character devices, named pipes and open descriptors (`/dev/stdout`) are written to and never replaced. Rejects for
 * folders, block devices, sockets, and pipes that no process reads.
 */
export async function writeFileAtomically(
  file: string,
  content: string | Uint8Array,
  { mode }: AtomicWriteOptions,
): Promise<void> {
  const found = await stat(file).catch(ignoreMissing)
  if (found !== undefined && !found.isFile()) return writeInPlace(file, found, content)
  const target = await endOfLinks(file)
  if (typeof target === 'number') return writeDescriptor(target, content)
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

/** Whether the path leads to a device, a pipe or an open descriptor, which has no content that could be kept. */
export async function isWrittenInPlace(file: string): Promise<boolean> {
  const found = await stat(file).catch(ignoreMissing)
  if (found === undefined || found.isDirectory()) return false
  return !found.isFile() || typeof (await endOfLinks(file)) === 'number'
}

async function writeWhole(file: string, content: string | Uint8Array, mode: number): Promise<void> {
  await using handle = await open(file, 'wx', mode)
  await handle.chmod(mode)
  await handle.writeFile(content)
  await handle.sync()
}

async function writeInPlace(file: string, found: Stats, content: string | Uint8Array): Promise<void> {
  if (found.isBlockDevice() || found.isSocket()) {
    throw new Error(`"${file}" is a ${found.isSocket() ? 'socket' : 'block device'}; name a file`)
  }
  // Opening a pipe that no process reads would wait for a reader; without waiting it fails with ENXIO.
  await using _probe = await open(file, constants.O_WRONLY | constants.O_NONBLOCK).catch((cause: unknown) => {
    if (found.isFIFO() && codeOf(cause) === 'ENXIO') {
      throw new Error(`"${file}" is a named pipe that no process reads`, { cause })
    }
    throw cause
  })
  await using handle = await open(file, constants.O_WRONLY)
  await handle.writeFile(content)
}

/** Goes on where the descriptor is, so that output before and after it stays. */
const writeDescriptor = promisify<number, string | Uint8Array, void>(writeFile)

const MAX_LINKS = 40

/** The folders of this process's descriptors, and of those that its threads share with it. */
const OPEN_FILES = new RegExp(`^/proc/${process.pid}/(?:task/\\d+/)?fd$`)

/** The path behind all links, whether it is there or not; a number for a descriptor of this process. */
async function endOfLinks(file: string): Promise<string | number> {
  let path = file
  for (let links = 0; links < MAX_LINKS; links++) {
    const folder = await realpath(dirname(path)).catch(ignoreMissing)
    if (folder === undefined) return path
    path = join(folder, basename(path))
    if (OPEN_FILES.test(folder)) return Number(basename(path))
    const next = await readlink(path).catch((error: unknown) => {
      // EINVAL: it is no link. Windows has UNKNOWN for it.
      if (!['EINVAL', 'ENOENT', 'UNKNOWN'].includes(codeOf(error))) throw error
    })
    if (next === undefined) return path
    path = resolve(folder, next)
  }
  throw Object.assign(new Error(`ELOOP: too many symbolic links encountered, open '${file}'`), { code: 'ELOOP' })
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? ''
}

function ignoreMissing(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT') throw error
  return undefined
}

/** Without this, a power cut may take the new name back. Windows refuses to do it to a folder. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  await using handle = await open(folder, 'r')
  await handle.sync()
}
