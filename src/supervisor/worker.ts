/** The context that the parts of the supervisor receive, and actions that they share. */
import { sleep } from '#lib/clock.ts'

import type { Host, Launch } from './host.ts'
import type { Layout } from './layout.ts'
import { CrashError, RetryError } from './outcome.ts'
import type { ProcessName } from './process-names.ts'
import type { NodeSettings } from './settings.ts'
import type { Timings } from './timings.ts'

export interface Worker {
  readonly host: Host
  readonly layout: Layout
  readonly settings: NodeSettings
  readonly timings: Timings
  readonly signal: AbortSignal
  /** Waits until processes that end together have ended; called once when something is missing. */
  readonly settle?: () => Promise<void>
  /** Called before each missing process is started. */
  readonly starting?: (name: ProcessName) => void
}

export function pause({ host, signal }: Pick<Worker, 'host' | 'signal'>, ms: number): Promise<void> {
  return sleep(host.clock, ms, signal)
}

/** Waits until a file exists and has been copied completely. */
export async function untilThere(worker: Worker, path: string): Promise<void> {
  const { rounds, beforeMs, afterMs, settleMs } = worker.timings.file
  for (let round = 0; round < rounds; round++) {
    await pause(worker, beforeMs)
    if (await worker.host.files.exists(path)) return pause(worker, settleMs)
    await pause(worker, afterMs)
  }
  throw new CrashError(`${path} did not come within ${(rounds * (beforeMs + afterMs)) / 1000} s`)
}

/** Restarts the proxy, because connections to the API servers hang after the network changed. Failures are ignored. */
export async function restartProxy(worker: Worker): Promise<void> {
  await pause(worker, worker.timings.proxyMs)
  await worker.host.network
    .restartProxy()
    .catch((error: unknown) => worker.host.say(`the proxy stays: ${String(error)}`))
  await pause(worker, worker.timings.proxyMs)
}

/** Launches the process until one stays. The last attempt writes its error output to a file. */
export async function launchUntilItStays(worker: Worker, launch: Omit<Launch, 'errorsTo'>): Promise<number> {
  const { host, layout, timings } = worker
  const { attempts, waitMs, proxyBefore } = timings.patience[launch.name]
  for (let attempt = 1; attempt <= attempts; attempt++) {
    if (attempt === proxyBefore) await restartProxy(worker)
    const errorsTo = attempt === attempts ? layout.lastWords(launch.name, dayOf(host.clock.now())) : undefined
    const pid = await host.processes.launch({ ...launch, errorsTo })
    await pause(worker, waitMs)
    if (await host.processes.isAlive(pid)) return pid
    host.say(`${launch.name} did not stay, attempt ${attempt} of ${attempts}`)
  }
  throw new RetryError(`${launch.name} does not stay`)
}

/** `20261116`. */
function dayOf(now: number): string {
  return new Date(now).toISOString().slice(0, 10).replaceAll('-', '')
}

export async function isRunning({ host }: Worker, name: ProcessName): Promise<boolean> {
  return (await host.processes.find(name)).length > 0
}
