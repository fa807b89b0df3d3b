/** Creates the log directories of pods, and the links in `/var/log/containers` that log collectors read. */
import { mkdir, readdir, readlink, rm, stat, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'

import type { Clock } from '#lib/clock.ts'

export interface LogLink {
  readonly pod: string
  readonly namespace: string
  readonly container: string
  readonly containerId: string
  /** Path of the log. */
  readonly path: string
}

export interface LogFiles {
  /** Does nothing when the link exists. */
  link(link: LogLink): Promise<void>
  /** UIDs of pods that have logs. */
  uids(): Promise<readonly string[]>
  /** Removes all logs of a pod. */
  remove(uid: string): Promise<void>
  /** Links whose log is gone. */
  deadLinks(): Promise<readonly { readonly containerId: string; readonly path: string }[]>
  unlink(path: string): Promise<void>
}

const MAX_NAME = 255
const SUFFIX = '.log'

/** `<pod>_<namespace>_<container>-<id>.log`, cut to the limit of file systems. */
export function linkName({ pod, namespace, container, containerId }: Omit<LogLink, 'path'>): string {
  return `${pod}_${namespace}_${container}-${containerId}`.slice(0, MAX_NAME - SUFFIX.length) + SUFFIX
}

/** `linksDir` is `/var/log/containers`; without it no links are made. */
export function createLogFiles(podLogsDir: string, linksDir: string | undefined, clock: Clock): LogFiles {
  const during = <T>(work: () => Promise<T>): Promise<T> => clock.during(work())
  const namesIn = (dir: string): Promise<string[]> => readdir(dir).catch(() => [])
  return {
    link: (link) =>
      during(async () => {
        if (linksDir === undefined) return
        await mkdir(linksDir, { recursive: true, mode: 0o755 })
        await symlink(link.path, join(linksDir, linkName(link))).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'EEXIST') throw error
        })
      }),
    uids: () => during(async () => (await namesIn(podLogsDir)).map(uidOf)),
    remove: (uid) =>
      during(async () => {
        for (const name of await namesIn(podLogsDir)) {
          if (uidOf(name) === uid) await rm(join(podLogsDir, name), { recursive: true, force: true })
        }
      }),
    deadLinks: () =>
      during(async () => {
        if (linksDir === undefined) return []
        const paths = (await namesIn(linksDir))
          .filter((name) => name.endsWith(SUFFIX))
          .map((name) => join(linksDir, name))
        const dead = await Promise.all(paths.map(isDead))
        return paths
          .filter((_, at) => dead[at])
          .map((path) => ({ path, containerId: path.slice(path.lastIndexOf('-') + 1, -SUFFIX.length) }))
      }),
    unlink: (path) => during(() => unlink(path).catch(() => undefined)),
  }
}

/** True for a dangling link. Other files are left alone. */
async function isDead(path: string): Promise<boolean> {
  const isLink = await readlink(path).then(
    () => true,
    () => false,
  )
  return isLink && (await stat(path).then(() => false, isMissing))
}

const isMissing = (error: NodeJS.ErrnoException): boolean => error.code === 'ENOENT'

/** The UID in `<namespace>_<name>_<uid>`. */
const uidOf = (name: string): string => name.slice(name.lastIndexOf('_') + 1)

/** Writes nothing. */
export const NO_LOG_FILES: LogFiles = {
  link: async () => undefined,
  uids: async () => [],
  remove: async () => undefined,
  deadLinks: async () => [],
  unlink: async () => undefined,
}
