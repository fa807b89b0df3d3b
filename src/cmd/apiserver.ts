/** `kube-apiserver`: the API server as a program of its own, with upstream's flags. */
import { APISERVER_FLAGS, type Settings } from '#control-plane/flags/flags.ts'
import type { RunningServer } from '#control-plane/server.ts'
import { onAbort } from '#lib/abort.ts'
import { sleep } from '#lib/clock.ts'
import { defineProgram, type Invocation, type Program } from '#lib/program.ts'
import { tidyWhenQuiet } from '#lib/tidy-memory.ts'
import { kubernetesVersion } from '#model/version.ts'

import { runAlone } from './process.ts'
import { startSmall } from './small-start.ts'

export const apiserver: Program = defineProgram({
  name: 'kube-apiserver',
  aliases: ['apiserver'],
  long:
    'The Kubernetes API server checks and stores the objects of a cluster (pods, services, deployments and all others) ' +
    'and serves them over HTTPS. Everything else in a cluster works by talking to it.',
  version: kubernetesVersion(),
  flags: APISERVER_FLAGS,
  run: runApiServer,
})

/** Where the process begins when this is all of the program. */
export function start(): void {
  void runAlone(apiserver)
}

async function runApiServer(invocation: Invocation<typeof APISERVER_FLAGS>, signal: AbortSignal): Promise<number> {
  const { clock, log } = invocation
  // Every setting is in the table of flags, with its type: see flags.ts.
  const settings = invocation.flags as unknown as Settings
  await using closing = new AsyncDisposableStack()
  const starting = startSmall(async () => {
    // Help and version need none of this.
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

/** Not ready at once, so that nobody new is sent here; then, after the delay asked for, the rest is closed in order. */
async function leave(
  running: RunningServer,
  settings: Settings,
  { clock, log }: Pick<Invocation<typeof APISERVER_FLAGS>, 'clock' | 'log'>,
): Promise<void> {
  log.info('Stopping: running requests may finish')
  running.server.announceStop()
  await running.withdraw()
  const delayMs = settings['shutdown-delay-duration']
  if (delayMs > 0) await sleep(clock, delayMs)
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((done) => signal.addEventListener('abort', () => done(), { once: true }))
}

/** A store that does not answer must not keep the program from ending. What was opened by then is closed all the same. */
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
