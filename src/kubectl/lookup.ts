/** Finds the command in a command line as cobra does, skipping flags and their values. */
import { findCommand as rowFor } from '#lib/commands.ts'

import type { Command, Flags } from './command.ts'
import { globalFlags } from './global-flags.ts'

export interface CommandMatch {
  readonly command: Command
  readonly path: readonly string[]
  /** The rest of the line. */
  readonly args: readonly string[]
}

type Env = Readonly<Record<string, string | undefined>>

/** Descends into subcommands while the next word names one. */
export async function findCommand(from: CommandMatch, env: Env): Promise<CommandMatch> {
  let found = from
  for (;;) {
    const { command, path, args } = found
    const at = command.commands === undefined ? -1 : nextWord(found, env)
    const word = args[at]
    const row = word === undefined ? undefined : rowFor(command.commands ?? [], word)
    if (row === undefined) return found
    const rest = args.filter((_, index) => index !== at)
    found = { command: withMoreFlags(await row.load(), env), path: [...path, row.name], args: rest }
  }
}

function withMoreFlags(command: Command, env: Env): Command {
  const { flags, moreFlags } = command
  return moreFlags === undefined ? command : { ...command, flags: { ...flags, ...moreFlags(env) } }
}

/** The index of the first argument that is neither a flag nor a flag's value; -1 without one. */
export function nextWord({ args, command }: CommandMatch, env: Env): number {
  const known: Flags = { ...command.flags, ...globalFlags(env) }
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
