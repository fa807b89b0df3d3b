/** Finds the change that a question is about in the history of an object. Pure. */
import type { KubeObject } from '#meta/object.ts'

import type { ReadChange } from '../reader.ts'

/** A change with the state before it. */
export interface Transition extends ReadChange {
  /** Absent: the object is new, or its earlier state is not in the history. */
  readonly before?: KubeObject
}

export function transitionsOf(items: readonly ReadChange[]): Transition[] {
  const latest = new Map<string, KubeObject>()
  return items.map((change) => {
    const { uid = '' } = change.object.metadata
    const before = change.oldObject ?? latest.get(uid)
    latest.set(uid, change.object)
    return { ...change, ...(before !== undefined && { before }) }
  })
}

export interface Deletion {
  /** The last state. */
  readonly object: KubeObject
  /** The change that began the deletion; absent: it is older than the history. */
  readonly decision?: Transition
  readonly end: Transition
}

/** Of the last incarnation that is gone. */
export function lastDeletion(items: readonly ReadChange[]): Deletion | undefined {
  const transitions = transitionsOf(items)
  const end = transitions.findLast(({ type }) => type === 'DELETED')
  if (end === undefined) return undefined
  const { uid, deletionTimestamp } = end.object.metadata
  if (deletionTimestamp === undefined) return { object: end.object, decision: end, end }
  const decision = transitions.find(
    ({ type, object, before }) =>
      type === 'MODIFIED' &&
      object.metadata.uid === uid &&
      object.metadata.deletionTimestamp !== undefined &&
      before !== undefined &&
      before.metadata.deletionTimestamp === undefined,
  )
  return { object: end.object, end, ...(decision !== undefined && { decision }) }
}

/** The last change before or at a revision with a property. */
export function lastChange(
  items: readonly ReadChange[],
  until: string,
  has: (change: Transition) => boolean,
): Transition | undefined {
  return transitionsOf(items).findLast((change) => Number(change.resourceVersion) <= Number(until) && has(change))
}

/** Whether the object had a property in any state after one revision and until another. */
export function wasBetween(
  items: readonly ReadChange[],
  [after, until]: readonly [after: string, until: string],
  has: (object: KubeObject) => boolean,
): boolean {
  return items.some(({ resourceVersion, object }) => {
    const version = Number(resourceVersion)
    return version > Number(after) && version <= Number(until) && has(object)
  })
}
