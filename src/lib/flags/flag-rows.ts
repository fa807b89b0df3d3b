/**
 * Defines flags by rows of text. A row has the kind of the value, the default unless it is empty, and the usage.
 * Instead of the usage it may give the reason why the flag is not supported or has no effect. The type of the values
 * follows from the rows:
 *
 *     'request-timeout': 'duration =1m0s Maximum duration of a request. Watches are exempt.',
 *     'goaway-chance': 'float unsupported: the server does not close HTTP/2 connections at random',
 */
import { type FlagGroup, type FlagsOf, idle, unsupported } from './flag-support.ts'
import { type Flag, flag, type FlagOptions } from './flags.ts'
import { bool, duration, float, float32, int, int32, type Kind, string, uint } from './kinds.ts'
import { ip, stringArray, stringMap, strings } from './list-kinds.ts'

/** By the name of the flag. */
export type FlagRows = Readonly<Record<string, string>>
/** Options of flags that rows cannot contain, by the name of the flag. */
export type RowDetails<T> = { readonly [N in keyof T]?: FlagOptions & { readonly usage?: string } }

interface Kinds {
  readonly bool: Kind<boolean>
  readonly duration: Kind<number>
  readonly float: Kind<number>
  readonly float32: Kind<number>
  readonly int: Kind<number>
  readonly int32: Kind<number>
  readonly int64: Kind<number>
  readonly ip: Kind<string>
  readonly string: Kind<string>
  readonly stringArray: Kind<readonly string[]>
  readonly stringMap: Kind<ReadonlyMap<string, string>>
  readonly strings: Kind<readonly string[]>
  readonly uint: Kind<number>
}

/** pflag's int64: another name for the same type. */
export const int64: Kind<number> = { ...int, type: 'int64' }

const KINDS: Kinds = {
  bool,
  duration,
  float,
  float32,
  int,
  int32,
  int64,
  ip,
  string,
  stringArray,
  stringMap,
  strings,
  uint,
}

type KindOf<Row, Own> = Row extends `${infer Name} ${string}` ? (Own & Kinds)[Name & keyof (Own & Kinds)] : never
type IsSupported<Row> = Row extends `${string} ${'unsupported' | 'idle'}: ${string}` ? false : true

/** The values of the flags that are supported, by name. */
export type RowValues<T, Own = object> = {
  readonly [N in keyof T as IsSupported<T[N]> extends true ? N : never]: KindOf<T[N], Own> extends Kind<infer V>
    ? V
    : never
}

type Intersection<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void ? I : never

/** The values of all groups of rows. */
export type GroupValues<G, Own = object> = Intersection<{ [N in keyof G]: RowValues<G[N], Own> }[keyof G]>

const ROW =
  /^(?<name>\w+)(?: =(?<initial>\S+))?(?: unsupported: (?<unsupported>.+)| idle: (?<idle>.+)| (?<usage>[^]+))$/

/** Throws for a text that is no row. */
export function flagRows<const T extends FlagRows, Own extends object = object>(
  rows: T,
  own?: Own,
  details: RowDetails<T> = {},
): FlagsOf<RowValues<T, Own>> & FlagGroup {
  const kinds = new Map(Object.entries<Kind<unknown>>({ ...KINDS, ...own } as object as Record<string, Kind<unknown>>))
  const flags = Object.entries(rows).map(([name, row]) => [name, flagOf(row, kinds, details[name as keyof T] ?? {})])
  return Object.fromEntries(flags) as FlagsOf<RowValues<T, Own>> & FlagGroup
}

function flagOf(
  row: string,
  kinds: ReadonlyMap<string, Kind<unknown>>,
  details: FlagOptions & { readonly usage?: string },
): Flag<unknown> {
  const found = ROW.exec(row)?.groups
  if (found === undefined) throw new Error(`No row of a flag: "${row}"`)
  const { name = '', initial: text, usage = '', unsupported: missing, idle: reason } = found
  const kind = kinds.get(name)
  if (kind === undefined) throw new Error(`No kind of flag: "${name}"`)
  const initial = text === undefined ? (kind.zero ?? kind.parse('')) : kind.parse(text)
  if (missing !== undefined) return unsupported(kind, initial, missing, details)
  return reason === undefined
    ? flag(kind, initial, details.usage ?? usage, details)
    : idle(kind, initial, reason, details)
}
