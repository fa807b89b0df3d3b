/** kubectl logs: what containers wrote, of one pod, of all that a workload has or of those that a selector finds. */
import type { Pod } from '#apis/core/v1.ts'
import { sleep } from '#lib/clock.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'
import { goQuote } from '#lib/go-text.ts'
import { isNotFound, StatusError } from '#meta/status.ts'
import { epochMsOf } from '#meta/time.ts'

import { select } from '../builder.ts'
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
import { type Named, podsOf, timeoutProblem } from '../streams/target-pod.ts'

const FLAGS = {
  ...SELECTOR_FLAG,
  'all-containers': flag(bool, false, 'Print the logs of all containers.'),
  'all-pods': flag(bool, false, 'Print the logs of all pods. Turns --prefix on.'),
  container: flag(string, '', 'Print the logs of this container', { shorthand: 'c' }),
  follow: flag(bool, false, 'Go on with what is written from now on.', { shorthand: 'f' }),
  'ignore-errors': flag(bool, false, 'Logs that cannot be read, or followed further, are no failure.'),
  'insecure-skip-tls-verify-backend': flag(
    bool,
    false,
    'Do not check who the kubelet is that logs are asked of. Somebody else could make them up; for kubelets whose certificates have run out.',
  ),
  'limit-bytes': flag(int, 0, 'So many bytes of logs at most. Zero: no limit.'),
  'max-log-requests': flag(int, 5, 'So many logs are followed at once at most.'),
  'pod-running-timeout': flag(duration, 20_000, 'How long to wait until there is a pod (5s, 2m, 3h). More than zero.'),
  prefix: flag(bool, false, 'Begin each line with the pod and the container it comes from.'),
  previous: flag(bool, false, 'Print the logs of the container before it was started last, if there are any.', {
    shorthand: 'p',
  }),
  since: flag(duration, 0, 'Only what is newer than a duration like 5s, 2m, or 3h. Not together with --since-time.'),
  'since-time': flag(string, '', 'Only what is newer than a time (RFC3339). Not together with --since.'),
  tail: flag(int, -1, 'So many of the last lines. -1: all of them, or 10 with a selector.'),
  timestamps: flag(bool, false, 'Begin each line with its time'),
}

type LogsInvocation = Invocation<typeof FLAGS>

const EXPECTED = `expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.
POD or TYPE/NAME is a required argument for the logs command`

export const logs: Command = defineCommand({
  name: 'logs',
  use: '[-f] [-p] (POD | TYPE/NAME) [-c CONTAINER] [options]',
  long: 'Print the logs of a container in a pod or of what makes pods. The name of the container may be left out when there is only one.',
  examples: `# Logs of the pod nginx, which has one container
kubectl logs nginx

# Logs of the pod nginx from now on
kubectl logs -f nginx

# Logs of all pods of a deployment, with where each line comes from
kubectl logs deployment/nginx --all-pods=true

# Logs of all containers of all pods with the label app=nginx, from now on
kubectl logs -f -l app=nginx --all-containers=true

# Logs of the container before it was started last
kubectl logs -p -c ruby web-1

# The last 20 lines of the pod nginx
kubectl logs --tail=20 nginx`,
  flags: FLAGS,
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
  named: readonly Named[],
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

/** In the server's time zone. Throws what Go says of a time that is none. */
function timeIn(text: string): string {
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)$/.test(text)
  const ms = isTime ? epochMsOf(text.replace(',', '.')) : Number.NaN
  if (!Number.isNaN(ms)) return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
  throw new KubectlError(
    `parsing time ${goQuote(text)} as ${goQuote(RFC3339)}: cannot parse ${goQuote(text)} as "2006"`,
  )
}

async function namedObjects(invocation: LogsInvocation): Promise<Named[]> {
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
  /** With the prefix, if there is one. */
  readonly own: Write
  readonly write: Write
}

const RETRY_MS = 1000

/** Logs that are followed are asked for again while the server says why it does not have them. */
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
