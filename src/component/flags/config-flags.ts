/** Flags of the fields of a configuration kind. Each parses the value of its field. */
import { int64 } from '#lib/flags/flag-rows.ts'
import type { FlagGroup } from '#lib/flags/flag-support.ts'
import { flag, type FlagOptions } from '#lib/flags/flags.ts'
import { bool, float32, int32, type Kind, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { durationMs, durationOfMs } from '#lib/go/duration.ts'
import { compareText } from '#lib/go/text.ts'
import type { ConfigTable } from '#meta/config-kind.ts'
import { initialOf, valueAt, withValueAt } from '#meta/config-rows.ts'

/** A duration in Go's text form. */
const durationText: Kind<string> = {
  type: 'duration',
  hint: 'duration',
  parse: (text) => durationOfMs(durationMs(text)),
  print: String,
  plain: ['0s'],
}

/** By the type of the field. */
const KINDS: Readonly<Record<string, unknown>> = {
  bool,
  float32,
  int32,
  int64,
  string,
  '[]string': strings,
  'v1.Duration': durationText,
}

/** `kinds` are more flag types, by the name in the row or by the type of the field. */
export function configFlags<T extends object>(
  { kind: configKind, options }: ConfigTable<T>,
  defaults: T,
  kinds: Readonly<Record<string, unknown>>,
  optionsOf: (flag: string) => FlagOptions = () => ({}),
): FlagGroup {
  const all = { ...KINDS, ...kinds }
  const rows = options.flatMap(({ path, type, initial, flag: name, flagKind }) => {
    if (name === undefined) return []
    const target = type.replace(/^\*/, '')
    const kind = all[flagKind ?? target] as Kind<unknown>
    const value = valueAt(defaults, path) ?? initialOf(target, initial ?? '')
    return [[name, flag(kind, value, `${path} of the ${configKind}`, optionsOf(name))] as const]
  })
  // A flag of several fields has the default of the first.
  return Object.fromEntries(rows.reverse().sort(([a], [b]) => compareText(a, b)))
}

/** Sets the fields of the flags that were given. */
export function withFlags<T extends object>(
  { options }: ConfigTable<unknown>,
  config: T,
  { flags, changed }: { readonly flags: Readonly<Record<string, unknown>>; readonly changed: ReadonlySet<string> },
): T {
  const given = options.filter(({ flag: name }) => name !== undefined && changed.has(name))
  return given.reduce((before, { path, flag: name = '' }) => withValueAt(before, path, flags[name]), config)
}
