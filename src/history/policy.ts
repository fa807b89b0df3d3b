/** The policy of a history: what it keeps of each resource, and how much for how long. */
import type { RetentionLimits } from './retention.ts'

export const LEVELS = ['None', 'Metadata', 'All'] as const
/** Metadata: an object without what the kind is for: its values, if it is a Secret; else its spec, data and status. */
export type Level = (typeof LEVELS)[number]

export interface HistoryRule {
  readonly level: Level
  /** `secrets`, `deployments.apps`, `*.example.com` or `*`. */
  readonly resources: readonly string[]
}

export interface HistoryPolicy extends RetentionLimits {
  /** The first rule that matches decides. */
  readonly rules: readonly HistoryRule[]
}

/** Values of a deleted or replaced Secret must not come back. */
const SECRETS: HistoryRule = { level: 'Metadata', resources: ['secrets'] }

export const DEFAULT_POLICY: HistoryPolicy = { maxAgeMs: 24 * 3_600_000, maxBytes: 256 << 20, rules: [] }

/** Objects that no rule names are kept whole, and Secrets without their values. */
export function levelOf(
  { rules }: HistoryPolicy,
  { group, resource }: { readonly group: string; readonly resource: string },
): Level {
  const names = ['*', group === '' ? resource : `${resource}.${group}`, ...(group === '' ? [] : [`*.${group}`])]
  const rule = [...rules, SECRETS].find(({ resources }) => resources.some((name) => names.includes(name)))
  return rule?.level ?? 'All'
}
