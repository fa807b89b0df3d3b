/**
 * Rotates container logs that are too large, compresses rotated logs and removes the oldest. File names are upstream's.
 */
import { createReadStream, createWriteStream } from 'node:fs'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

import type { Runtime } from '#cri/runtime.ts'
import { type Clock, every } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'

import { isRunning } from '../pod/container-runs.ts'
import type { Instance, PodOfNode } from '../pod/pod-of-node.ts'

export interface LogPolicy {
  /** A larger log is rotated. */
  readonly maxBytes: number
  /** Files kept per container, including the current one; at least 2. */
  readonly maxFiles: number
  /** How many logs are rotated at the same time. */
  readonly workers: number
  readonly intervalMs: number
}

export interface LogRotationOptions {
  readonly clock: Clock
  readonly runtime: Pick<Runtime, 'reopenContainerLog'>
  readonly log: Logger
  readonly pods: () => Iterable<PodOfNode>
  readonly policy: LogPolicy
}

export const LOG_POLICY: LogPolicy = { maxBytes: 10 * 2 ** 20, maxFiles: 5, workers: 1, intervalMs: 10_000 }

/** Checks periodically, one pass at a time, until the signal is aborted. */
export function startLogRotation(options: LogRotationOptions, signal: AbortSignal): void {
  const { clock, policy, log } = options
  let looking: Promise<void> | undefined
  const timer = every(clock, policy.intervalMs, () => {
    looking ??= rotateLogs(options)
      .catch((error: unknown) => log.error(error, 'Failed to rotate container logs'))
      .finally(() => (looking = undefined))
  })
  signal.addEventListener('abort', () => timer.cancel(), { once: true })
}

export async function rotateLogs(options: LogRotationOptions): Promise<void> {
  const { pods, policy, log } = options
  const waiting = Array.from(pods()).flatMap(runningOf)
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { containerId, logPath: path } = next
      await rotateLog(options, next).catch((error: unknown) =>
        log.error(error, 'Failed to rotate log for container', { path, containerID: containerId }),
      )
    }
  }
  await Promise.all(Array.from({ length: Math.max(1, policy.workers) }, work))
}

function runningOf({ containers }: PodOfNode): Instance[] {
  return Array.from(containers.values()).flatMap(({ record, current }) =>
    current !== undefined && isRunning(record) ? [current] : [],
  )
}

async function rotateLog(options: LogRotationOptions, { containerId, logPath }: Instance): Promise<void> {
  const { runtime, policy, clock } = options
  const size = await stat(logPath).then(
    (found) => found.size,
    () => undefined,
  )
  // The log was deleted, so output is lost until the runtime reopens it.
  if (size === undefined) return void (await runtime.reopenContainerLog({ containerId }))
  if (size < policy.maxBytes) return
  const { remove, compress } = planRotation(basename(logPath), await readdir(dirname(logPath)), policy.maxFiles)
  const of = (name: string): string => join(dirname(logPath), name)
  for (const name of remove) await rm(of(name), { force: true })
  for (const name of compress) await compressLog(of(name))
  const aside = `${logPath}.${stampOf(clock.now())}`
  await rename(logPath, aside)
  try {
    await runtime.reopenContainerLog({ containerId })
  } catch (error) {
    // The runtime still writes to the renamed file. Rename it back, so that it is found.
    await rename(aside, logPath)
    throw error
  }
}

/** Plans which rotated files to remove and to compress. Pure. */
export function planRotation(
  log: string,
  beside: readonly string[],
  maxFiles: number,
): { readonly remove: readonly string[]; readonly compress: readonly string[] } {
  const own = beside.filter((name) => name.startsWith(`${log}.`))
  // A killed kubelet may leave an unfinished compression, which is repeated.
  const unfinished = own.filter((name) => name.endsWith('.tmp'))
  const done = new Set(own.filter((name) => name.endsWith('.gz')))
  const twice = own.filter((name) => done.has(`${name}.gz`))
  const rotated = own.filter((name) => !unfinished.includes(name) && !twice.includes(name)).sort()
  // The current log and the one rotated now count as two.
  const excess = rotated.slice(0, Math.max(0, rotated.length - Math.max(0, maxFiles - 2)))
  const kept = rotated.slice(excess.length)
  return { remove: [...unfinished, ...twice, ...excess], compress: kept.filter((name) => !name.endsWith('.gz')) }
}

async function compressLog(path: string): Promise<void> {
  const part = `${path}.tmp`
  await pipeline(createReadStream(path), createGzip(), createWriteStream(part, { mode: 0o640 }))
  await rename(part, `${path}.gz`)
  await rm(path)
}

/** `20261116-040506`. */
function stampOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')
}
