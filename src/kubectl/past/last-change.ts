/** Finds the state before the last change of an object in the changes that the server lists. Pure. */
import type { ServedKind } from '#client/discovery.ts'
import { epochMsOf } from '#meta/time.ts'

import { changingManagers } from '../history/field-changes.ts'
import type { ListedChange } from '../history/history-rows.ts'
import type { AnyObject } from '../session/rest.ts'
import { changedFields, type FieldPath } from './user-fields.ts'

export interface EarlierState {
  readonly before: AnyObject
  /** The manager of the change; absent: the object was deleted, or the manager is not known. */
  readonly by?: string
  /** The time of the change. */
  readonly sinceMs: number
}

/** Undefined: no change in the list, by the manager if one is given, is one of a user. */
export function lastChangeIn(
  kind: ServedKind,
  items: readonly ListedChange[],
  by: string | undefined,
): EarlierState | undefined {
  const last = items.at(-1)
  if (last?.type === 'DELETED')
    return by === undefined ? { ...stateOf(last), before: undeleted(last.object) } : undefined
  const changes = items.slice(items.findLastIndex(({ type }) => type !== 'MODIFIED') + 1)
  const added = items.at(-changes.length - 1)?.object
  const versions = changes.map((change, index) => ({
    change,
    before: (change.oldObject ?? changes[index - 1]?.object ?? added) as AnyObject | undefined,
  }))
  const search = (isWanted: (path: FieldPath) => boolean): EarlierState | undefined => {
    for (const { change, before } of versions.toReversed()) {
      if (before === undefined || !changedFields(kind, before, change.object as AnyObject).some(isWanted)) continue
      const managers = changingManagers(before, change.object)
      if (by !== undefined && !managers.includes(by)) continue
      const manager = by ?? managers[0]
      return { ...stateOf(change), before, ...(manager !== undefined && { by: manager }) }
    }
    return undefined
  }
  return search(([top]) => top !== 'metadata') ?? search(() => true)
}

function stateOf({ time }: ListedChange): Pick<EarlierState, 'sinceMs'> {
  return { sinceMs: time === undefined ? 0 : Math.floor(epochMsOf(time) / 1000) * 1000 }
}

function undeleted(object: object): AnyObject {
  const { metadata, ...rest } = object as AnyObject
  const { deletionTimestamp: _, deletionGracePeriodSeconds: __, ...shown } = metadata
  return { ...rest, metadata: shown }
}
