/** What a kubelet keeps of pods on the disk, beside their volumes. */
import { mkdir, open, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'

import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import type { PodFacts } from './pod-of-node.ts'
import { createUserRanges, type UserRange, USERS_FILE } from './user-ranges.ts'

export interface PodFiles {
  /** '' for what cannot be read. */
  read(path: string): Promise<string>
  /** At most so many bytes of the end. */
  tail(path: string, maxBytes: number): Promise<string>
  /** Returns the path of `/etc/hosts` of the pod. */
  writeHosts(uid: string, text: string): Promise<string>
  /** A new file for the last words of one run of a container. */
  makeMessageFile(uid: string, container: string): Promise<string>
  makeDirectory(path: string): Promise<void>
  /** Users of the machine that are the pod's alone, the same as long as it has files. Rejects when all are given away. */
  userRange(uid: string): Promise<UserRange>
  /** All of a pod but what is mounted there. */
  remove(uid: string): Promise<void>
  /** Whose files there are. */
  uids(): Promise<readonly string[]>
}

/** The clock stands still meanwhile, should it be a virtual one. */
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
        // Whoever the container runs as writes to it; the mode of `open` is cut by the mask of the process.
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
        // What is left in it is mounted, or somebody else's.
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
