/** Settings of the kernel that pods are promised: memory is handed out freely, and a machine that panics comes back by itself. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { Logger } from '#lib/log.ts'

/** As upstream's: files below `/proc/sys`. */
const WANTED: ReadonlyMap<string, number> = new Map([
  ['vm/overcommit_memory', 1],
  ['vm/panic_on_oom', 0],
  ['kernel/panic', 10],
  ['kernel/panic_on_oops', 1],
  ['kernel/keys/root_maxkeys', 1_000_000],
  ['kernel/keys/root_maxbytes', 25_000_000],
])

export interface KernelOptions {
  /** Nothing is changed: what is otherwise is an error. */
  readonly protects: boolean
  readonly log: Logger
  /** What cannot be changed is left, as for a kubelet that is root of a user namespace only. */
  readonly isTolerant?: boolean
  /** Default: `/proc/sys`. */
  readonly folder?: string
}

/** Rejects with everything that is not as it has to be. What this kernel does not know is no fault of anybody's. */
export async function settleKernel(options: KernelOptions): Promise<void> {
  const { protects, log, isTolerant = false, folder = '/proc/sys' } = options
  const errors: string[] = []
  for (const [flag, expectedValue] of WANTED) {
    const path = join(folder, flag)
    const text = await readFile(path, 'utf8').catch(() => undefined)
    if (text === undefined) continue
    const actualValue = Number(text)
    if (actualValue === expectedValue) continue
    if (protects) {
      errors.push(`invalid kernel flag: ${flag}, expected value: ${expectedValue}, actual value: ${actualValue}`)
      continue
    }
    log.info('Updating kernel flag', { flag, expectedValue, actualValue })
    await writeFile(path, String(expectedValue)).catch((error: Error) => {
      if (isTolerant)
        log.info('Updating kernel flag failed (running in UserNS, ignoring)', { flag, err: error.message })
      else errors.push(error.message)
    })
  }
  if (errors.length > 0) throw new Error(errors.length === 1 ? errors.join('') : `[${errors.join(', ')}]`)
}
