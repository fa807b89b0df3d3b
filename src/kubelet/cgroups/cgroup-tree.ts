/** Cgroups as directories: version 1 has a hierarchy per controller, version 2 a single one. */
import { access, mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { goQuote } from '#lib/go/text.ts'

import { allowance, type CgroupFile } from './cgroup-files.ts'

/** Paths begin with a slash and are cgroup paths, not file paths. */
export interface CgroupTree {
  readonly version: 1 | 2
  /** Creates the cgroup with all controllers that pods need. */
  make(path: string): Promise<void>
  /** True if the file has another value; with `isOnlyMore`, a lower limit. False for missing controllers. */
  differs(path: string, file: CgroupFile, isOnlyMore?: boolean): Promise<boolean>
  /** Writes the file if it differs. */
  write(path: string, file: CgroupFile, isOnlyMore?: boolean): Promise<void>
  /** Removes it with its descendants. Cgroups in use stay. */
  remove(path: string): Promise<void>
  /** Names of its children in any hierarchy. */
  namesBelow(path: string): Promise<string[]>
  /** Rejects with upstream's text when a cgroup that others create is missing. */
  expect(path: string): Promise<void>
}

/** Controllers with limits, and cpuacct, whose usage is read. */
const OWN = ['cpu', 'cpuacct', 'memory', 'pids', 'hugetlb']

export function cgroupTree(root: string, version: 1 | 2): CgroupTree {
  const controllers = async (): Promise<string[]> =>
    version === 1 ? readdir(root) : wordsIn(join(root, 'cgroup.controllers'))
  const dirOf = (path: string, controller: string): string => join(root, version === 1 ? controller : '', path)
  /** All hierarchies, because runtimes create cgroups in each. */
  const hierarchies = async (): Promise<string[]> =>
    version === 2 ? [root] : (await readdir(root)).map((name) => join(root, name))
  let known: Promise<string[]> | undefined
  /** Controllers of the machine do not change. */
  const own = async (): Promise<string[]> => {
    const there = await (known ??= controllers())
    return OWN.filter((name) => there.includes(name))
  }
  const fileAt = (path: string, { controller, name }: CgroupFile): string => join(dirOf(path, controller), name)
  const differs: CgroupTree['differs'] = async (path, file, isOnlyMore = false) => {
    if (!(await own()).includes(file.controller)) return false
    const now = (await readFile(fileAt(path, file), 'utf8')).trim()
    return now !== file.value && !(isOnlyMore && allowance(now) >= allowance(file.value))
  }
  return {
    version,
    differs,
    async make(path) {
      if (version === 2) return makeDelegated(root, path, await own())
      for (const controller of await own()) await mkdir(dirOf(path, controller), { recursive: true })
    },
    async write(path, file, isOnlyMore) {
      if (!(await differs(path, file, isOnlyMore))) return
      await writeFile(fileAt(path, file), file.value).catch((cause: Error) => {
        throw new Error(`failed to write ${goQuote(file.value)}: ${cause.message}`, { cause })
      })
    },
    async remove(path) {
      for (const hierarchy of await hierarchies()) await removeFolders(join(hierarchy, path))
    },
    async namesBelow(path) {
      const all = await Promise.all((await hierarchies()).map((dir) => foldersIn(join(dir, path))))
      return [...new Set(all.flat())]
    },
    async expect(path) {
      const there = (await controllers()).sort()
      const fault = version === 1 ? await missingPaths(root, path, there) : await missingControllers(root, path, there)
      if (fault !== undefined) throw new Error(fault)
    },
  }
}

async function wordsIn(file: string): Promise<string[]> {
  return (await readFile(file, 'utf8')).split(/\s+/).filter((word) => word !== '')
}

const partsOf = (path: string): string[] => path.split('/').filter((part) => part !== '')

/** A cgroup in messages: `["kubepods" "burstable"]`. */
export const cgroupText = (path: string): string => `[${partsOf(path).map(goQuote).join(' ')}]`

const EXPECTED = ['cpu', 'cpuacct', 'cpuset', 'memory', 'systemd', 'pids', 'hugetlb']

async function missingPaths(root: string, path: string, there: readonly string[]): Promise<string | undefined> {
  const missing: string[] = []
  for (const dir of there.filter((name) => EXPECTED.includes(name)).map((name) => join(root, name, path))) {
    await access(dir).catch(() => missing.push(dir))
  }
  return missing.length === 0 ? undefined : `cgroup ${cgroupText(path)} has some missing paths: ${missing.join(', ')}`
}

async function missingControllers(root: string, path: string, there: readonly string[]): Promise<string | undefined> {
  const file = join(root, path, 'cgroup.controllers')
  const enabled = await wordsIn(file).catch((error: Error) => error)
  if (enabled instanceof Error) return `could not read controllers for cgroup ${cgroupText(path)}: ${enabled.message}`
  const missing = there.filter((name) => EXPECTED.includes(name) && !enabled.includes(name))
  return missing.length === 0
    ? undefined
    : `cgroup ${cgroupText(path)} has some missing controllers: ${missing.join(', ')}`
}

/** In version 2 a cgroup has only the controllers that all its ancestors delegate. */
async function makeDelegated(root: string, path: string, controllers: readonly string[]): Promise<void> {
  let dir = root
  for (const part of partsOf(path)) {
    // The runtime creates the cgroups of containers and delegates what it needs.
    await writeFile(join(dir, 'cgroup.subtree_control'), controllers.map((name) => `+${name}`).join(' ')).catch(
      () => undefined,
    )
    dir = join(dir, part)
    await mkdir(dir).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  }
}

async function foldersIn(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

/** Bottom-up. Cgroups with processes, and their ancestors, stay. */
async function removeFolders(dir: string): Promise<void> {
  for (const name of await foldersIn(dir)) await removeFolders(join(dir, name))
  await rmdir(dir).catch(() => undefined)
}
