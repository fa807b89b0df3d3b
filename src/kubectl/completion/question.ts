/**
 * Decides what to complete in an unfinished command line: a flag name, a flag value or an argument. Pure, and
 * compatible with cobra.
 */
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
  /** The flag whose value is completed. */
  readonly flag?: NamedFlag
  /** The typed part of the word. */
  readonly typed: string
  /** The parsed words before it. */
  readonly parsed: ParsedFlags<Readonly<Record<string, unknown>>>
}

/** A line that cannot be completed. */
export class QuestionError extends Error {}

interface CompletedLine {
  readonly name: string
  readonly args: readonly string[]
  readonly flags: LineFlags
  readonly stopsAtArgs: boolean
}

/** `typed` is the last word and may be empty. Throws QuestionError. */
export function questionOf({ name, args, flags, stopsAtArgs }: CompletedLine, typed: string): Question {
  const flagValue = flagValueIn(args, typed, flags.set)
  const parsed = parse(flags.set, flagValue.args, stopsAtArgs)
  const mayBeFlag = parsed.argsBeforeDash < 0 && !(stopsAtArgs && parsed.args.length > 0)
  if (flagValue.unknown !== undefined && mayBeFlag) {
    throw new QuestionError(`Subcommand '${name}' does not support flag '${flagValue.unknown}'`)
  }
  if (parsed.changed.has('help')) return { kind: 'nothing', typed, parsed }
  if (flagValue.flag !== undefined && mayBeFlag) {
    return { kind: 'flag-value', flag: flagValue.flag, typed: flagValue.typed, parsed }
  }
  const isName =
    flagValue.flag === undefined && flagValue.typed.startsWith('-') && !flagValue.typed.includes('=') && mayBeFlag
  return { kind: isName ? 'flag-name' : 'argument', typed: flagValue.typed, parsed }
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

interface FlagValue {
  readonly flag?: NamedFlag
  readonly args: readonly string[]
  readonly typed: string
  /** The name of a flag that does not exist. */
  readonly unknown?: string
}

/** Finds the flag in `--flag=val`, or in `val` after a flag that takes a value. */
function flagValueIn(args: readonly string[], typed: string, set: FlagSet<FlagGroups>): FlagValue {
  const at = typed.indexOf('=')
  if (typed.startsWith('-') && at < 0) return { args, typed }
  const isJoined = typed.startsWith('-')
  const before = args.at(-1) ?? ''
  const word = isJoined ? typed.slice(0, at) : isFlag(before) && !before.includes('=') ? before : undefined
  if (word === undefined) return { args, typed }
  // In a group of shorthands the last one takes the value.
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

/** Names of flags with the typed prefix; only required flags while one is missing. */
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
