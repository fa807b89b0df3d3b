/** Lists the kubelet's flags and values for its /flagz page. */
import type { FlagGroups } from '#lib/flags/flags.ts'

/** The headers for the URL of static pods may contain credentials. */
const CLASSIFIED: ReadonlySet<string> = new Set(['manifest-url-header'])

/** By name, as text. */
export function flagzValues(
  groups: FlagGroups,
  values: Readonly<Record<string, unknown>>,
): ReadonlyMap<string, string> {
  const all = Object.values(groups).flatMap((group) => Object.entries(group))
  const text = ([name, { kind, initial }]: (typeof all)[number]): string => {
    const shown = kind.print(values[name] ?? initial)
    return CLASSIFIED.has(name) && shown !== kind.print(initial) ? 'CLASSIFIED' : shown
  }
  return new Map(all.map((flag) => [flag[0], text(flag)] as const))
}
