/** The flags of one command line: those of its command, and the global ones that the command does not override. */
import { defineFlags, flag, type FlagGroups, type FlagSet } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'

import type { Command, Flags } from './command.ts'
import { globalFlags } from './global-flags.ts'
import { hasKuberc } from './kuberc/location.ts'
import type { GlobalValues } from './session/client-config.ts'

type Env = Readonly<Record<string, string | undefined>>

export interface LineFlags {
  readonly own: Flags
  /** The global flags. */
  readonly inherited: Flags
  readonly set: FlagSet<FlagGroups>
}

/** The global flags; `--kuberc` only if preferences are enabled. */
export function globalsFor(env: Env): Flags {
  const all: Flags = { ...globalFlags(env) }
  if (hasKuberc(env)) return all
  const { kuberc: _, ...others } = all
  return others
}

export function flagsFor({ flags, name }: Command, env: Env): LineFlags {
  const own: Flags = { ...flags, help: flag(bool, false, `help for ${name}`, { shorthand: 'h' }) }
  // A flag of the command overrides a global one, as `--user` of a role binding does.
  const inherited = Object.fromEntries(Object.entries(globalsFor(env)).filter(([each]) => !Object.hasOwn(own, each)))
  return { own, inherited, set: defineFlags({ own, inherited }) }
}

/** The values of the global flags; overridden ones have their defaults. */
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
