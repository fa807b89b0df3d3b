/**
 * The lock of a kubeconfig: a file beside it named `<kubeconfig>.lock`, as kubectl makes it. A program that reads, changes
 * and writes a kubeconfig owns the lock meanwhile, so no other program's change is lost.
 */
import { mkdir, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

import { type Clock, realClock, sleep } from '#lib/clock.ts'

/** Creates the lock file, and its folder. Rejects with `EEXIST` while another program owns it. */
export async function createLock(kubeconfig: string): Promise<AsyncDisposable> {
  const lock = `${kubeconfig}.lock`
  await mkdir(dirname(kubeconfig), { recursive: true, mode: 0o755 })
  const handle = await open(lock, 'wx', 0)
  await handle.close()
  return { [Symbol.asyncDispose]: () => rm(lock, { force: true }) }
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
      if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
      if (clock.elapsed() >= deadlineMs) {
        const advice = `delete "${kubeconfig}.lock" if no kubectl or hyperkube is running`
        throw new Error(`"${kubeconfig}" is locked by another program; ${advice}`, { cause })
      }
    }
    await sleep(clock, RETRY_MS)
  }
}
