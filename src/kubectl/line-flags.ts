/** The flags that a line may have: those of its command, and those of every command that it does not hide. */
import { defineFlags, flag, type FlagGroups, type FlagSet } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'

import type { GlobalValues } from './client-config.ts'
import type { Command, Flags } from './command.ts'
import { globalFlags } from './global-flags.ts'
import { hasKuberc } from './kuberc/place.ts'

type Env = Readonly<Record<string, string | undefined>>

export interface LineFlags {
  readonly own: Flags
  /** Those of every command. */
  readonly inherited: Flags
  readonly set: FlagSet<FlagGroups>
}

/** The flags of every command; the one for preferences is one only where there are any. */
export function globalsFor(env: Env): Flags {
  const all: Flags = { ...globalFlags(env) }
  if (hasKuberc(env)) return all
  const { kuberc: _, ...others } = all
  return others
}

export function flagsFor({ flags, name }: Command, env: Env): LineFlags {
  const own: Flags = { ...flags, help: flag(bool, false, `help for ${name}`, { shorthand: 'h' }) }
  // A flag of the command hides one of every command, as `--user` of a role binding does.
  const inherited = Object.fromEntries(Object.entries(globalsFor(env)).filter(([each]) => !Object.hasOwn(own, each)))
  return { own, inherited, set: defineFlags({ own, inherited }) }
}

/** What the flags of every command say; those that the command hides say nothing. */
export function globalValues(
  { inherited }: LineFlags,
  values: Readonly<Record<string, unknown>>,
  env: Env,
): GlobalValues {
  const all = Object.entries(globalFlags(env)).map(([name, { initial }]) => [
    name,
    Object.hasOwn(inherited, name) ? values[name] : initial,
  ])
  return Object.fromEntries(all)
}
