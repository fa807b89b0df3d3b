/**
 * Parses command-line flags as spf13/pflag 1.0.9, which every Kubernetes program uses: it accepts the same forms and
 * reports the same errors. A flag set is an object literal, grouped as in help; the type of the parsed values follows
 * from it:
 *
 *     const flags = defineFlags({ generic: { 'secure-port': flag(int, 6443, 'The port to serve HTTPS on') } })
 *     parseFlags(flags, ['--secure-port=7443']).values['secure-port'] // number
 */
import { goQuote } from '../go/text.ts'
import type { Kind } from './kinds.ts'

export interface FlagOptions {
  /** One ASCII character: `n` for `-n`. */
  readonly shorthand?: string
  /** The value meant by the flag alone (`--dry-run`); a value must then be joined with `=`. */
  readonly alone?: string
  readonly required?: boolean
  /** Works but is not in help. */
  readonly hidden?: boolean
  /** Works, is not in help, and warns with this text. */
  readonly deprecated?: string
  /** Is in help though it is deprecated, and says so there. */
  readonly shown?: boolean
  /** The shorthand works, is not in help, and warns with this text. */
  readonly shorthandDeprecated?: string
  /** Dotted path of the config file's field this flag overrides: `authentication.webhook.enabled`. */
  readonly field?: string
}

export interface Flag<T> extends FlagOptions {
  readonly kind: Kind<T>
  readonly initial: T
  /** May name the value in back quotes, as Go's flags do: "Listen on `port`". */
  readonly usage: string
}

/** Group name (as help prints it, in lower case) → flag name → flag. */
export type FlagGroups = Readonly<Record<string, Readonly<Record<string, Flag<unknown>>>>>

type Names<G> = { [K in keyof G]: keyof G[K] }[keyof G] & string
type ValueOf<G, N> = {
  [K in keyof G]: N extends keyof G[K] ? (G[K][N] extends Flag<infer T> ? T : never) : never
}[keyof G]

/** Flag name → value, for every flag of every group. */
export type FlagValues<G> = { readonly [N in Names<G>]: ValueOf<G, N> }

export interface FlagSet<G extends FlagGroups> {
  readonly groups: G
  /** Every flag by its normalised name. */
  readonly byName: ReadonlyMap<string, NamedFlag>
  readonly byShorthand: ReadonlyMap<string, NamedFlag>
}

export interface NamedFlag extends Flag<unknown> {
  readonly name: string
}

export interface ParsedFlags<V> {
  readonly values: V
  /** Names of the flags that were given, with any value. */
  readonly changed: ReadonlySet<string>
  /** Each flag of the line with the text of its value, in the order of the line. */
  readonly given: readonly GivenFlag[]
  /** The arguments that are not flags. */
  readonly args: readonly string[]
  /** How many of `args` stood before `--`; -1 when there was none. */
  readonly argsBeforeDash: number
  /** Lines to print to stderr: deprecated flags and the like. */
  readonly warnings: readonly string[]
}

export interface GivenFlag {
  readonly name: string
  readonly text: string
}

/** The user's mistake; the message is pflag's or cobra's. */
export class FlagError extends Error {
  override readonly name = 'FlagError'
}

export function flag<T>(kind: Kind<T>, initial: NoInfer<T>, usage: string, options: FlagOptions = {}): Flag<T> {
  return { ...options, kind, initial, usage }
}

/** Throws when two flags share a name or a shorthand: a mistake of the program, not of its user. */
export function defineFlags<const G extends FlagGroups>(groups: G): FlagSet<G> {
  const byName = new Map<string, NamedFlag>()
  const byShorthand = new Map<string, NamedFlag>()
  for (const [name, each] of Object.values(groups).flatMap((group) => Object.entries(group))) {
    const named = { ...each, name: normalise(name) }
    if (byName.has(named.name)) throw new Error(`flag redefined: ${name}`)
    byName.set(named.name, named)
    if (named.shorthand === undefined) continue
    if (!/^[!-~]$/.test(named.shorthand))
      throw new Error(`${goQuote(named.shorthand)} shorthand is more than one ASCII character`)
    const used = byShorthand.get(named.shorthand)
    if (used)
      throw new Error(
        `unable to redefine '${named.shorthand}' shorthand: it's already used for ${goQuote(used.name)} flag`,
      )
    byShorthand.set(named.shorthand, named)
  }
  return { groups, byName, byShorthand }
}

/**
 * Reads `args`. With `interspersed` false the first argument that is no flag ends the flags, which is how a command
 * leaves the rest to its sub-command. Required flags are left to `requireFlags`, because help comes first. Throws
 * FlagError.
 */
export function parseFlags<G extends FlagGroups>(
  set: FlagSet<G>,
  args: readonly string[],
  options: { readonly interspersed?: boolean } = {},
): ParsedFlags<FlagValues<G>> {
  const state: State = { set, left: [...args], given: new Map(), line: [], args: [], argsBeforeDash: -1, warnings: [] }
  for (let arg = state.left.shift(); arg !== undefined; arg = state.left.shift()) {
    if (arg === '--') state.argsBeforeDash = state.args.length
    else if (arg.startsWith('--')) readLong(state, arg)
    else if (arg.startsWith('-') && arg !== '-') readShort(state, arg.slice(1))
    else state.args.push(arg)
    const flagsEnd = arg === '--' || (options.interspersed === false && state.args.length > 0)
    if (flagsEnd) state.args.push(...state.left.splice(0))
  }
  const { given } = state
  const values = [...set.byName.values()].map(({ name, initial }) => [
    name,
    given.has(name) ? given.get(name) : initial,
  ])
  return {
    values: Object.fromEntries(values) as FlagValues<G>,
    changed: new Set(given.keys()),
    given: state.line,
    args: state.args,
    argsBeforeDash: state.argsBeforeDash,
    warnings: state.warnings,
  }
}

/** Throws FlagError, with cobra's text, when a required flag was not given. */
export function requireFlags(set: FlagSet<FlagGroups>, parsed: ParsedFlags<unknown>): void {
  const missing = [...set.byName.values()].filter(({ name, required }) => required && !parsed.changed.has(name))
  if (missing.length === 0) return
  const names = missing.map(({ name }) => name).sort()
  throw new FlagError(`required flag(s) "${names.join('", "')}" not set`)
}

/** Kubernetes accepts `_` for `-` between words. */
function normalise(name: string): string {
  return name.replaceAll('_', '-')
}

interface State {
  readonly set: FlagSet<FlagGroups>
  /** Arguments not looked at yet. */
  readonly left: string[]
  readonly given: Map<string, unknown>
  readonly line: GivenFlag[]
  readonly args: string[]
  argsBeforeDash: number
  readonly warnings: string[]
}

function readLong(state: State, arg: string): void {
  const [, name = '', value] = /^--([^=]*)(?:=([^]*))?$/.exec(arg) ?? []
  if (name === '' || name.startsWith('-')) throw new FlagError(`bad flag syntax: ${arg}`)
  const found = state.set.byName.get(normalise(name))
  if (found === undefined) throw new FlagError(`unknown flag: --${name}`)
  const text = value ?? aloneValue(found) ?? state.left.shift()
  if (text === undefined) throw new FlagError(`flag needs an argument: --${name}`)
  assign(state, found, text)
}

/** One or more shorthands behind one dash: `-it`, `-n5`, `-n=5`, `-n 5`, `-itn5`. */
function readShort(state: State, cluster: string): void {
  for (let at = 0; at < cluster.length; at++) {
    const rest = cluster.slice(at)
    const letter = rest.slice(0, 1)
    const found = state.set.byShorthand.get(letter)
    if (found === undefined) throw new FlagError(`unknown shorthand flag: '${letter}' in -${rest}`)
    if (found.shorthandDeprecated !== undefined) {
      state.warnings.push(`Flag shorthand -${letter} has been deprecated, ${found.shorthandDeprecated}`)
    }
    const alone = aloneValue(found)
    const joined = rest.length > 2 && rest[1] === '='
    if (alone !== undefined && !joined) {
      assign(state, found, alone)
      continue
    }
    const text = joined ? rest.slice(2) : rest.slice(1) || state.left.shift()
    if (text === undefined) throw new FlagError(`flag needs an argument: '${letter}' in -${rest}`)
    return assign(state, found, text)
  }
}

function aloneValue({ alone, kind }: NamedFlag): string | undefined {
  return alone ?? kind.alone
}

function assign(state: State, found: NamedFlag, text: string): void {
  const { kind, name } = found
  let value: unknown
  try {
    value = kind.parse(text)
  } catch (cause) {
    throw new FlagError(
      `invalid argument ${goQuote(text)} for "${spelling(found)}" flag: ${(cause as Error).message}`,
      {
        cause,
      },
    )
  }
  const { given } = state
  state.line.push({ name, text })
  given.set(name, given.has(name) && kind.join ? kind.join(given.get(name), value) : value)
  if (found.deprecated !== undefined) state.warnings.push(`Flag --${name} has been deprecated, ${found.deprecated}`)
  state.warnings.push(...(kind.warnings?.(value) ?? []))
}

/** `-n, --num`, or the long form alone when there is no shorthand to recommend. */
function spelling({ name, shorthand, shorthandDeprecated }: NamedFlag): string {
  return shorthand === undefined || shorthandDeprecated !== undefined ? `--${name}` : `-${shorthand}, --${name}`
}
