/** Kernel settings that the kubelet requires: memory overcommit, and a reboot after a panic. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { Logger } from '#lib/log/log.ts'

/** Upstream's values, as files below `/proc/sys`. */
const WANTED: ReadonlyMap<string, number> = new Map([
  ['vm/overcommit_memory', 1],
  ['vm/panic_on_oom', 0],
  ['kernel/panic', 10],
  ['kernel/panic_on_oops', 1],
  ['kernel/keys/root_maxkeys', 1_000_000],
  ['kernel/keys/root_maxbytes', 25_000_000],
])

export interface KernelOptions {
  /** Change nothing; report other values as errors. */
  readonly protects: boolean
  readonly log: Logger
  /** Ignore failed writes, as in a user namespace. */
  readonly isTolerant?: boolean
  /** Default: `/proc/sys`. */
  readonly folder?: string
}

/** Rejects with all wrong settings. Settings unknown to the kernel are ignored. */
export async function applyKernelSettings(options: KernelOptions): Promise<void> {
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
