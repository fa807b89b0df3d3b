/**
 * Parts of volumes. Who has a volume may change it at any moment, and must not thereby reach what is outside it: a part is
 * opened component by component below the volume, and what was opened is mounted, not what its name says then.
 */
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, realpath, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'

import { goQuote } from '#lib/go-text.ts'

import { makeIn, openIn, openRoot, pathOf } from './beneath.ts'
import type { Mounter } from './mounter.ts'
import type { SubPathAsk } from './volume-keeper.ts'

export interface SubPathTools {
  readonly mounter: Mounter
  /** What containers are not told, because it says something of the node. */
  readonly onError: (error: unknown) => void
}

/** Returns `target`, where the part is mounted from now on. */
export async function bindSubPath(ask: SubPathAsk, target: string, tools: SubPathTools): Promise<string> {
  const { hostPath, subPath } = ask
  if (subPath.startsWith('/')) throw new Error(`error SubPath \`${subPath}\` must not be an absolute path`)
  if (subPath.split('/').includes('..')) {
    throw new Error(`unable to provision SubPath \`${subPath}\`: must not contain '..'`)
  }
  const hushed = async <T>(what: string, work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      tools.onError(error)
      const mount = `volumeMount ${goQuote(ask.volume)} of container ${goQuote(ask.container)}`
      throw new Error(`failed to ${what} for ${mount}`, { cause: error })
    }
  }
  await hushed('create subPath directory', ensureDirectory(hostPath, subPath))
  await hushed('prepare subPath', bind(hostPath, subPath, target, tools.mounter))
  return target
}

/** The text of a file in a volume, and of nothing outside. */
export async function readInVolume(hostPath: string, path: string, maxBytes: number): Promise<string> {
  const found = await openResolved(hostPath, path)
  try {
    if (!(await found.stat()).isFile()) throw new Error(`${path} is not a file`)
    const file = await open(pathOf(found), constants.O_RDONLY)
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0)
      return buffer.toString('utf8', 0, bytesRead)
    } finally {
      await file.close()
    }
  } finally {
    await found.close()
  }
}

/** Links inside the volume are followed once, and the way that results from it then holds no link any more. */
export async function openResolved(hostPath: string, path: string): Promise<FileHandle> {
  const base = await realpath(hostPath)
  return openBeneath(base, partsBelow(base, await realpath(join(base, path))))
}

function partsBelow(base: string, path: string): string[] {
  const parts = relative(base, path).split('/').filter(Boolean)
  if (parts[0] === '..') throw new Error(`subpath ${goQuote(path)} not within volume path ${goQuote(base)}`)
  return parts
}

async function openBeneath(base: string, parts: readonly string[]): Promise<FileHandle> {
  let handle = await openRoot(base)
  for (const part of parts) {
    const parent = handle
    handle = await openIn(parent, part).finally(() => parent.close())
  }
  return handle
}

/** What is missing of it is made, with the mode of the volume. */
async function ensureDirectory(hostPath: string, path: string): Promise<void> {
  const base = await realpath(hostPath)
  if ((await stat(join(base, path)).catch(() => undefined)) !== undefined) return
  const { mode } = await stat(base)
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  const { existing, missing } = await split(base, parts)
  let handle = await openBeneath(base, partsBelow(base, existing))
  for (const part of missing) {
    const parent = handle
    handle = await makeIn(parent, part, mode & 0o7777).finally(() => parent.close())
  }
  await handle.close()
}

/** The longest beginning that is there, without links, and the rest. */
async function split(base: string, parts: readonly string[]): Promise<{ existing: string; missing: string[] }> {
  for (let count = parts.length; count > 0; count--) {
    const existing = await realpath(join(base, ...parts.slice(0, count))).catch(() => undefined)
    if (existing !== undefined) return { existing, missing: parts.slice(count) }
  }
  return { existing: base, missing: [...parts] }
}

async function bind(hostPath: string, path: string, target: string, mounter: Mounter): Promise<void> {
  const found = await openResolved(hostPath, path)
  try {
    const { dev, ino, isDirectory } = await identity(found)
    if ((await mounter.list()).some((mount) => mount.path === target)) {
      const there = await stat(target).catch(() => undefined)
      if (there?.dev === dev && there.ino === ino) return
      await mounter.unmount(target)
    }
    await makeTarget(target, isDirectory)
    // The process of mount looks through ours, where the number stands for what was opened and for nothing else.
    await mounter.mount({ source: `/proc/${process.pid}/fd/${found.fd}`, target, options: ['bind'] })
  } finally {
    await found.close()
  }
}

async function identity(handle: FileHandle): Promise<{ dev: number; ino: number; isDirectory: boolean }> {
  const stats = await handle.stat()
  return { dev: stats.dev, ino: stats.ino, isDirectory: stats.isDirectory() }
}

/** A directory for a directory, a file for everything else; what another kind of part left is taken away. */
async function makeTarget(target: string, isDirectory: boolean): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o750 })
  const there = await stat(target).catch(() => undefined)
  if (there !== undefined && there.isDirectory() !== isDirectory) {
    await (there.isDirectory() ? rmdir(target) : rm(target))
  }
  if (isDirectory) await mkdir(target, { recursive: true, mode: 0o750 })
  else await writeFile(target, '', { mode: 0o640, flag: 'a' })
}
