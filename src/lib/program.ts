/**
 * Defines and runs one program of hyperkube: its flags, help, version and `run`. Nothing here uses the global
 * `process`, so one process can run several programs.
 */
import type { Readable, Writable } from 'node:stream'

import type { Clock } from './clock.ts'
import { commandLines, type CommandRow, findCommand, nameWidth, unknownCommandText } from './commands.ts'
import {
  defineFlags,
  flag,
  FlagError,
  type FlagGroups,
  type FlagSet,
  type FlagValues,
  type ParsedFlags,
  parseFlags,
  requireFlags,
} from './flags/flags.ts'
import { parseBool } from './flags/go-literals.ts'
import { bool, type Kind } from './flags/kinds.ts'
import type { ShortHelp } from './flags/usage.ts'
import type { Logger } from './log/log.ts'
import type { Random } from './random.ts'

export interface ProgramContext {
  /** The words that led here: `['hyperkube', 'kubectl']`, or `['kubectl']` through a symlink. Never empty. */
  readonly path: readonly string[]
  /** Everything after those words, untouched. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Opened on first use, because most programs never read it. */
  readonly stdin: () => Readable
  /** `columns` is the terminal's width; absent when the output is none. */
  readonly stdout: Writable & { readonly columns?: number }
  readonly stderr: Writable
  readonly clock: Clock
  readonly random: Random
  /** Reads a file named on the command line, relative to `cwd`. */
  readonly readFile: (path: string) => Promise<string>
}

export interface Program {
  readonly name: string
  /**
   * Runs to completion and resolves to the exit code. Stops soon after `signal` is aborted. Mistakes of the user are
   * printed and become code 1; anything else it throws is a defect.
   */
  run(context: ProgramContext, signal: AbortSignal): Promise<number>
}

/** A row of a table of programs. */
export type Command = CommandRow<Program>

/** The output of `--version` and `--version=raw`, without the line end. */
export interface Version {
  readonly text: string
  readonly raw: string
  /** The version itself, `v1.2.3`: `--version=v1.2.3-mine` lets the program call itself so. None may be set without. */
  readonly number?: string
}

/** A failure the user can act on: printed as `Error: message`, without a stack. */
export class ProgramError extends Error {
  override readonly name = 'ProgramError'
}

/** The abort reason when the process receives a signal; the exit code is 128 + number, as shells report it. */
export class StopSignal extends Error {
  override readonly name = 'StopSignal'
  readonly signal: NodeJS.Signals
  readonly exitCode: number

  constructor(signal: NodeJS.Signals, number: number) {
    super(`Received ${signal}`)
    this.signal = signal
    this.exitCode = 128 + number
  }
}

/** A parsed command line, and the context it came in. */
export interface Invocation<G extends FlagGroups> extends ProgramContext {
  readonly flags: FlagValues<G>
  /** Names of the flags that were given. */
  readonly changed: ReadonlySet<string>
  /** The arguments that are not flags. */
  readonly operands: readonly string[]
  /** The config file, parsed; undefined when there is none. */
  readonly config: unknown
  /** The program's help, as `--help` prints it. */
  readonly help: () => Promise<string>
  /** Writes to stderr as the logging flags say; flushed when `run` is over. */
  readonly log: Logger
  /** The version of `--version=v…`, if given. */
  readonly version: string | undefined
  /** Changes how much the log says from now on. */
  readonly setVerbosity: (level: number) => void
}

export interface ProgramDefinition<G extends FlagGroups> {
  readonly name: string
  readonly aliases?: readonly string[]
  /** The description at the top of its help. */
  readonly long: string
  /** The text after the name in `Usage:` (default: `[flags]`, or `[command]` if there are commands). */
  readonly use?: string
  readonly version?: Version
  /** By group. A program that logs has `logs: LOG_FLAGS` among them. */
  readonly flags: G
  readonly config?: ConfigFile
  /** `--help` leaves these parts out, and `--help-all` prints everything. Without it there is no `--help-all`. */
  readonly shortHelp?: ShortHelp
  /** Sub-commands. The first argument that is no flag names one; the rest is its own. */
  readonly commands?: readonly CommandGroup[]
  /** Whether flags before a sub-command count for it, which must have flags of these names (default: they do not). */
  readonly passesFlags?: boolean
  /** Whether arguments that are no flags are welcome (default: no). */
  readonly operands?: boolean
  run(invocation: Invocation<G>, signal: AbortSignal): Promise<number>
}

/** Commands under one heading of help. */
export interface CommandGroup {
  readonly title: string
  readonly commands: readonly Command[]
}

export interface ConfigFile {
  /** The flag that names the file: `config`. */
  readonly flag: string
  /** Throws what the user should read. */
  parse(text: string): unknown
  /** Whether fields that stand for no flag are refused (default: they are left to the program). */
  readonly strict?: boolean
}

function versionKind({ number }: Version): Kind<string> {
  return {
    type: 'version',
    hint: 'version',
    parse(text) {
      if (text === 'raw') return text
      if (number === undefined || !text.startsWith('v')) return String(parseBool(text))
      if (text !== number) checkVersion(text, number)
      return text
    },
    print: String,
    plain: ['false'],
    alone: 'true',
  }
}

/** Throws unless it is the same release under another name. */
function checkVersion(text: string, number: string): void {
  const [requested, own] = [text, number].map((one) => /^v(\d+\.\d+\.\d+)(?:[-+][0-9A-Za-z.+-]+)?$/.exec(one)?.[1])
  if (requested === undefined) throw new Error(`could not parse "${text}" as version`)
  if (requested !== own)
    throw new Error(`version "${text}" must match major/minor/patch of default version "${number}"`)
}

const VERSION_USAGE =
  '--version, --version=raw prints version information and quits; --version=vX.Y.Z... sets the reported version'

/** Makes a runnable program of its description: adds `--help` and `--version`, parses, reports mistakes as cobra does. */
export function defineProgram<const G extends FlagGroups>(definition: ProgramDefinition<G>): Program {
  const { name, version } = definition
  const set = defineFlags({
    ...definition.flags,
    global: {
      ...definition.flags['global'],
      help: flag(bool, false, `help for ${name}`, { shorthand: 'h' }),
      ...(definition.shortHelp && {
        'help-all': flag(bool, false, `help for ${name} with all flags and their options`),
      }),
      ...(version && {
        version: flag(versionKind(version), 'false', VERSION_USAGE),
      }),
    },
  })
  return {
    name,
    async run(context, signal) {
      try {
        return await start(definition, set, context, signal)
      } catch (error) {
        if (error instanceof FlagError) return usageMistake(context, error)
        if (wasStopped(error, signal)) return signal.reason instanceof StopSignal ? signal.reason.exitCode : 1
        if (!(error instanceof ProgramError)) throw error
        context.stderr.write(`Error: ${error.message}\n`)
        return 1
      }
    },
  }
}

/** Whether the error is but the abort coming back; Node's own calls wrap the reason in an AbortError. */
function wasStopped(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && (error === signal.reason || (error instanceof Error && error.cause === signal.reason))
}

async function start<G extends FlagGroups>(
  definition: ProgramDefinition<G>,
  set: FlagSet<FlagGroups>,
  context: ProgramContext,
  signal: AbortSignal,
): Promise<number> {
  const commands = definition.commands?.flatMap((group) => group.commands)
  const parsed = parseFlags(set, context.args, { interspersed: commands === undefined })
  const help = (): Promise<string> => printHelp(definition, set, context)
  const text = helpOrVersion(definition, set, context, parsed.values)
  if (text !== undefined) return print(context, await text)
  const [first, ...rest] = parsed.args
  if (commands && first !== undefined) {
    // `help x` is `x --help`; `help` alone is this program's own.
    const passed =
      definition.passesFlags === true ? parsed.given.map(({ name, text: value }) => `--${name}=${value}`) : []
    if (first !== 'help') return runCommand(commands, first, { ...context, args: [...passed, ...rest] }, signal)
    return start(definition, set, { ...context, args: [...rest.slice(0, 1), '--help'] }, signal)
  }
  if (first !== undefined && !definition.operands) throw await unknownCommand(context, first)
  requireFlags(set, parsed)
  const { merged, config } = await readConfig(definition.config, set, parsed, context)
  for (const line of merged.warnings) context.stderr.write(`${line}\n`)
  const { changed, args: operands } = merged
  const flags = merged.values as FlagValues<G>
  const requested = String(merged.values['version'])
  const named = requested.startsWith('v') ? requested : undefined
  const { openLog } = await import('./log/flags.ts')
  const log = openLog(merged.values, context)
  try {
    const setVerbosity = (level: number): void => void (log.verbosity = level)
    const runtime = { log: log.logger, setVerbosity, version: named }
    const invocation = { ...context, flags, changed, operands, config, help, ...runtime }
    return await definition.run(invocation, signal)
  } finally {
    await log.flush()
  }
}

/** The output instead of running; undefined if it runs. */
function helpOrVersion(
  definition: ProgramDefinition<FlagGroups>,
  set: FlagSet<FlagGroups>,
  context: ProgramContext,
  values: Readonly<Record<string, unknown>>,
): Promise<string> | string | undefined {
  if (values['help-all'] === true) {
    const { shortHelp: _, ...whole } = definition
    return printHelp(whole, set, context)
  }
  if (values['help'] === true) return printHelp(definition, set, context)
  return versionText(definition.version, values['version'])
}

async function runCommand(
  commands: readonly Command[],
  name: string,
  context: ProgramContext,
  signal: AbortSignal,
): Promise<number> {
  const command = findCommand(commands, name)
  if (command === undefined) throw await unknownCommand(context, name, commands)
  const program = await command.load()
  return program.run({ ...context, path: [...context.path, command.name] }, signal)
}

async function unknownCommand(
  context: ProgramContext,
  name: string,
  commands: readonly Command[] = [],
): Promise<FlagError> {
  return new FlagError(await unknownCommandText(context.path.join(' '), name, commands))
}

async function readConfig(
  file: ConfigFile | undefined,
  set: FlagSet<FlagGroups>,
  parsed: ParsedFlags<Readonly<Record<string, unknown>>>,
  context: ProgramContext,
): Promise<{ merged: typeof parsed; config: unknown }> {
  const path = file && parsed.values[file.flag]
  if (file === undefined || typeof path !== 'string' || path === '') return { merged: parsed, config: undefined }
  const { applyConfig, unknownFields } = await import('./flags/config-file.ts')
  let config: unknown
  try {
    config = file.parse(await context.readFile(path))
  } catch (cause) {
    throw new ProgramError(`Cannot read config file "${path}": ${(cause as Error).message}`, { cause })
  }
  const merged = applyConfig(set, parsed, config, path)
  const unknown = file.strict ? unknownFields(set, config) : []
  if (unknown.length === 0) return { merged, config }
  const list = unknown.map((field) => `unknown field "${field}"`).join(', ')
  throw new ProgramError(`Cannot read config file "${path}": strict decoding error: ${list}`)
}

function versionText(version: Version | undefined, requested: unknown): string | undefined {
  if (version === undefined || (requested !== 'true' && requested !== 'raw')) return undefined
  return `${requested === 'raw' ? version.raw : version.text}\n`
}

function usageMistake(context: ProgramContext, error: FlagError): number {
  context.stderr.write(`Error: ${error.message}\nRun '${context.path.join(' ')} --help' for usage.\n`)
  return 1
}

function print(context: ProgramContext, text: string): number {
  context.stdout.write(text)
  return 0
}

async function printHelp(
  definition: ProgramDefinition<FlagGroups>,
  set: FlagSet<FlagGroups>,
  { path, stdout }: ProgramContext,
): Promise<string> {
  const { printUsage } = await import('./flags/usage.ts')
  const { aliases = [], commands, long, name, shortHelp } = definition
  const words = path.join(' ')
  const use = definition.use ?? (commands ? '[command]' : '[flags]')
  return [
    `${long.trimEnd()}\n\nUsage:\n  ${words} ${use}\n`,
    aliases.length > 0 ? `\nAliases:\n  ${[name, ...aliases].join(', ')}\n` : '',
    ...(commands ?? []).map(printCommands),
    printUsage(set, stdout.columns ?? 0, shortHelp),
    shortHelp ? `\nUse "${words} --help-all" for all flags and their options.\n` : '',
    commands ? `\nUse "${words} [command] --help" for more information about a command.\n` : '',
  ].join('')
}

function printCommands({ title, commands }: CommandGroup): string {
  const shown = commands.filter(({ hidden }) => !hidden)
  const lines = commandLines(shown, nameWidth(shown), ({ aliases = [], short }) =>
    aliases.length === 0 ? short : `${short} (also: ${aliases.join(', ')})`,
  )
  return `\n${title}:\n${lines.map((line) => `${line}\n`).join('')}`
}
