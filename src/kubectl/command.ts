/**
 * The shape of a kubectl command: flags, help and a `run` that gets everything it may touch. A command is a file on the
 * shelf `commands`, loaded only when it is asked for.
 */
import type { Flag, FlagValues } from '#lib/flags/flags.ts'
import type { ProgramContext } from '#lib/program.ts'

import { KubectlError } from './errors.ts'
import type { GlobalFlags } from './global-flags.ts'
import type { Session } from './session.ts'

export type Flags = Readonly<Record<string, Flag<unknown>>>

/** A line in a table of commands: enough for help and dispatch without loading the command. */
export interface CommandRow {
  readonly name: string
  readonly aliases?: readonly string[]
  /** One line, for the list of commands. */
  readonly short: string
  /** The heading it stands under in `kubectl --help`; `Other Commands:` without. */
  readonly group?: string
  readonly hidden?: boolean
  /** What people type who mean this one. */
  readonly suggestFor?: readonly string[]
  load(): Promise<Command>
}

/** All that a command may touch. */
export interface Invocation<F extends Flags = Flags> extends Pick<
  ProgramContext,
  'env' | 'cwd' | 'stdin' | 'stdout' | 'stderr' | 'clock' | 'random'
> {
  /** `kubectl create deployment`: for messages and help. */
  readonly path: string
  /** What is not a flag. */
  readonly args: readonly string[]
  /** How many of `args` stood before `--`; -1 when there was none. */
  readonly argsBeforeDash: number
  readonly flags: FlagValues<{ readonly own: F; readonly global: Omit<GlobalFlags, keyof F> }>
  /** Names of the flags that were given. */
  readonly changed: ReadonlySet<string>
  /** The way to the server; nothing is asked of it before somebody needs it. */
  readonly session: Session
  /** Aborted when the process is asked to stop. */
  readonly signal: AbortSignal
  /** The command line as `--record` writes it into objects. */
  readonly changeCause: () => string
  /** This command's help, as `--help` prints it. */
  readonly help: () => Promise<string>
}

export interface Command {
  readonly name: string
  readonly aliases?: readonly string[]
  /** What follows the name in `Usage:`. */
  readonly use: string
  readonly long: string
  /** Lines of commands, each after a line with `#` that says what it does. */
  readonly examples?: string
  readonly flags: Flags
  /** Flags that there are only where the environment says so. */
  readonly moreFlags?: (env: ProgramContext['env']) => Flags
  readonly commands?: readonly CommandRow[]
  /** The rest of the line belongs to somebody else (`kubectl exec x ls -l`): the first argument ends the flags. */
  readonly stopsAtArgs?: boolean
  /** What `--help` prints on standard error instead. */
  readonly insteadOfHelp?: string
  /** What is said of a flag that cannot be read, where that is something else than for most. */
  readonly wrongFlag?: (path: string, message: string) => Error
  /** Resolves to the exit code; 0 when to nothing. Throws what the user should read. */
  run?(invocation: Invocation): Promise<number | void>
}

type Definition<F extends Flags> = Omit<Command, 'run' | 'flags'> & {
  readonly flags: F
  run?(invocation: Invocation<F>): Promise<number | void>
}

/** The type of what `run` is given follows from the flags. */
export function defineCommand<const F extends Flags>(definition: Definition<F>): Command {
  return definition
}

/** A mistake in the arguments: refers to the command's help. */
export function usageError({ path }: Pick<Invocation, 'path'>, message: string): KubectlError {
  return new KubectlError(`${message}\nSee '${path} -h' for help and examples`)
}

/** A command that is nothing without one of its own: says what there is, as a mistake. */
export async function runGroup(invocation: Pick<Invocation, 'args' | 'path' | 'stderr' | 'help'>): Promise<number> {
  const { args, stderr, help } = invocation
  if (args.length > 0) throw usageError(invocation, `unknown command "${args.join(' ')}"`)
  stderr.write(await help())
  return 1
}
