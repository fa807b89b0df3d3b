/** `kube-apiserver`: the API server as a program of its own, with upstream's flags. */
import { findUnsupported } from '#control-plane/flags/flag-support.ts'
import { APISERVER_FLAGS, type ApiServerFlags } from '#control-plane/flags/flags.ts'
import type { Planned, ServerPlan } from '#control-plane/flags/plan.ts'
import type { RunningServer } from '#control-plane/server.ts'
import { onAbort } from '#lib/abort.ts'
import { sleep } from '#lib/clock.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

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

async function runApiServer(invocation: Invocation<typeof APISERVER_FLAGS>, signal: AbortSignal): Promise<number> {
  const { log, clock } = invocation
  // Every flag of ApiServerFlags is in the table, with its type: see flags.ts.
  const flags = invocation.flags as unknown as ApiServerFlags
  // Help and version need none of this.
  const [{ planServer }, { startServer }] = await Promise.all([
    import('#control-plane/flags/plan.ts'),
    import('#control-plane/server.ts'),
  ])
  const plan = checkFlags(invocation, flags, planServer(flags, invocation.changed))
  await using closing = new AsyncDisposableStack()
  const running = await unlessAborted(startServer(flags, plan, invocation, closing), signal)
  const { host, port } = running
  log.info(`Serving securely on ${host.includes(':') ? `[${host}]` : host}:${port}`)
  await untilAborted(signal)
  await leave(running, flags, { clock, log })
  return 0
}

/** What the flags ask for. Throws ProgramError with everything that is wrong with them. */
function checkFlags(
  { changed, log }: Invocation<typeof APISERVER_FLAGS>,
  flags: ApiServerFlags,
  planned: Planned,
): ServerPlan {
  const values = flags as unknown as Readonly<Record<string, unknown>>
  const support = findUnsupported(APISERVER_FLAGS, values, changed)
  const errors = [...support.errors, ...planned.errors]
  if (errors.length > 0 || planned.plan === undefined) {
    throw new ProgramError(errors.length === 1 ? errors.join() : `[${errors.join(', ')}]`)
  }
  for (const note of [...support.notes, ...planned.notes]) log.info(note)
  return planned.plan
}

/** Not ready at once, so that nobody new is sent here; then, after the delay asked for, the rest is closed in order. */
async function leave(
  running: RunningServer,
  flags: ApiServerFlags,
  { clock, log }: Pick<Invocation<typeof APISERVER_FLAGS>, 'clock' | 'log'>,
): Promise<void> {
  log.info('Stopping: running requests may finish')
  running.server.announceStop()
  await running.withdraw()
  const delayMs = flags['shutdown-delay-duration']
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
