/** Applies kuberc preferences to a command line: expands aliases and adds default flag values. */
import { defineFlags, type Flag, FlagError, parseFlags } from '#lib/flags/flags.ts'

import { type Command, type CommandRow, type Flags, row } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import type { CommandMatch } from '../lookup.ts'
import type { Alias, CommandDefaults, OptionDefault, Preference } from '../session/preference.ts'

/** A line after preferences were applied. */
export interface PreferredLine {
  readonly args: readonly string[]
  /** Flags that are inserted in front of all others. */
  readonly defaults: readonly string[]
  /** The command of an alias. */
  readonly alias?: CommandRow
  /** The line with aliases expanded and defaults added, for the log. */
  readonly original?: string
}

export interface PreferenceContext {
  readonly args: readonly string[]
  readonly preference: Preference
  /** The command at a path of words; undefined if the first word is no command. */
  readonly find: (words: readonly string[]) => Promise<CommandMatch | undefined>
  readonly globals: Flags
  readonly warn: (text: string) => void
}

/** Throws KubectlError for preferences that do not fit the command. */
export async function applyPreference(applying: PreferenceContext): Promise<PreferredLine> {
  const { args, find } = applying
  const found = await find(args)
  return found === undefined ? applyAlias(applying) : applyDefaults(applying, found)
}

/** The index of the first word that is no flag. A completion request concerns the words after it. */
function commandAt(args: readonly string[]): number {
  return args.findIndex((arg) => !arg.startsWith('-') && !arg.startsWith('__complete'))
}

async function applyAlias(applying: PreferenceContext): Promise<PreferredLine> {
  const { args, preference, warn, find } = applying
  const at = commandAt(args)
  const alias = preference.aliases.find(({ name }) => name === args[at])
  if (alias === undefined) return { args, defaults: [] }
  if ((await find([alias.name])) !== undefined) {
    warn(`Warning: Setting alias "${alias.name}" to a built-in command is not supported\n`)
    return { args, defaults: [] }
  }
  const target = await find(fields(alias.command))
  if (target === undefined) {
    const words = `[${fields(alias.command).join(' ')}]`
    throw new KubectlError(`command "${alias.command}" not found to set alias "${alias.name}": ${words}`)
  }
  const line = aliasLine(applying, alias, { target, at })
  await refuseDefaults(applying, alias)
  return line
}

/** Defaults apply to commands; an alias has separate options. */
async function refuseDefaults({ preference, find, warn }: PreferenceContext, alias: Alias): Promise<void> {
  for (const { command } of preference.defaults) {
    const [first] = fields(command)
    if (first === alias.name) throw new KubectlError(`alias ${alias.name} can not be overridden`)
    if ((await find(fields(command))) === undefined) warn(unknownCommand(command))
  }
}

function aliasLine(
  { args, globals }: PreferenceContext,
  alias: Alias,
  { target, at }: { readonly target: CommandMatch; readonly at: number },
): PreferredLine {
  const { command } = target
  const named: Command = { ...command, name: alias.name, use: '[options]' }
  const known = { ...globals, ...command.flags }
  const defaults = defaultsFor(alias.options, {
    known,
    args,
    unknown: (name) => `invalid alias flag ${name} in alias kubectl`,
    unfit: ({ name, default: value }, why) =>
      `could not apply value ${value} to flag ${name} in alias kubectl err: ${why}`,
  })
  const line = [...args.slice(0, at + 1), ...alias.prependArgs, ...args.slice(at + 1), ...alias.appendArgs]
  const rest = line.join(' ').replaceAll(alias.name, '')
  return {
    args: line,
    defaults,
    alias: row(alias.name, '', () => Promise.resolve(named), { hidden: true }),
    original: [alias.command, ...defaults, ...(rest === '' ? [] : [rest])].join(' '),
  }
}

async function applyDefaults(applying: PreferenceContext, { command }: CommandMatch): Promise<PreferredLine> {
  const { args, preference, find, globals, warn } = applying
  const known = { ...globals, ...command.flags }
  const defaults: string[] = []
  let original: string | undefined
  for (const each of preference.defaults) {
    const target = await find(fields(each.command))
    if (target === undefined) warn(unknownCommand(each.command))
    if (target?.command.name !== command.name) continue
    const own = ownDefaults(each, known, args)
    defaults.push(...own)
    original = [args.join(' '), ...own].join(' ')
  }
  return { args, defaults, ...(original !== undefined && { original }) }
}

function ownDefaults({ command, options }: CommandDefaults, known: Flags, args: readonly string[]): string[] {
  return defaultsFor(options, {
    known,
    args,
    unknown: (name) => `invalid flag ${name} for command ${command}`,
    unfit: ({ name, default: value }, why) =>
      `could not apply override value ${value} to flag ${name} in command ${command} err: ${why}`,
  })
}

interface DefaultsFor {
  readonly known: Flags
  readonly args: readonly string[]
  readonly unknown: (name: string) => string
  readonly unfit: (option: OptionDefault, why: string) => string
}

function defaultsFor(options: readonly OptionDefault[], { known, args, unknown, unfit }: DefaultsFor): string[] {
  const set = defineFlags({ known })
  const given: string[] = []
  for (const option of options) {
    const flag = known[option.name]
    if (flag === undefined) throw new KubectlError(unknown(option.name))
    if (isGiven(option.name, flag, args)) continue
    const text = `--${option.name}=${option.default}`
    try {
      parseFlags(set, [text])
    } catch (error) {
      if (!(error instanceof FlagError)) throw error
      throw new KubectlError(unfit(option, asError(error).message), { cause: error })
    }
    given.push(text)
  }
  return given
}

/** Like upstream, this finds a shorthand within a group of shorthands. */
function isGiven(name: string, { shorthand }: Flag<unknown>, args: readonly string[]): boolean {
  return args.some((arg) => {
    if (arg === `--${name}` || arg.startsWith(`--${name}=`)) return true
    if (shorthand === undefined) return false
    return arg.startsWith(`-${shorthand}`) || (/^-[a-zA-Z]+$/.test(arg) && arg.includes(shorthand))
  })
}

function unknownCommand(command: string): string {
  return `Warning: command "${command}" not found to set kuberc override\n`
}

function fields(text: string): string[] {
  return text.split(/\s+/).filter(Boolean)
}
