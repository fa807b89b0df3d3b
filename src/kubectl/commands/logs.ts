/** kubectl logs: prints container logs of one pod, of the pods of a workload or of selected pods. */
import type { Pod } from '#apis/core/v1.ts'
import { sleep } from '#lib/clock.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'
import { goQuote } from '#lib/go/text.ts'
import { isNotFound, StatusError } from '#meta/status.ts'
import { epochMsOf } from '#meta/time.ts'

import { select } from '../builder/builder.ts'
import { type Command, defineCommand, type Invocation, usageError } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { SELECTOR_FLAG } from '../flag-sets.ts'
import { interruptible } from '../interruption.ts'
import {
  copyLog,
  type LogOptions,
  type LogSource,
  logSources,
  prefixed,
  type Write,
  writerTo,
} from '../streams/pod-logs.ts'
import { loggingFirst } from '../streams/pod-order.ts'
import { type TargetObject, podsOf, timeoutProblem } from '../streams/target-pod.ts'

const FLAGS = {
  ...SELECTOR_FLAG,
  'all-containers': flag(bool, false, 'Print the logs of all containers in the pod.'),
  'all-pods': flag(bool, false, 'Print the logs of all pods of the workload. Enables --prefix.'),
  container: flag(string, '', 'Print the logs of this container', { shorthand: 'c' }),
  follow: flag(bool, false, 'Stream new log lines as they are written.', { shorthand: 'f' }),
  'ignore-errors': flag(bool, false, 'Continue if the logs of a container cannot be read or streamed.'),
  'insecure-skip-tls-verify-backend': flag(
    bool,
    false,
    'Skip verification of the serving certificate of the kubelet. An attacker could then send false logs. Use it if kubelet certificates have expired.',
  ),
  'limit-bytes': flag(int, 0, 'Maximum number of bytes to print. Zero means no limit.'),
  'max-log-requests': flag(int, 5, 'Maximum number of logs to stream at the same time.'),
  'pod-running-timeout': flag(
    duration,
    20_000,
    'Time to wait for a pod to run (5s, 2m, 3h). Must be greater than zero.',
  ),
  prefix: flag(bool, false, 'Print the pod and container name in front of each line.'),
  previous: flag(bool, false, 'Print the logs of the previous instance of the container, if there is one.', {
    shorthand: 'p',
  }),
  since: flag(
    duration,
    0,
    'Print only logs newer than a duration like 5s, 2m, or 3h. Cannot be combined with --since-time.',
  ),
  'since-time': flag(string, '', 'Print only logs newer than a time (RFC3339). Cannot be combined with --since.'),
  tail: flag(int, -1, 'Number of most recent lines to print. -1 prints all lines, or 10 with a selector.'),
  timestamps: flag(bool, false, 'Print the time in front of each line'),
}

type LogsInvocation = Invocation<typeof FLAGS>

const EXPECTED = `expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.
POD or TYPE/NAME is a required argument for the logs command`

export const logs: Command = defineCommand({
  name: 'logs',
  use: '[-f] [-p] (POD | TYPE/NAME) [-c CONTAINER] [options]',
  long: 'Print the logs of a container in a pod or in the pods of a workload. The container name is optional if there is only one.',
  examples: `# Print the logs of pod nginx, which has one container
kubectl logs nginx

# Stream the logs of pod nginx
kubectl logs -f nginx

# Print the logs of all pods of a deployment, with prefixes
kubectl logs deployment/nginx --all-pods=true

# Stream the logs of all containers of all pods with the label app=nginx
kubectl logs -f -l app=nginx --all-containers=true

# Print the logs of the previous instance of a container
kubectl logs -p -c ruby web-1

# Print the last 20 lines of pod nginx
kubectl logs --tail=20 nginx`,
  flags: FLAGS,
  completes: 'pods and containers',
  async run(invocation) {
    const { flags, signal } = invocation
    checkArgs(invocation)
    const problem = timeoutProblem(flags['pod-running-timeout'])
    if (problem !== undefined) throw new KubectlError(problem)
    const options = optionsOf(invocation)
    const named = await namedObjects(invocation)
    checkFlags(invocation, options)
    await interruptible(signal, async () => copyAll(invocation, await sourcesOf(invocation, named, options)))
  },
})

async function sourcesOf(
  { flags, session, clock, stderr }: LogsInvocation,
  named: readonly TargetObject[],
  options: LogOptions,
): Promise<LogSource[]> {
  const rest = await session.rest()
  const finding = { rest, clock, timeoutMs: flags['pod-running-timeout'], order: loggingFirst }
  const pods: Pod[] = []
  for (const one of named) {
    const found = await podsOf(one, { ...finding, failure: 'cannot get the logs from' })
    const [first] = found as [Pod]
    if (found.length > 1 && !flags['all-pods']) {
      stderr.write(`Found ${found.length} pods, using pod/${first.metadata.name ?? ''}\n`)
    }
    pods.push(...(flags['all-pods'] ? found : [first]))
  }
  const wanted = { options, allContainers: flags['all-containers'], isQuiet: flags['all-pods'] }
  return pods.flatMap((pod) => logSources(pod, wanted, (line) => stderr.write(line)))
}

function checkArgs(invocation: LogsInvocation): void {
  const { args, flags } = invocation
  if ((args.length === 0 && flags.selector === '') || args.length > 2) throw usageError(invocation, EXPECTED)
  if (args.length === 1 && flags.selector !== '') {
    throw usageError(invocation, 'only a selector (-l) or a POD name is allowed')
  }
}

function optionsOf({ args, flags, changed }: LogsInvocation): LogOptions {
  const { 'since-time': since, tail, 'limit-bytes': limit } = flags
  const lines = flags.selector !== '' && tail === -1 && !changed.has('tail') ? 10 : tail
  return {
    container: args[1] ?? flags.container,
    follow: flags.follow,
    previous: flags.previous,
    timestamps: flags.timestamps,
    insecureSkipTLSVerifyBackend: flags['insecure-skip-tls-verify-backend'],
    ...(since !== '' && { sinceTime: timeIn(since) }),
    ...(flags.since !== 0 && { sinceSeconds: Math.round(flags.since / 1000) }),
    ...(limit !== 0 && { limitBytes: limit }),
    ...(lines !== -1 && { tailLines: lines }),
  }
}

const RFC3339 = '2006-01-02T15:04:05Z07:00'

/** In the local time zone. Throws Go's error for an invalid time. */
function timeIn(text: string): string {
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)$/.test(text)
  const ms = isTime ? epochMsOf(text.replace(',', '.')) : Number.NaN
  if (!Number.isNaN(ms)) return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
  throw new KubectlError(
    `parsing time ${goQuote(text)} as ${goQuote(RFC3339)}: cannot parse ${goQuote(text)} as "2006"`,
  )
}

async function namedObjects(invocation: LogsInvocation): Promise<TargetObject[]> {
  const { args, flags, session, stderr } = invocation
  const { namespace } = await session.namespace()
  const [name] = args
  const selection = await select({
    session,
    io: invocation,
    namespace,
    singleResourceType: true,
    ...(name !== undefined && { resourceNames: { type: 'pods', names: [name] } }),
    ...(flags.selector !== '' && { resourceTypes: ['pods'], labelSelector: flags.selector, flatten: true }),
  })
  const { infos, error } = await selection.infos()
  if (error !== undefined) {
    if (!isNotFound(error)) throw error
    throw new KubectlError(`error from server (NotFound): ${error.message} in namespace ${goQuote(namespace)}`)
  }
  if (flags.selector === '' && infos.length !== 1) throw new KubectlError('expected a resource')
  if (infos.length === 0) stderr.write(`No resources found in ${namespace} namespace.\n`)
  return infos.flatMap(({ kind, object }) => (object === undefined ? [] : [{ kind, object }]))
}

function checkFlags({ args, flags, changed }: LogsInvocation, options: LogOptions): void {
  const problem = (
    [
      [
        flags['since-time'] !== '' && flags.since !== 0,
        'at most one of `sinceTime` or `sinceSeconds` may be specified',
      ],
      [
        flags['all-containers'] && options.container !== '',
        `--all-containers=true should not be specified with container name ${options.container}`,
      ],
      [changed.has('container') && args.length === 2, 'only one of -c or an inline [CONTAINER] arg is allowed'],
      [flags['limit-bytes'] < 0, '--limit-bytes must be greater than 0'],
      [(options.sinceSeconds ?? 0) < 0, '--since must be greater than 0'],
      [(options.tailLines ?? 0) < -1, '--tail must be greater than or equal to -1'],
    ] as const
  ).find(([isWrong]) => isWrong)
  if (problem !== undefined) throw new KubectlError(problem[1])
}

async function copyAll(invocation: LogsInvocation, sources: readonly LogSource[]): Promise<void> {
  const { flags, stdout } = invocation
  const write = writerTo(stdout)
  const isParallel = flags.follow && sources.length > 1
  const max = flags['max-log-requests']
  if (isParallel && sources.length > max) {
    throw new KubectlError(
      `you are attempting to follow ${sources.length} log streams, but maximum allowed concurrency is ${max}, use --max-log-requests to increase the limit`,
    )
  }
  const copy = (source: LogSource): Promise<void> => {
    const isPrefixed = flags.prefix || flags['all-pods']
    const own = isPrefixed ? prefixed(`[pod/${source.pod}/${source.container}] `, write) : write
    return copyPatiently(invocation, source, { own, write })
  }
  if (isParallel) await Promise.all(sources.map(copy))
  else for (const source of sources) await copy(source)
}

interface Outputs {
  /** Writes one line, with its prefix if there is one. */
  readonly own: Write
  readonly write: Write
}

const RETRY_MS = 1000

/** Requests a followed log again while the server reports a reason why it is not available. */
async function copyPatiently(invocation: LogsInvocation, source: LogSource, { own, write }: Outputs): Promise<void> {
  const { flags, session, signal, clock, stderr } = invocation
  const client = await session.client()
  const end = clock.elapsed() + flags['pod-running-timeout']
  for (;;) {
    try {
      return await copyLog(client, source, { write: own, signal })
    } catch (thrown) {
      signal.throwIfAborted()
      const error = asError(thrown)
      if (flags['ignore-errors']) return write(Buffer.from(`error: ${error.message}\n`))
      if (!flags.follow) throw error
      stderr.write(`${error.message}\n`)
      if (!(error instanceof StatusError)) throw error
      if (clock.elapsed() + RETRY_MS > end) throw new KubectlError('context deadline exceeded')
      await sleep(clock, RETRY_MS, signal)
    }
  }
}
