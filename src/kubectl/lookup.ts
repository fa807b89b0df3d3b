/** Which command the words of a line lead to, as cobra finds it: flags and their values are stepped over. */
import type { Command, CommandRow, Flags } from './command.ts'
import { globalFlags } from './global-flags.ts'

export interface Found {
  readonly command: Command
  readonly path: readonly string[]
  /** What is left of the line. */
  readonly args: readonly string[]
}

type Env = Readonly<Record<string, string | undefined>>

/** Goes down from command to command as long as the next word names one. */
export async function findCommand(from: Found, env: Env): Promise<Found> {
  let found = from
  for (;;) {
    const { command, path, args } = found
    const at = command.commands === undefined ? -1 : nextWord(found, env)
    const word = args[at]
    const row = word === undefined ? undefined : rowOf(command.commands ?? [], word)
    if (row === undefined) return found
    const rest = args.filter((_, index) => index !== at)
    found = { command: withMoreFlags(await row.load(), env), path: [...path, row.name], args: rest }
  }
}

function withMoreFlags(command: Command, env: Env): Command {
  const { flags, moreFlags } = command
  return moreFlags === undefined ? command : { ...command, flags: { ...flags, ...moreFlags(env) } }
}

export function rowOf(rows: readonly CommandRow[], word: string): CommandRow | undefined {
  return rows.find(({ name, aliases = [] }) => name === word || aliases.includes(word))
}

/** Where the first argument stands that is no flag and no flag's value; -1 when there is none. */
export function nextWord({ args, command }: Found, env: Env): number {
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
