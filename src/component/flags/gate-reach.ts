/** Finds the feature gate settings that have no effect in a program, and returns an error or a note for each. */
import type { FeatureGates } from '#lib/flags/feature-gates.ts'
import type { SupportFindings } from '#lib/flags/flag-support.ts'

import { GATE_GROUPS, type GateGroup } from './gate-table.ts'
import { createGates, FEATURE_GATES } from './gates.ts'

type Reasons = Readonly<Record<string, string>>

/** Sorted by name. */
function reasons(pick: (group: GateGroup) => Reasons | undefined): Reasons {
  const all = GATE_GROUPS.flatMap((group) => Object.entries(pick(group) ?? {}))
  return Object.fromEntries(all.sort(([a], [b]) => (a < b ? -1 : 1)))
}

const FIXED = reasons(({ fixed }) => fixed)
const REFUSED = reasons(({ refused }) => refused)

/**
 * Gates that are on by default and do less here than upstream: a user who enables one by name gets an error. Disabling
 * one has upstream's effect.
 */
const HOLLOW: Reasons = {
  UnknownVersionInteroperabilityProxy: 'requests are not passed on between servers',
}

/** The gates of one program that stay at their default, and those whose change is rejected, with reasons. */
export interface GateReach {
  readonly fixed: Reasons
  readonly refused: Reasons
  readonly hollow?: Reasons
}

/**
 * The settings without an effect in a program, by default this server. Changes through AllAlpha or AllBeta are noted,
 * not rejected.
 */
export function findGates(gates: FeatureGates, { fixed, refused, hollow = {} }: GateReach = SERVER): SupportFindings {
  const isEnabled = createGates(gates)
  const changed = (table: Reasons): [gate: string, why: string][] =>
    Object.entries(table).filter(([gate]) => isEnabled(gate) !== FEATURE_GATES[gate]?.default)
  const flagOf = (gate: string): string => `--feature-gates=${gate}=${isEnabled(gate)}`
  const [named, broughtAlong] = [true, false].map((isNamed) =>
    changed(refused).filter(([gate]) => gates.has(gate) === isNamed),
  )
  return {
    errors: [...(named ?? []), ...Object.entries(hollow).filter(([gate]) => gates.get(gate) === true)].map(
      ([gate, why]) => `${flagOf(gate)} is not supported: ${why}`,
    ),
    notes: [...changed(fixed), ...(broughtAlong ?? [])].map(([gate, why]) => `${flagOf(gate)} has no effect: ${why}`),
  }
}

const SERVER: GateReach = { fixed: FIXED, refused: REFUSED, hollow: HOLLOW }
