/** Sorts pods by upstream's rules, to select the best one of several. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { epochMsOf } from '#meta/time.ts'

export type PodOrder = (one: Pod, other: Pod) => number

type Rule = PodOrder

/** Best log source first: assigned, running, ready, ready for longer, more restarts, older. */
export function loggingFirst(one: Pod, other: Pod): number {
  return byRules(one, other, [
    assignedFirst,
    (a, b) => phaseRank(a, LOGGING_RANK) - phaseRank(b, LOGGING_RANK),
    readyFirst,
    (a, b) => earlierFirst(readySince(a), readySince(b)),
    moreRestartsFirst,
    (a, b) => earlierFirst(createdAt(a), createdAt(b)),
  ])
}

/** Least active first: the deletion order of a scale-down. */
export function activeLast(one: Pod, other: Pod): number {
  return byRules(one, other, [
    (a, b) => assignedFirst(b, a),
    (a, b) => phaseRank(a, ACTIVE_RANK) - phaseRank(b, ACTIVE_RANK),
    (a, b) => readyFirst(b, a),
    (a, b) => Number(isDeleting(b)) - Number(isDeleting(a)),
    (a, b) => (deletedAt(a) ?? 0) - (deletedAt(b) ?? 0),
    (a, b) => earlierFirst(readySince(b), readySince(a)),
    moreRestartsFirst,
    (a, b) => earlierFirst(createdAt(b), createdAt(a)),
  ])
}

function byRules(one: Pod, other: Pod, rules: readonly Rule[]): number {
  for (const rule of rules) {
    const sign = rule(one, other)
    if (sign !== 0) return sign
  }
  return 0
}

const LOGGING_RANK: Readonly<Record<string, number>> = { Running: 0, Unknown: 1, Pending: 2 }
const ACTIVE_RANK: Readonly<Record<string, number>> = { Pending: 0, Unknown: 1, Running: 2 }

/** Terminated pods rank first, because Go's map lacks their phase. */
function phaseRank({ status }: Pod, ranks: Readonly<Record<string, number>>): number {
  return ranks[status?.phase ?? ''] ?? 0
}

function assignedFirst(one: Pod, other: Pod): number {
  return Number((other.spec.nodeName ?? '') !== '') - Number((one.spec.nodeName ?? '') !== '')
}

function readyFirst(one: Pod, other: Pod): number {
  return Number(isReady(other)) - Number(isReady(one))
}

export function isReady({ status }: Pod): boolean {
  return (status?.conditions ?? []).some((condition) => condition.type === 'Ready' && condition.status === 'True')
}

function readySince({ status }: Pod): number | undefined {
  const ready = (status?.conditions ?? []).find(({ type, status: is }) => type === 'Ready' && is === 'True')
  return timeOf(ready?.lastTransitionTime)
}

function createdAt({ metadata }: Pod): number | undefined {
  return timeOf(metadata.creationTimestamp)
}

function isDeleting({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined
}

function deletedAt({ metadata }: Pod): number | undefined {
  return timeOf(metadata.deletionTimestamp)
}

function timeOf(text: string | null | undefined): number | undefined {
  return text === undefined || text === null ? undefined : epochMsOf(text)
}

/** Pods without the time come last. */
function earlierFirst(one: number | undefined, other: number | undefined): number {
  if (one === other) return 0
  if (one === undefined || other === undefined) return one === undefined ? 1 : -1
  return one - other
}

function moreRestartsFirst(one: Pod, other: Pod): number {
  const [a, b] = [restartsOf(one), restartsOf(other)]
  return b.regular - a.regular || b.sidecars - a.sidecars
}

function restartsOf({ spec, status }: Pod): { readonly regular: number; readonly sidecars: number } {
  const most = (counts: readonly number[]): number => Math.max(0, ...counts)
  const sidecars = new Set(
    (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name),
  )
  return {
    regular: most((status?.containerStatuses ?? []).map(({ restartCount }) => restartCount)),
    sidecars: most(
      (status?.initContainerStatuses ?? [])
        .filter(({ name }) => sidecars.has(name))
        .map(({ restartCount }) => restartCount),
    ),
  }
}
