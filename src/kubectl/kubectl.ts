/**
 * kubectl: finds the command of a line, parses its flags, runs it and prints errors, in cobra's order. Plugins can
 * replace unknown commands; help takes precedence over argument errors.
 */
import { unknownCommandText } from '#lib/commands.ts'
import { FlagError, parseFlags, type ParsedFlags, requireFlags } from '#lib/flags/flags.ts'
import { type ProgramContext, StopSignal } from '#lib/program.ts'

import type { Command, Invocation } from './command.ts'
import { COMMANDS } from './commands/index.ts'
import { KubectlError, reportOf } from './errors.ts'
import { unbuiltFlag } from './global-flags.ts'
import { endedBy, isStop } from './interruption.ts'
import type { PreferredLine } from './kuberc/applying.ts'
import { explained, loadPreference } from './kuberc/loading.ts'
import { hasKuberc } from './kuberc/location.ts'
import { flagsFor, globalsFor, globalValues } from './line-flags.ts'
import { findCommand, type CommandMatch, nextWord } from './lookup.ts'
import { causeOf } from './recording.ts'
import type { GlobalValues } from './session/client-config.ts'
import type { PluginPolicy, Preference } from './session/preference.ts'
import { Session } from './session/session.ts'

export type KubectlContext = Omit<ProgramContext, 'readFile'>

/** Runs one command line and resolves to the exit code. Prints all errors. */
export async function runKubectl(context: KubectlContext, signal: AbortSignal): Promise<number> {
  try {
    return await runLine(context, signal)
  } catch (error) {
    if (isStop(error, signal)) return signal.reason instanceof StopSignal ? signal.reason.exitCode : 1
    const { text, exitCode } = reportOf(error)
    context.stderr.write(text)
    return exitCode
  }
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

/** Without the kuberc command if preferences are disabled. */
function rootFor(env: KubectlContext['env']): Command {
  return hasKuberc(env) ? ROOT : { ...ROOT, commands: COMMANDS.filter(({ name }) => name !== 'kuberc') }
}

async function runLine(given: KubectlContext, signal: AbortSignal): Promise<number> {
  const preference = await loadPreference(given)
  const line = await preferredLine({ ...given, args: helpAsFlag(given.args) }, preference)
  const context = { ...given, args: line.args }
  const root = withAlias(rootFor(context.env), line)
  if (isQuestion(context.args)) return answerShell(context, { root, signal })
  const found = await commandOf(context, root)
  const { command, path } = found
  const words = path.join(' ')
  const flags = flagsFor(command, context.env)
  const parsed = parse(() => parseFlags(flags.set, flagsIn(found, line), flagOptions(command)), command, words)
  const help = async (): Promise<string> => helpText(command, words, context)
  if (parsed.values['help']) return showHelp(command, await help(), context)
  for (const text of parsed.warnings) context.stderr.write(`${text}\n`)
  requireFlagsOf(() => requireFlags(flags.set, parsed))
  const values = globalValues(flags, parsed.values, context.env)
  const unbuilt = unbuiltFlag({ ...values })
  if (unbuilt !== undefined) throw new KubectlError(`--${unbuilt} is not built yet`)
  if (values.v >= 1 && line.original !== undefined) await logOriginal(context, line.original)
  const policy = preference?.policy
  const changeCause = (): string => causeOf(flags.set, given.args)
  return runCommand(command, { context, words, parsed, help, changeCause, signal, values, ...(policy && { policy }) })
}

/** True for requests of completion scripts; see completion/answering.ts. */
function isQuestion([first]: readonly string[]): boolean {
  return first === '__complete' || first === '__completeNoDesc'
}

interface CompletionRequest {
  readonly root: Command
  readonly signal: AbortSignal
}

async function answerShell(context: KubectlContext, { root, signal }: CompletionRequest): Promise<number> {
  const { answer } = await import('./completion/answering.ts')
  return answer(context, { root, signal })
}

function withAlias(root: Command, { alias }: PreferredLine): Command {
  return alias === undefined ? root : { ...root, commands: [...(root.commands ?? []), alias] }
}

function showHelp({ insteadOfHelp }: Command, help: string, { stdout, stderr }: KubectlContext): number {
  if (insteadOfHelp === undefined) stdout.write(help)
  else stderr.write(insteadOfHelp)
  return 0
}

function flagOptions({ stopsAtArgs }: Command): { readonly interspersed: boolean } {
  return { interspersed: stopsAtArgs !== true }
}

/** Flag values from preferences come first, so that flags on the line override them. */
function flagsIn({ args }: CommandMatch, { defaults }: PreferredLine): readonly string[] {
  return [...defaults, ...args]
}

async function helpText(command: Command, words: string, { env }: KubectlContext): Promise<string> {
  const { helpOf } = await import('./help.ts')
  if (command.name !== ROOT.name) return helpOf(command, words)
  const { pluginCommands } = await import('./plugins/listing.ts')
  return helpOf(command, words, await pluginCommands(env['PATH'] ?? '', COMMANDS))
}

async function logOriginal({ stderr, clock }: KubectlContext, original: string): Promise<void> {
  const [{ logLine }, { goQuote }] = await Promise.all([import('./klog.ts'), import('#lib/go/text.ts')])
  stderr.write(logLine('I', clock.now(), 'cmd.go:371', `original command: ${goQuote(`kubectl ${original}`)}`))
}

/** Applies preferences to the line. Throws ExitError for invalid preferences. */
async function preferredLine(context: KubectlContext, preference: Preference | undefined): Promise<PreferredLine> {
  const { args, env, stderr } = context
  if (preference === undefined) return { args, defaults: [] }
  const { applyPreference } = await import('./kuberc/applying.ts')
  const find = async (words: readonly string[]): Promise<CommandMatch | undefined> => {
    // A completion request concerns the line after it.
    if (isQuestion(words)) return undefined
    const found = await findCommand({ command: rootFor(env), path: context.path, args: words }, env)
    return found.command.name === ROOT.name && nextWord(found, env) >= 0 ? undefined : found
  }
  const globals = globalsFor(env)
  return explained(() => applyPreference({ args, preference, find, globals, warn: (text) => stderr.write(text) }))
}

/** `kubectl help get` becomes `kubectl get --help`. */
function helpAsFlag(args: readonly string[]): readonly string[] {
  return args[0] === 'help' ? [...args.slice(1), '--help'] : args
}

interface CommandLine {
  readonly context: KubectlContext
  readonly words: string
  readonly parsed: ParsedFlags<Readonly<Record<string, unknown>>>
  readonly help: () => Promise<string>
  readonly changeCause: () => string
  readonly signal: AbortSignal
  /** The values of the global flags. */
  readonly values: GlobalValues
  readonly policy?: PluginPolicy
}

async function runCommand(command: Command, prepared: CommandLine): Promise<number> {
  const { context, words, parsed, help, changeCause, signal, values, policy } = prepared
  const { filename } = parsed.values
  const readsManifests = Array.isArray(filename) && filename.includes('-')
  const present = new Session({ ...context, flags: values, signal, readsManifests, ...(policy && { policy }) })
  const { session, clock } = await readingPast({ session: present, clock: context.clock }, parsed.values)
  const invocation = {
    ...context,
    clock,
    path: words,
    args: parsed.args,
    argsBeforeDash: parsed.argsBeforeDash,
    flags: parsed.values,
    changed: parsed.changed,
    session,
    signal,
    help,
    changeCause,
  } as unknown as Invocation
  try {
    const running = Promise.resolve(command.run?.(invocation))
    const code = (await endedBy(signal, context.clock, running)) ?? 0
    return values['warnings-as-errors'] ? exitCodeWithWarnings(session.warningCount, code) : code
  } finally {
    await present.close()
  }
}

type Reading = Pick<Invocation, 'session' | 'clock'>

/** The same, but with `--at` a session and a clock of that moment. */
async function readingPast(present: Reading, values: Readonly<Record<string, unknown>>): Promise<Reading> {
  if (!values['at'] && !values['speed']) return present
  const { clockAt, momentToRead } = await import('./past/absolute-moment.ts')
  const moment = momentToRead(values, present.clock.now())
  if (moment === undefined) return present
  const { text, timeMs } = moment
  const clock = timeMs === undefined ? present.clock : clockAt(present.clock, timeMs)
  return { session: present.session.at(text), clock }
}

function exitCodeWithWarnings(count: number, code: number): number {
  if (count === 0) return code
  throw new KubectlError(count === 1 ? '1 warning received' : `${count} warnings received`)
}

function parse<T>(read: () => T, { wrongFlag }: Command, words: string): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof FlagError)) throw error
    if (wrongFlag !== undefined) throw wrongFlag(words, error.message)
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

/** Finds the command of a line; a plugin runs instead if there is no such command. */
async function commandOf(context: KubectlContext, root: Command): Promise<CommandMatch> {
  const { env, path, args } = context
  const found = await findCommand({ command: root, path, args }, env)
  const at = found.command.commands === undefined ? -1 : nextWord(found, env)
  const word = found.args[at]
  if (word === undefined) return found
  if (found.command === root) return unknownCommand(context, root, word)
  const { mayBeExtended, runPlugin } = await import('./plugins/dispatch.ts')
  if (mayBeExtended(found.command.name) && at === 0) await runPlugin(context, args.length - found.args.length + 1)
  return found
}

/** Runs a plugin with that name, or throws. */
async function unknownCommand(context: KubectlContext, { commands = [] }: Command, word: string): Promise<never> {
  const { runPlugin } = await import('./plugins/dispatch.ts')
  await runPlugin(context)
  throw new KubectlError(await unknownCommandText('kubectl', word, commands))
}
