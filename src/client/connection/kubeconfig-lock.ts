/**
 * The lock of a kubeconfig: a file beside it named `<kubeconfig>.lock`, as kubectl makes it. A program owns the lock
 * from reading a kubeconfig until it has written its change, so no other program's change is lost.
 *
 * Our lock is a symbolic link that names its owner, so that the next program can remove the lock of a killed process.
 * To kubectl the link looks like its own lock file. A lock file that kubectl left names no owner and stays.
 */
import { createHash } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { mkdir, open, readlink, rm, symlink } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'

import { type Clock, realClock, sleep } from '#lib/clock.ts'
import { currentOwner, isOwnerVisible, takeProcessLock } from '#lib/process/lock.ts'

/** Creates the lock file, and its folder. Rejects with `EEXIST` while another program owns it. */
export async function createLock(kubeconfig: string): Promise<AsyncDisposable> {
  const lock = `${resolve(kubeconfig)}.lock`
  await mkdir(dirname(lock), { recursive: true, mode: 0o755 })
  try {
    await createFile(lock)
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST' || !(await removeAbandoned(lock))) throw cause
    await createFile(lock)
  }
  return { [Symbol.asyncDispose]: () => rm(lock, { force: true }) }
}

async function createFile(lock: string): Promise<void> {
  try {
    await symlink(ownerText(), lock)
  } catch (cause) {
    // Windows and some file systems refuse symbolic links.
    if (codeOf(cause) === 'EEXIST') throw cause
    const handle = await open(lock, 'wx', 0)
    await handle.close()
  }
}

/** Two programs must not both remove it: the second one would remove the new lock of the first one. */
async function removeAbandoned(lock: string): Promise<boolean> {
  if (!(await isAbandoned(lock))) return false
  const name = createHash('sha256').update(lock).digest('hex').slice(0, 16)
  const attempt = takeProcessLock(join(tmpdir(), `hyperkube-kubeconfig-${name}.lock`), 'upkeep')
  if (!('lock' in attempt)) return false
  try {
    if (await isAbandoned(lock)) await rm(lock, { force: true })
    return true
  } finally {
    attempt.lock.discard()
  }
}

async function isAbandoned(lock: string): Promise<boolean> {
  const [machine, pid, began] = (await readlink(lock).catch(() => '')).split(' ')
  if (machine !== MACHINE || pid === undefined || began === undefined) return false
  return !isOwnerVisible({ pid: Number(pid), began: Number(began), use: 'upkeep' })
}

/** The number of a process means nothing on another machine or in another container. */
const MACHINE = `hyperkube@${hostname()}/${processNamespace()}`

function ownerText(): string {
  const { pid, began } = currentOwner('upkeep')
  return `${MACHINE} ${pid} ${began}`
}

function processNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return process.platform
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}

/** Programs own the lock for milliseconds. One that is older was left behind by a program that died. */
const WAIT_MS = 5_000
const RETRY_MS = 20

/** Waits for the lock. Rejects with an error for users after five seconds. */
export async function waitForLock(kubeconfig: string, clock: Clock = realClock): Promise<AsyncDisposable> {
  const deadlineMs = clock.elapsed() + WAIT_MS
  for (;;) {
    try {
      return await clock.during(createLock(kubeconfig))
    } catch (cause) {
      if (codeOf(cause) !== 'EEXIST') throw cause
      if (clock.elapsed() >= deadlineMs) {
        const advice = `delete "${kubeconfig}.lock" if no kubectl or hyperkube is running`
        throw new Error(`"${kubeconfig}" is locked by another program; ${advice}`, { cause })
      }
    }
    await sleep(clock, RETRY_MS)
  }
}
