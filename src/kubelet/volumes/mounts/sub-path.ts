/**
 * Bind-mounts subPaths of volumes. A container may change its volume at any time. So each path component is opened
 * below the volume, and the open file is mounted, never a path.
 */
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, realpath, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'

import { goQuote } from '#lib/go/text.ts'

import { makeIn, openIn, openRoot, pathOf } from '../safe-files.ts'
import type { SubPathRequest } from '../volume-manager.ts'
import type { Mounter } from './mounter.ts'

export interface SubPathTools {
  readonly mounter: Mounter
  /** Logs details of the node that users must not see. */
  readonly onError: (error: unknown) => void
}

/** Mounts the subPath and returns `target`. */
export async function bindSubPath(request: SubPathRequest, target: string, tools: SubPathTools): Promise<string> {
  const { hostPath, subPath } = request
  if (subPath.startsWith('/')) throw new Error(`error SubPath \`${subPath}\` must not be an absolute path`)
  if (subPath.split('/').includes('..')) {
    throw new Error(`unable to provision SubPath \`${subPath}\`: must not contain '..'`)
  }
  const withPublicError = async <T>(what: string, work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      tools.onError(error)
      const mount = `volumeMount ${goQuote(request.volume)} of container ${goQuote(request.container)}`
      throw new Error(`failed to ${what} for ${mount}`, { cause: error })
    }
  }
  await withPublicError('create subPath directory', ensureDirectory(hostPath, subPath))
  await withPublicError('prepare subPath', bind(hostPath, subPath, target, tools.mounter))
  return target
}

/** Reads a file inside a volume, and never outside it. */
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

/** Resolves links inside the volume once; the resolved path must not contain links. */
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

/** Creates missing directories with the mode of the volume. */
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

/** The longest existing prefix, with links resolved, and the missing components. */
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
    // The mount program reads our file descriptor table, where the number refers to the open file.
    await mounter.mount({ source: `/proc/${process.pid}/fd/${found.fd}`, target, options: ['bind'] })
  } finally {
    await found.close()
  }
}

async function identity(handle: FileHandle): Promise<{ dev: number; ino: number; isDirectory: boolean }> {
  const stats = await handle.stat()
  return { dev: stats.dev, ino: stats.ino, isDirectory: stats.isDirectory() }
}

/** Creates a directory for a directory, otherwise a file. A target of the other type is replaced. */
async function makeTarget(target: string, isDirectory: boolean): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o750 })
  const there = await stat(target).catch(() => undefined)
  if (there !== undefined && there.isDirectory() !== isDirectory) {
    await (there.isDirectory() ? rmdir(target) : rm(target))
  }
  if (isDirectory) await mkdir(target, { recursive: true, mode: 0o750 })
  else await writeFile(target, '', { mode: 0o640, flag: 'a' })
}
