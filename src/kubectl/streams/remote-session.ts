/** Functions that `exec` and `attach` share: streams, terminal and request. */
import type { Readable } from 'node:stream'

import { RemoteExitError } from '#client/streams/outcome.ts'
import type { CommandStreams } from '#client/streams/remote-command.ts'
import { runRemoteCommand } from '#client/streams/remote-command.ts'
import { userAgent } from '#model/version.ts'

import type { Invocation } from '../command.ts'
import { ExitError } from '../errors.ts'
import { interruptible } from '../interruption.ts'
import { resourcePath } from '../related-objects.ts'
import { writerTo } from './pod-logs.ts'
import { inRawMode, isTerminal, sizeOf, terminalSizes } from './terminal.ts'

export type StreamContext = Pick<Invocation, 'session' | 'stdin' | 'stdout' | 'stderr' | 'clock' | 'signal' | 'env'>

export interface StreamOptions {
  readonly stdin: boolean
  readonly tty: boolean
  readonly quiet: boolean
}

/** The streams of a session, after inspecting standard input. */
export interface StreamPlan {
  readonly stdin: boolean
  /** Standard input is a terminal, and the remote program gets it in raw mode. */
  readonly isRaw: boolean
}

/** Warns if there is no terminal. */
export function planStreams({ stdin, stderr }: StreamContext, options: StreamOptions): StreamPlan {
  if (!options.stdin || !options.tty) return { stdin: options.stdin, isRaw: false }
  if (isTerminal(stdin())) return { stdin: true, isRaw: true }
  if (!options.quiet) stderr.write('Unable to use a TTY - input is not a terminal or the right kind of file\n')
  return { stdin: true, isRaw: false }
}

export interface RemoteTarget {
  readonly namespace: string
  readonly pod: string
  readonly container: string
  readonly subresource: 'exec' | 'attach'
  readonly command?: readonly string[]
}

export interface SessionOptions {
  readonly plan: StreamPlan
  /** Replaces standard input. */
  readonly input?: AsyncIterable<Buffer>
  /** Makes the program redraw by briefly reporting a larger terminal. */
  readonly redraw?: boolean
  /** Ends the session without a failure. */
  readonly detached?: AbortSignal
}

/** Throws ExitError with the exit code of a failed command. */
export async function streamTo(
  context: StreamContext,
  target: RemoteTarget,
  { plan, input, redraw = false, detached }: SessionOptions,
): Promise<void> {
  const { stdout, stderr, signal } = context
  const over = new AbortController()
  const stdin = plan.stdin ? (input ?? typed(context.stdin())) : undefined
  const size = plan.isRaw ? sizeOf(stdout) : undefined
  const first =
    size === undefined ? [] : [...(redraw ? [{ width: size.width + 1, height: size.height + 1 }] : []), size]
  const streams: CommandStreams = {
    ...(stdin !== undefined && { stdin }),
    stdout: writerTo(stdout),
    ...(!plan.isRaw && { stderr: writerTo(stderr) }),
    ...(plan.isRaw && { sizes: terminalSizes(stdout, first, over.signal) }),
  }
  const both = detached === undefined ? signal : AbortSignal.any([signal, detached])
  const run = (): Promise<void> => runRemote(context, target, { streams, signal: both, isRaw: plan.isRaw })
  try {
    await withTerminal(context, plan, run)
  } catch (error) {
    if (detached?.aborted !== true) throw error
  } finally {
    over.abort()
  }
}

/** Restores the terminal when interrupted. */
function withTerminal({ stdin, signal }: StreamContext, plan: StreamPlan, run: () => Promise<void>): Promise<void> {
  if (!plan.stdin || !isTerminal(stdin())) return run()
  return interruptible(signal, () => (plan.isRaw ? inRawMode(stdin(), run) : run()))
}

async function* typed(stdin: Readable): AsyncGenerator<Buffer> {
  for await (const data of stdin) yield Buffer.from(data as Buffer)
}

export interface RemoteRun {
  readonly streams: CommandStreams
  readonly signal: AbortSignal
  readonly isRaw?: boolean
}

/** Throws ExitError with the exit code of a failed command. */
export async function runRemote(
  { session, clock, env }: Pick<StreamContext, 'session' | 'clock' | 'env'>,
  target: RemoteTarget,
  { streams, signal, isRaw = false }: RemoteRun,
): Promise<void> {
  const ask = {
    connection: await session.connection(),
    clock,
    userAgent: userAgent('kubectl'),
    path: `${resourcePath('v1/pods', target.namespace, target.pod)}/${target.subresource}?${queryOf(target, streams, isRaw)}`,
    signal,
    spdyOnly: env['KUBECTL_REMOTE_COMMAND_WEBSOCKETS'] === 'false',
  }
  try {
    await runRemoteCommand(ask, streams)
  } catch (error) {
    if (!(error instanceof RemoteExitError)) throw error
    throw new ExitError(error.exitCode, error.message)
  }
}

function queryOf({ container, command = [] }: RemoteTarget, streams: CommandStreams, isRaw: boolean): string {
  const query = new URLSearchParams(command.map((word) => ['command', word]))
  query.append('container', container)
  if (streams.stderr !== undefined) query.append('stderr', 'true')
  if (streams.stdin !== undefined) query.append('stdin', 'true')
  if (streams.stdout !== undefined) query.append('stdout', 'true')
  if (isRaw) query.append('tty', 'true')
  return query.toString()
}
