/** Orders the groups of aggregated discovery. Clients use the first group if two have a resource of the same name. */
import { compareText } from '#lib/go/text.ts'
import { compareVersions } from '#meta/kind.ts'

import type { AggregatedVersion } from '../aggregated.ts'

export interface OrderedGroup {
  readonly name: string
  readonly versions: readonly AggregatedVersion[]
}

/**
 * Groups by the highest priority of their versions, then by name; versions by priority, then by age. The last of
 * duplicate group versions counts.
 */
export function orderGroups(versions: readonly AggregatedVersion[]): OrderedGroup[] {
  const last = new Map(versions.map((one) => [`${one.group}/${one.discovery.version}`, one]))
  const byGroup = Map.groupBy(last.values(), ({ group }) => group)
  return [...byGroup]
    .map(([name, own]) => ({ name, versions: own.toSorted(compareInGroup) }))
    .sort((a, b) => priorityOf(b) - priorityOf(a) || compareText(a.name, b.name))
}

function priorityOf({ versions }: OrderedGroup): number {
  return Math.max(...versions.map(({ groupPriority }) => groupPriority))
}

function compareInGroup(a: AggregatedVersion, b: AggregatedVersion): number {
  return b.versionPriority - a.versionPriority || compareVersions(b.discovery.version, a.discovery.version)
}
