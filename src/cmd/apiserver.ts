/** `kube-apiserver`: runs the API server as a separate program with upstream's flags. */
import { APISERVER_FLAGS, type Settings } from '#control-plane/flags/flags.ts'
import type { RunningServer } from '#control-plane/server.ts'
import { onAbort } from '#lib/abort.ts'
import { sleep } from '#lib/clock.ts'
import { tidyWhenQuiet } from '#lib/process/tidy-memory.ts'
import { defineProgram, type Invocation, type Program } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { runAlone } from './process.ts'
import { startSmall } from './small-heap.ts'

export const apiserver: Program = defineProgram({
  name: 'kube-apiserver',
  aliases: ['apiserver'],
  long:
    'The Kubernetes API server validates and stores the objects of a cluster (pods, services, deployments and all others) ' +
    'and serves them over HTTPS. All other components of a cluster communicate through it.',
  version: kubernetesVersion(),
  flags: APISERVER_FLAGS,
  run: runApiServer,
})

/** The start time of the process, if the process runs only this program. */
export function start(): void {
  void runAlone(apiserver)
}

async function runApiServer(invocation: Invocation<typeof APISERVER_FLAGS>, signal: AbortSignal): Promise<number> {
  const { clock, log } = invocation
  // The table of flags defines every setting with its type: see flags.ts.
  const settings = invocation.flags as unknown as Settings
  await using closing = new AsyncDisposableStack()
  const starting = startSmall(async () => {
    // Loaded here, because help and version need none of it.
    const { startApiServer } = await import('#control-plane/start.ts')
    return startApiServer(settings, invocation, closing)
  })
  const running = await unlessAborted(starting, signal)
  closing.use(tidyWhenQuiet(clock))
  const { host, port } = running
  log.info(`Serving securely on ${host.includes(':') ? `[${host}]` : host}:${port}`)
  await untilAborted(signal)
  await leave(running, settings, invocation)
  return 0
}

/**
 * Readiness fails at once, so that load balancers send no new clients. After the shutdown delay everything closes in
 * order.
 */
async function leave(
  running: RunningServer,
  settings: Settings,
  { clock, log }: Pick<Invocation<typeof APISERVER_FLAGS>, 'clock' | 'log'>,
): Promise<void> {
  log.info('Shutting down; waiting for running requests')
  running.server.announceStop()
  await running.withdraw()
  const delayMs = settings['shutdown-delay-duration']
  if (delayMs > 0) await sleep(clock, delayMs)
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((done) => signal.addEventListener('abort', () => done(), { once: true }))
}

/** A store that does not respond must not block the exit. Everything that was opened by then is still closed. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const stopped = Promise.withResolvers<never>()
  const release = onAbort(signal, () => stopped.reject(signal.reason as Error))
  try {
    return await Promise.race([work, stopped.promise])
  } finally {
    release()
    work.catch(() => undefined)
    stopped.promise.catch(() => undefined)
  }
}
