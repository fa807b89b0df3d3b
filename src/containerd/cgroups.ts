/**
 * Lists and removes the cgroups of a cluster in all mounted hierarchies: cgroup v2 has one hierarchy, cgroup v1 one per
 * controller.
 */
import { readdir, readFile, rmdir } from 'node:fs/promises'
import { join } from 'node:path'

import { type MountPoint, readMountTable } from '#lib/files/mount-table.ts'

/** Mount points of both cgroup versions. */
export function cgroupMounts(mounts: readonly MountPoint[]): string[] {
  return mounts.filter(({ type }) => type === 'cgroup' || type === 'cgroup2').map(({ path }) => path)
}

/** All cgroups at or below `parent`, deepest first. */
async function foldersOf(parent: string): Promise<string[]> {
  const mounts = cgroupMounts(await readMountTable())
  const all = mounts.map(async (mount) => {
    const top = join(mount, parent)
    const below = await readdir(top, { recursive: true, withFileTypes: true }).catch(() => undefined)
    if (below === undefined) return []
    const folders = below.filter((one) => one.isDirectory()).map((one) => join(one.parentPath, one.name))
    return [top, ...folders].sort((a, b) => b.length - a.length)
  })
  return (await Promise.all(all)).flat()
}

export async function processesIn(parent: string): Promise<number[]> {
  const texts = (await foldersOf(parent)).map((folder) =>
    readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => ''),
  )
  const pids = (await Promise.all(texts)).flatMap((text) =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map(Number),
  )
  return [...new Set(pids)]
}

/** The cgroups must have no processes left. */
export async function removeCgroups(parent: string): Promise<void> {
  for (const folder of await foldersOf(parent)) {
    await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
  }
}
