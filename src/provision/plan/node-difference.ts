/** Computes the differences of a Node from its desired labels, annotations and taints. Pure. */
import type { DesiredNode, DesiredTaint } from '../desired.ts'
import type { ObservedNode } from './observed.ts'

export interface NodeDifference {
  /** `2 labels, 1 taint`. */
  readonly describe: string
  /** Keys of roles that it no longer has. */
  readonly dropped: DroppedMarks
}

export interface DroppedMarks {
  readonly taints: readonly DesiredTaint[]
  /** The keys. */
  readonly labels: readonly string[]
}

/** Undefined without differences. A missing Node lacks everything. */
export function differentNode(desired: DesiredNode, found: ObservedNode | undefined): NodeDifference | undefined {
  const lacking = (want: Readonly<Record<string, string>>, have: Readonly<Record<string, string>> = {}): number =>
    Object.entries(want).filter(([key, value]) => have[key] !== value).length
  const { taints = [], labels = {} } = found ?? {}
  const dropped = {
    taints: taints.filter(
      (taint) => desired.roleTaints.includes(taint.key) && !desired.taints.some((want) => isSameTaint(want, taint)),
    ),
    labels: desired.roleLabels.filter((key) => key in labels && !(key in desired.labels)),
  }
  const counts = [
    [lacking(desired.labels, labels) + dropped.labels.length, 'label'],
    [lacking(desired.annotations, found?.annotations), 'annotation'],
    [
      desired.taints.filter((want) => !taints.some((taint) => isSameTaint(want, taint))).length + dropped.taints.length,
      'taint',
    ],
  ] as const
  const parts = counts
    .filter(([count]) => count > 0)
    .map(([count, what]) => `${count} ${what}${count === 1 ? '' : 's'}`)
  return parts.length === 0 ? undefined : { describe: parts.join(', '), dropped }
}

export function isSameTaint(one: DesiredTaint, other: DesiredTaint): boolean {
  return one.key === other.key && one.value === other.value && one.effect === other.effect
}
