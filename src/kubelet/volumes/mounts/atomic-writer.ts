/**
 * Writes the files of a volume atomically: a new timestamped directory has the files, and the link `..data` switches to
 * it. Readers see either all old or all new files.
 */
import {
  chmod,
  lchown,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'

import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import { removeTree } from '../safe-files.ts'
import type { FileContent, Payload } from '../volume-plugin.ts'

const DATA = '..data'
const NEW_DATA = '..data_tmp'
const MAX_PATH = 4096
const MAX_NAME = 255

export interface AtomicWrite {
  readonly dir: string
  readonly files: Payload
  readonly clock: Clock
  readonly random: Random
  /** Runs after the new files are written and before they become visible. */
  readonly beforeShown?: () => Promise<void>
}

/** Writes nothing when the files are unchanged. */
export async function writeAtomically(write: AtomicWrite): Promise<void> {
  const { dir } = write
  const files = checked(write.files)
  const shown = await linkOf(join(dir, DATA))
  const before = shown === undefined ? new Set<string>() : await pathsIn(join(dir, shown))
  const after = new Set([...files.keys()].flatMap(withParents))
  const gone = [...before].filter((path) => !after.has(path))
  const isSame = shown !== undefined && gone.length === 0 && (await areThere(join(dir, shown), files))
  const current = isSame ? shown : await publish(write, files)
  for (const name of new Set([...files.keys()].map(firstOf))) await showIn(dir, name)
  for (const name of gone.filter((path) => !path.includes('/'))) await unlink(join(dir, name)).catch(ignoreMissing)
  await sweep(dir, current)
}

/** Throws upstream's errors for invalid paths. */
function checked(files: Payload): Map<string, FileContent> {
  for (const path of files.keys()) checkPath(path)
  return new Map([...files].map(([path, file]) => [normalize(path), file]))
}

function checkPath(path: string): void {
  if (path === '') throw new Error('invalid path: must not be empty: ""')
  if (path.startsWith('/')) throw new Error(`invalid path: must be relative path: ${path}`)
  if (path.length > MAX_PATH) throw new Error(`invalid path: must be less than or equal to ${MAX_PATH} characters`)
  const parts = path.split('/')
  if (parts.includes('..')) throw new Error(`invalid path: must not contain '..': ${path}`)
  if (parts.some((part) => Buffer.byteLength(part) > MAX_NAME)) {
    throw new Error(`invalid path: filenames must be less than or equal to ${MAX_NAME} characters`)
  }
  if (path.startsWith('..')) throw new Error(`invalid path: must not start with '..': ${path}`)
}

const firstOf = (path: string): string => path.split('/')[0] ?? ''

const withParents = (path: string): string[] => path.split('/').map((_, at, parts) => parts.slice(0, at + 1).join('/'))

async function linkOf(path: string): Promise<string | undefined> {
  try {
    return await readlink(path)
  } catch (error) {
    return ignoreMissing(error)
  }
}

async function pathsIn(dir: string): Promise<Set<string>> {
  const found = await readdir(dir, { recursive: true }).catch(ignoreMissing)
  return new Set(found)
}

async function areThere(dir: string, files: Payload): Promise<boolean> {
  for (const [path, { data }] of files) {
    const found = await readFile(join(dir, path)).catch(ignoreMissing)
    if (found === undefined || !found.equals(data)) return false
  }
  return true
}

/** Returns the name of the new directory. */
async function publish({ dir, clock, random, beforeShown }: AtomicWrite, files: Payload): Promise<string> {
  const name = await makeStamped(dir, clock.now(), random)
  try {
    for (const [path, file] of files) await writeOne(join(dir, name, path), file)
    await beforeShown?.()
    await rm(join(dir, NEW_DATA), { force: true })
    await symlink(name, join(dir, NEW_DATA))
    await rename(join(dir, NEW_DATA), join(dir, DATA))
    return name
  } catch (error) {
    await removeTree(join(dir, name)).catch(() => undefined)
    throw error
  }
}

async function makeStamped(dir: string, nowMs: number, random: Random): Promise<string> {
  const stamp = new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-T:]/g, '_')
  for (;;) {
    const name = `..${stamp}.${random.int(2 ** 32)}`
    try {
      await mkdir(join(dir, name))
      await chmod(join(dir, name), 0o755)
      return name
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

/** Sets the mode explicitly, because the umask reduces the mode of a new file. */
async function writeOne(path: string, { data, mode, user }: FileContent): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, data, { mode })
  await chmod(path, mode)
  if (user !== undefined) await lchown(path, user, -1)
}

async function showIn(dir: string, name: string): Promise<void> {
  if ((await readlink(join(dir, name)).catch(ignoreMissing)) === undefined) {
    await symlink(join(DATA, name), join(dir, name)).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    })
  }
}

/** Removes old directories, and those of interrupted writes. */
async function sweep(dir: string, current: string): Promise<void> {
  const names = await readdir(dir)
  for (const name of names) if (STAMPED.test(name) && name !== current) await removeTree(join(dir, name))
}

const STAMPED = /^\.\.\d{4}(_\d\d){5}\./

/** A directory created for a nested mount is not a link, and stays. */
function ignoreMissing(error: unknown): undefined {
  const { code } = error as NodeJS.ErrnoException
  if (code !== 'ENOENT' && code !== 'EINVAL') throw error
}
