/** Creates and removes the files of pods on disk, except for volumes. */
import { mkdir, open, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'

import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import type { PodFacts } from '../pod/pod-of-node.ts'
import type { UserRange } from '../pod/sandbox-config.ts'
import { createUserRanges, USERS_FILE } from './user-ranges.ts'

export interface PodFiles {
  /** '' for an unreadable file. */
  read(path: string): Promise<string>
  /** At most `maxBytes` from the end. */
  tail(path: string, maxBytes: number): Promise<string>
  /** Returns the path of the pod's `/etc/hosts`. */
  writeHosts(uid: string, text: string): Promise<string>
  /** Creates the termination message file of one container run. */
  makeMessageFile(uid: string, container: string): Promise<string>
  makeDirectory(path: string): Promise<void>
  /** The range of user IDs of the pod, which stays the same while it has files. Rejects when no range is free. */
  userRange(uid: string): Promise<UserRange>
  /** Removes everything except mounts. */
  remove(uid: string): Promise<void>
  /** UIDs of pods that have files. */
  uids(): Promise<readonly string[]>
}

/** A virtual clock does not advance during file operations. */
export function createPodFiles(
  { rootDir, idsPerPod }: Pick<PodFacts, 'rootDir' | 'idsPerPod'>,
  clock: Clock,
  random: Random,
): PodFiles {
  const ranges = createUserRanges(`${rootDir}/pods`, idsPerPod)
  const dirOf = (uid: string): string => `${rootDir}/pods/${uid}`
  const during = <T>(work: () => Promise<T>): Promise<T> => clock.during(work())
  return {
    read: (path) => during(() => readFile(path, 'utf8').catch(() => '')),
    tail: (path, maxBytes) => during(() => tailOf(path, maxBytes).catch(() => '')),
    writeHosts: (uid, text) =>
      during(async () => {
        const path = `${dirOf(uid)}/etc-hosts`
        await mkdir(dirOf(uid), { recursive: true, mode: 0o750 })
        await writeFile(path, text, { mode: 0o644 })
        return path
      }),
    makeMessageFile: (uid, container) =>
      during(async () => {
        const dir = `${dirOf(uid)}/containers/${container}`
        const path = `${dir}/${random.bytes(4).toString('hex')}`
        await mkdir(dir, { recursive: true, mode: 0o750 })
        const file = await open(path, 'wx')
        // The container may run as any user; the umask reduces the mode of `open`.
        await file.chmod(0o666)
        await file.close()
        return path
      }),
    makeDirectory: (path) => during(async () => void (await mkdir(path, { recursive: true, mode: 0o755 }))),
    userRange: (uid) => during(() => ranges(uid)),
    remove: (uid) =>
      during(async () => {
        await rm(`${dirOf(uid)}/${USERS_FILE}`, { force: true })
        await rm(`${dirOf(uid)}/etc-hosts`, { force: true })
        await rm(`${dirOf(uid)}/containers`, { recursive: true, force: true })
        // Remaining entries are mounts, or belong to others.
        await rmdir(dirOf(uid)).catch(() => undefined)
      }),
    uids: () => during(() => readdir(`${rootDir}/pods`).catch(() => [])),
  }
}

async function tailOf(path: string, maxBytes: number): Promise<string> {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const bytes = Buffer.alloc(Math.min(size, maxBytes))
    await file.read(bytes, 0, bytes.length, size - bytes.length)
    return bytes.toString()
  } finally {
    await file.close()
  }
}
