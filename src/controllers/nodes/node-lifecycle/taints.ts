/** Computes and writes the taints for node conditions. */
import { type Node, Nodes, type Taint } from '#apis/core/v1.ts'
import { jitteredMs } from '#lib/backoff.ts'
import { causeOf, withCause } from '#lib/causes.ts'
import { sleep } from '#lib/clock.ts'
import { isConflict } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import type { ControllerContext } from '../../controller.ts'

type Mark = Pick<Taint, 'key' | 'effect'>

const NOT_READY: Mark = { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }
const UNREACHABLE: Mark = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }

/** The NoExecute taints. */
export const DRIVING: readonly Mark[] = [UNREACHABLE, NOT_READY]

/** The NoExecute taint for this `Ready` status, and the one to remove. */
export function drivingTaint(ready: string): { readonly wanted: Mark; readonly other: Mark } {
  return ready === 'False' ? { wanted: NOT_READY, other: UNREACHABLE } : { wanted: UNREACHABLE, other: NOT_READY }
}

const UNSCHEDULABLE = 'node.kubernetes.io/unschedulable'

/** By condition and status. */
const KEYS: Readonly<Record<string, string>> = {
  'Ready False': NOT_READY.key,
  'Ready Unknown': UNREACHABLE.key,
  'MemoryPressure True': 'node.kubernetes.io/memory-pressure',
  'DiskPressure True': 'node.kubernetes.io/disk-pressure',
  'NetworkUnavailable True': 'node.kubernetes.io/network-unavailable',
  'PIDPressure True': 'node.kubernetes.io/pid-pressure',
}

const OURS = new Set([...Object.values(KEYS), UNSCHEDULABLE])

export interface TaintChange {
  readonly add: readonly Mark[]
  readonly remove: readonly Mark[]
}

/** NoSchedule taints follow the node's conditions and `spec.unschedulable`. */
export function planNoSchedule({ spec, status }: Node): TaintChange {
  const wanted = (status.conditions ?? []).flatMap((condition) => KEYS[`${condition.type} ${condition.status}`] ?? [])
  if (spec.unschedulable === true) wanted.push(UNSCHEDULABLE)
  const there = (spec.taints ?? []).filter(({ key, effect }) => effect === 'NoSchedule' && OURS.has(key))
  const isThere = (key: string): boolean => there.some((taint) => taint.key === key)
  return {
    add: wanted.filter((key) => !isThere(key)).map((key) => ({ key, effect: 'NoSchedule' })),
    remove: there.filter(({ key }) => !wanted.includes(key)),
  }
}

export function hasTaint({ spec }: Node, mark: Mark): boolean {
  return (spec.taints ?? []).some((taint) => isSame(taint, mark))
}

function isSame(taint: Mark, other: Mark): boolean {
  return taint.key === other.key && taint.effect === other.effect
}

/** Replaces the time of an existing taint. */
export function changed(taints: readonly Taint[], { add, remove }: TaintChange, now: string): Taint[] {
  const kept = taints.filter((taint) => !remove.some((mark) => isSame(mark, taint)))
  const added = add.map((mark) => ({ ...mark, timeAdded: now }))
  const isKept = (mark: Mark): boolean => kept.some((taint) => isSame(taint, mark))
  return [
    ...kept.map((taint) => added.find((mark) => isSame(mark, taint)) ?? taint),
    ...added.filter((mark) => !isKept(mark)),
  ]
}

/** As upstream. */
const TRIES = 5
const RETRY_MS = 100

/** Writes the whole list with a resourceVersion precondition, because taints have no merge key. */
export async function changeTaints(node: Node, change: TaintChange, context: ControllerContext): Promise<void> {
  const { client, clock, random, signal } = context
  const { name = '' } = node.metadata
  if (change.add.length === 0 && !change.remove.some((mark) => hasTaint(node, mark))) return
  let found = node
  for (let tries = 1; ; tries++) {
    const { resourceVersion } = found.metadata
    const taints = changed(found.spec.taints ?? [], change, timeOf(clock.now()))
    const value = { metadata: { resourceVersion }, spec: { taints: taints.length === 0 ? null : taints } }
    try {
      const acted = causeOf(Nodes, found)
      await withCause(acted, () => client.patch(Nodes, { name }, { type: 'strategic', value }, { signal }))
      return
    } catch (error) {
      if (!isConflict(error) || tries >= TRIES) throw error
    }
    await sleep(clock, jitteredMs(random, RETRY_MS, 1), signal)
    found = await client.get(Nodes, { name }, { signal })
  }
}
