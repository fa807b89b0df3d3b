/**
 * kubectl: finds the command that a line means, reads its flags, runs it, and says what went wrong. As cobra does it,
 * down to the order: a plugin may stand in for a command that is not there, help comes before mistakes in arguments.
 */
import { defineFlags, flag, FlagError, parseFlags, type ParsedFlags, requireFlags } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'
import { type ProgramContext, StopSignal } from '#lib/program.ts'

import type { GlobalValues } from './client-config.ts'
import type { Command, CommandRow, Flags, Invocation } from './command.ts'
import { COMMANDS } from './commands/index.ts'
import { KubectlError, reportOf } from './errors.ts'
import { globalFlags, unbuiltFlag } from './global-flags.ts'
import { Session } from './session.ts'

export type KubectlContext = Omit<ProgramContext, 'readFile'>

/** Runs one command line to its end; resolves to the exit code. Everything that goes wrong is printed. */
export async function runKubectl(context: KubectlContext, signal: AbortSignal): Promise<number> {
  try {
    return await runLine(context, signal)
  } catch (error) {
    if (signal.aborted && isStop(error, signal)) return signal.reason instanceof StopSignal ? signal.reason.exitCode : 1
    const { text, exitCode } = reportOf(error)
    context.stderr.write(text)
    return exitCode
  }
}

/** Whether the error is but the abort coming back. */
function isStop(error: unknown, signal: AbortSignal): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause) if (at === signal.reason) return true
  return false
}

const ROOT: Command = {
  name: 'kubectl',
  use: '[flags] [options]',
  long: 'kubectl controls the Kubernetes cluster manager.\n\n Find more information at: https://kubernetes.io/docs/reference/kubectl/',
  flags: {},
  commands: COMMANDS,
  async run({ stdout, help }) {
    stdout.write(await help())
  },
}

interface Found {
  readonly command: Command
  readonly path: readonly string[]
  readonly args: readonly string[]
}

async function runLine(given: KubectlContext, signal: AbortSignal): Promise<number> {
  const context = { ...given, args: helpAsFlag(given.args) }
  const { command, path, args } = await findCommand(context)
  const words = path.join(' ')
  const own = { ...command.flags, help: flag(bool, false, `help for ${command.name}`, { shorthand: 'h' }) }
  const global = { ...globalFlags(context.env) } as Flags
  // A flag of the command hides one of every command, as `--user` of a role binding does.
  const visible = Object.fromEntries(Object.entries(global).filter(([name]) => !Object.hasOwn(own, name)))
  const set = defineFlags({ own, global: visible })
  const line = command.takesAnything === true ? args.filter((arg) => arg === '--help' || arg === '-h') : args
  const parsed = parse(() => parseFlags(set, line, { interspersed: command.stopsAtArgs !== true }), words)
  const help = async (): Promise<string> => (await import('./help.ts')).helpOf(command, words)
  if (parsed.values['help']) {
    context.stdout.write(await help())
    return 0
  }
  for (const line of parsed.warnings) context.stderr.write(`${line}\n`)
  requireFlagsOf(() => requireFlags(set, parsed))
  const globals = Object.entries(global).map(([name, { initial }]) => [
    name,
    Object.hasOwn(own, name) ? initial : (parsed.values as Record<string, unknown>)[name],
  ])
  const values = Object.fromEntries(globals) as unknown as GlobalValues
  const unbuilt = unbuiltFlag({ ...values })
  if (unbuilt !== undefined) throw new KubectlError(`--${unbuilt} is not built yet`)
  return runCommand(command, { context, words, parsed, help, signal, values })
}

/** `kubectl help get` is `kubectl get --help`. */
function helpAsFlag(args: readonly string[]): readonly string[] {
  return args[0] === 'help' ? [...args.slice(1), '--help'] : args
}

interface Prepared {
  readonly context: KubectlContext
  readonly words: string
  readonly parsed: ParsedFlags<Readonly<Record<string, unknown>>>
  readonly help: () => Promise<string>
  readonly signal: AbortSignal
  /** What the flags of every command say. */
  readonly values: GlobalValues
}

async function runCommand(command: Command, prepared: Prepared): Promise<number> {
  const { context, words, parsed, help, signal, values } = prepared
  const session = new Session({ ...context, flags: values, signal })
  const invocation = {
    ...context,
    path: words,
    args: parsed.args,
    argsBeforeDash: parsed.argsBeforeDash,
    flags: parsed.values,
    changed: parsed.changed,
    session,
    signal,
    help,
  } as unknown as Invocation
  try {
    const code = (await command.run?.(invocation)) ?? 0
    return values['warnings-as-errors'] ? judgeWarnings(session.warningCount, code) : code
  } finally {
    await session.close()
  }
}

function judgeWarnings(count: number, code: number): number {
  if (count === 0) return code
  throw new KubectlError(count === 1 ? '1 warning received' : `${count} warnings received`)
}

function parse<T>(read: () => T, words: string): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof FlagError)) throw error
    throw new KubectlError(`${error.message}\nSee '${words} --help' for usage.`, { cause: error })
  }
}

function requireFlagsOf(check: () => void): void {
  try {
    check()
  } catch (error) {
    throw error instanceof FlagError ? new KubectlError(error.message, { cause: error }) : error
  }
}

/** Goes down from command to command as long as the next word names one. */
async function findCommand(context: KubectlContext): Promise<Found> {
  let found: Found = { command: ROOT, path: context.path, args: context.args }
  for (;;) {
    const { command, path, args } = found
    const at = command.commands === undefined ? -1 : nextWord(args, command, context.env)
    const word = args[at]
    if (word === undefined) return found
    const row = (command.commands as readonly CommandRow[]).find(
      ({ name, aliases = [] }) => name === word || aliases.includes(word),
    )
    if (row === undefined) return command === ROOT ? unknownCommand(context, word) : found
    found = { command: await row.load(), path: [...path, row.name], args: args.filter((_, index) => index !== at) }
  }
}

/** Where the first argument stands that is no flag and no flag's value; -1 when there is none. */
function nextWord(args: readonly string[], { flags }: Command, env: KubectlContext['env']): number {
  const known: Flags = { ...flags, ...globalFlags(env) }
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as string
    if (arg === '--') return -1
    if (!arg.startsWith('-') || arg === '-') return at
    if (takesNext(arg, known)) at++
  }
  return -1
}

function takesNext(arg: string, known: Flags): boolean {
  if (arg.includes('=')) return false
  const isLong = arg.startsWith('--')
  if (!isLong && arg.length > 2) return false
  const found = isLong ? known[arg.slice(2)] : Object.values(known).find(({ shorthand }) => shorthand === arg.slice(1))
  if (arg === '--help' || arg === '-h') return false
  return found === undefined ? true : (found.alone ?? found.kind.alone) === undefined
}

/** A plugin by that name takes over; otherwise it is a mistake. */
async function unknownCommand(context: KubectlContext, word: string): Promise<never> {
  const { runPlugin } = await import('./plugins.ts')
  await runPlugin(context)
  const { nearest } = await import('#lib/nearest.ts')
  const shown = COMMANDS.filter(({ hidden }) => hidden !== true)
  const close = [
    ...nearest(
      word,
      shown.map(({ name }) => name),
    ),
    ...shown.filter(({ suggestFor = [] }) => suggestFor.includes(word)).map(({ name }) => name),
  ]
  const hint = close.length === 0 ? '' : `\n\nDid you mean this?\n${close.map((each) => `\t${each}\n`).join('')}`
  throw new KubectlError(`unknown command "${word}" for "kubectl"${hint}`)
}
