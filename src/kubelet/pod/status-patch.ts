/** Computes the strategic merge patch between two pod statuses, as the kubelet sends it. Pure. */
import type { PodCondition, PodStatus } from '#apis/core/v1.ts'
import { semanticEqual } from '#meta/object.ts'

/** Undefined when nothing differs. Fields that the kubelet does not write are left alone. */
export function statusPatch(uid: string, before: PodStatus, after: PodStatus): object | undefined {
  const changes: Record<string, unknown> = {}
  for (const name of WRITTEN) {
    if (semanticEqual(before[name], after[name])) continue
    changes[name] = MERGED.has(name) && before[name] !== undefined ? replaced(after[name]) : (after[name] ?? null)
  }
  const conditions = changedConditions(before.conditions ?? [], after.conditions ?? [])
  if (conditions.length > 0) {
    changes['$setElementOrder/conditions'] = (after.conditions ?? []).map(({ type }) => ({ type }))
    changes['conditions'] = conditions
  }
  return Object.keys(changes).length === 0 ? undefined : { metadata: { uid }, status: changes }
}

/** Lists of containers are sent whole: they are short and unordered. */
const WRITTEN = [
  'observedGeneration',
  'phase',
  'reason',
  'message',
  'hostIP',
  'hostIPs',
  'podIP',
  'podIPs',
  'startTime',
  'initContainerStatuses',
  'containerStatuses',
  'ephemeralContainerStatuses',
  'allocatedResources',
  'resources',
] as const satisfies readonly (keyof PodStatus)[]

/** Lists that a strategic merge would merge by address. */
const MERGED: ReadonlySet<string> = new Set(['hostIPs', 'podIPs'])

function replaced(value: unknown): unknown {
  return Array.isArray(value) ? [{ $patch: 'replace' }, ...(value as unknown[])] : null
}

function changedConditions(before: readonly PodCondition[], after: readonly PodCondition[]): object[] {
  const gone = before.filter(({ type }) => !after.some((condition) => condition.type === type))
  return [
    ...gone.map(({ type }) => ({ $patch: 'delete', type })),
    ...after.flatMap((condition) => {
      const known = before.find(({ type }) => type === condition.type)
      if (known === undefined) return condition
      const changes: Record<string, unknown> = {}
      for (const [name, value] of Object.entries(condition)) {
        if (known[name as keyof PodCondition] !== value) changes[name] = value
      }
      for (const name of Object.keys(known)) if (!Object.hasOwn(condition, name)) changes[name] = null
      return Object.keys(changes).length === 0 ? [] : { ...changes, type: condition.type }
    }),
  ]
}
