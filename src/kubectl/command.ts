/**
 * The interface of a kubectl command: flags, help and a `run` that receives all its inputs. Each command is a file in
 * `commands`, loaded on use.
 */
import type { CommandRow as Row } from '#lib/commands.ts'
import type { Flag, FlagValues } from '#lib/flags/flags.ts'
import type { ProgramContext } from '#lib/program.ts'

import type { Choices } from './choices.ts'
import { KubectlError } from './errors.ts'
import type { GlobalFlags } from './global-flags.ts'
import type { Session } from './session/session.ts'

export type Flags = Readonly<Record<string, Flag<unknown>>>

export interface CommandRow extends Row<Command> {
  /** The heading in `kubectl --help`; `Other Commands:` by default. */
  readonly group?: string
}

type RowOptions = Partial<Pick<CommandRow, 'aliases' | 'hidden' | 'suggestFor'>>

/** A row of a table of commands; `short` is a line of its list. */
export function row(name: string, short: string, load: () => Promise<Command>, options: RowOptions = {}): CommandRow {
  return { name, short, load, ...options }
}

/** Everything a command may use. */
export interface Invocation<F extends Flags = Flags> extends Pick<
  ProgramContext,
  'env' | 'cwd' | 'stdin' | 'stdout' | 'stderr' | 'clock' | 'random'
> {
  /** `kubectl create deployment`: for messages and help. */
  readonly path: string
  /** The positional arguments. */
  readonly args: readonly string[]
  /** The number of `args` before `--`; -1 without `--`. */
  readonly argsBeforeDash: number
  readonly flags: FlagValues<{ readonly own: F; readonly global: Omit<GlobalFlags, keyof F> }>
  /** Names of the flags on the command line. */
  readonly changed: ReadonlySet<string>
  /** The connection to the server; it opens on first use. */
  readonly session: Session
  /** Aborted when the process receives a signal to stop. */
  readonly signal: AbortSignal
  /** The command line that `--record` writes into objects. */
  readonly changeCause: () => string
  /** This command's help, as `--help` prints it. */
  readonly help: () => Promise<string>
}

export interface Command {
  readonly name: string
  readonly aliases?: readonly string[]
  /** The text behind the name in `Usage:`. */
  readonly use: string
  readonly long: string
  /** Commands, each after a `#` line that describes it. */
  readonly examples?: string
  readonly flags: Flags
  /** Flags that exist only if the environment enables them. */
  readonly moreFlags?: (env: ProgramContext['env']) => Flags
  readonly commands?: readonly CommandRow[]
  /** The choices for arguments in shell completion. */
  readonly completes?: Choices
  /** The choices for values of the command's flags. `--filename` and `--subresource` need no entry. */
  readonly completesFlags?: Readonly<Record<string, Choices>>
  /** The first argument ends the flags, because the rest belongs to another program (`kubectl exec x ls -l`). */
  readonly stopsAtArgs?: boolean
  /** The text that `--help` prints on standard error instead. */
  readonly insteadOfHelp?: string
  /** The error for an unreadable flag value, if it differs from the common one. */
  readonly wrongFlag?: (path: string, message: string) => Error
  /** Resolves to the exit code; undefined means 0. Throws errors for the user. */
  run?(invocation: Invocation): Promise<number | void>
}

type Definition<F extends Flags> = Omit<Command, 'run' | 'flags'> & {
  readonly flags: F
  run?(invocation: Invocation<F>): Promise<number | void>
}

/** The flags determine the type of the invocation. */
export function defineCommand<const F extends Flags>(definition: Definition<F>): Command {
  return definition
}

/** An error in the arguments that refers to the command's help. */
export function usageError({ path }: Pick<Invocation, 'path'>, message: string): KubectlError {
  return new KubectlError(`${message}\nSee '${path} -h' for help and examples`)
}

type Group = Pick<Command, 'name' | 'long' | 'commands'> & Partial<Pick<Command, 'use' | 'examples' | 'aliases'>>

/** A command that only has subcommands: without one it prints the list as an error. */
export function defineGroup(group: Group): Command {
  return defineCommand({ use: 'SUBCOMMAND [options]', flags: {}, run: requireSubcommand, ...group })
}

/** The `run` of such a command. */
export async function requireSubcommand(invocation: Invocation): Promise<number> {
  const { args, stderr, help } = invocation
  if (args.length > 0) throw usageError(invocation, `unknown command "${args.join(' ')}"`)
  stderr.write(await help())
  return 1
}
