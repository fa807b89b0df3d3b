/** What a line asks for that is not written to its end: a flag, the value of one, or an argument. As cobra decides it; pure. */
import {
  type Flag,
  FlagError,
  type FlagSet,
  type FlagGroups,
  type NamedFlag,
  type ParsedFlags,
  parseFlags,
} from '#lib/flags/flags.ts'

import type { Flags } from '../command.ts'
import type { LineFlags } from '../line-flags.ts'

export interface Question {
  readonly kind: 'flag-value' | 'flag-name' | 'argument' | 'nothing'
  /** Whose value is asked for. */
  readonly flag?: NamedFlag
  /** What was typed of it. */
  readonly typed: string
  /** What stands before it in the line. */
  readonly parsed: ParsedFlags<Readonly<Record<string, unknown>>>
}

/** A line that nobody can complete. */
export class QuestionError extends Error {}

interface Asked {
  readonly name: string
  readonly args: readonly string[]
  readonly flags: LineFlags
  readonly stopsAtArgs: boolean
}

/** `typed` is the last word, which may be empty. Throws QuestionError. */
export function questionOf({ name, args, flags, stopsAtArgs }: Asked, typed: string): Question {
  const asked = flagAsked(args, typed, flags.set)
  const parsed = parse(flags.set, asked.args, stopsAtArgs)
  const mayBeFlag = parsed.argsBeforeDash < 0 && !(stopsAtArgs && parsed.args.length > 0)
  if (asked.unknown !== undefined && mayBeFlag) {
    throw new QuestionError(`Subcommand '${name}' does not support flag '${asked.unknown}'`)
  }
  if (parsed.changed.has('help')) return { kind: 'nothing', typed, parsed }
  if (asked.flag !== undefined && mayBeFlag) {
    return { kind: 'flag-value', flag: asked.flag, typed: asked.typed, parsed }
  }
  const isName = asked.flag === undefined && asked.typed.startsWith('-') && !asked.typed.includes('=') && mayBeFlag
  return { kind: isName ? 'flag-name' : 'argument', typed: asked.typed, parsed }
}

function parse(
  set: FlagSet<FlagGroups>,
  args: readonly string[],
  stopsAtArgs: boolean,
): ParsedFlags<Readonly<Record<string, unknown>>> {
  try {
    return parseFlags(set, args, { interspersed: !stopsAtArgs })
  } catch (error) {
    if (!(error instanceof FlagError)) throw error
    throw new QuestionError(`Error while parsing flags from args [${args.join(' ')}]: ${error.message}`)
  }
}

interface FlagAsked {
  readonly flag?: NamedFlag
  readonly args: readonly string[]
  readonly typed: string
  /** There is no such flag. */
  readonly unknown?: string
}

/** `--flag=val`, or `val` behind a flag that takes one. */
function flagAsked(args: readonly string[], typed: string, set: FlagSet<FlagGroups>): FlagAsked {
  const at = typed.indexOf('=')
  if (typed.startsWith('-') && at < 0) return { args, typed }
  const isJoined = typed.startsWith('-')
  const before = args.at(-1) ?? ''
  const word = isJoined ? typed.slice(0, at) : isFlag(before) && !before.includes('=') ? before : undefined
  if (word === undefined) return { args, typed }
  // Of shorthands behind one dash the last takes the value.
  const name = word.startsWith('--') ? word.slice(2) : word.slice(-1)
  const flag = (name.length === 1 ? set.byShorthand.get(name) : undefined) ?? set.byName.get(name)
  if (flag === undefined) return { args, typed, unknown: name }
  if (isJoined) return { flag, args, typed: typed.slice(at + 1) }
  const isAlone = (flag.alone ?? flag.kind.alone) !== undefined
  return isAlone ? { args, typed } : { flag, args: args.slice(0, -1), typed }
}

function isFlag(arg: string): boolean {
  return /^--[^-]/.test(arg) || /^-[^-]/.test(arg)
}

/** Names of flags that go on as what was typed; only those that must be given, while they are not. */
export function flagNames({ own, inherited }: LineFlags, { typed, parsed }: Question, isRoot: boolean): string[] {
  const required = requiredFlags({ own, inherited }, { typed, parsed })
  if (required.length > 0) return required
  const mayCome = ([name, flag]: [string, Flag<unknown>]): boolean => !parsed.changed.has(name) || isRepeatable(flag)
  const groups = isRoot ? [{ ...inherited, ...own }] : [inherited, own]
  return groups
    .flatMap((group) => sorted(group).filter(mayCome))
    .flatMap(([name, flag]) => spellings(name, flag, typed))
}

export function requiredFlags(
  { own }: Pick<LineFlags, 'own' | 'inherited'>,
  { typed, parsed }: Pick<Question, 'typed' | 'parsed'>,
): string[] {
  return sorted(own)
    .filter(([name, { required }]) => required === true && !parsed.changed.has(name))
    .flatMap(([name, flag]) => spellings(name, flag, typed))
}

function sorted(flags: Flags): [string, Flag<unknown>][] {
  return Object.entries(flags).sort(([one], [other]) => (one < other ? -1 : 1))
}

function isRepeatable({ kind }: Flag<unknown>): boolean {
  return /Slice|Array|^stringTo/.test(kind.type)
}

function spellings(name: string, { shorthand, usage, hidden, deprecated }: Flag<unknown>, typed: string): string[] {
  if (hidden === true || deprecated !== undefined) return []
  const names = [`--${name}`, ...(shorthand === undefined ? [] : [`-${shorthand}`])]
  return names.filter((each) => each.startsWith(typed)).map((each) => `${each}\t${usage.replaceAll('`', '')}`)
}
