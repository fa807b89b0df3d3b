/** Reads the objects to undo, now and at the earlier moment, and plans each. */
import { pathOf } from '#client/api-client.ts'
import type { ServedKind } from '#client/discovery.ts'
import { isForbidden, isNotFound } from '#meta/status.ts'

import { KubectlError } from '../errors.ts'
import type { ListedChange } from '../history/history-rows.ts'
import type { AnyObject } from '../session/rest.ts'
import type { Session } from '../session/session.ts'
import { type AbsoluteMoment, momentOf } from './absolute-moment.ts'
import { pairObjects } from './differences.ts'
import { changesOf, ownsSpec } from './field-managers.ts'
import { type EarlierState, lastChangeIn } from './last-change.ts'
import { readObjects } from './moment-objects.ts'
import { planUndo, type UndoStep } from './undo-plan.ts'
import { changedFields } from './user-fields.ts'
import { canBeUndone, pairKinds, resourceOf, userKinds } from './user-kinds.ts'

export interface PlannedUndo {
  readonly kind: ServedKind
  readonly namespace: string
  readonly name: string
  readonly step: UndoStep
}

export interface UndoSearch {
  readonly session: Session
  readonly namespace: string
  /** The moment of the earlier state. */
  readonly moment?: AbsoluteMoment
  /** The manager whose changes are undone. */
  readonly by?: string
}

/** Everything in a namespace, and the namespace itself if it is gone. Throws KubectlError, StatusError. */
export async function planNamespace({
  session,
  namespace,
  by,
  moment,
}: UndoSearch & { readonly moment: AbsoluteMoment }): Promise<PlannedUndo[]> {
  const past = session.at(moment.text)
  const [then, now] = [await (await past.mapper()).kinds(), await (await session.mapper()).kinds()]
  const planned = await planNamespaceObject({ past, session, namespace })
  const known = [...userKinds(now, { namespaced: true }), ...userKinds(then, { namespaced: true })]
  const pairs = pairKinds(known.filter(canBeUndone), then, now)
  const read = (from: Session, side: 'before' | 'after'): ReturnType<typeof readObjects> =>
    readObjects(from, { kinds: pairs.flatMap((pair) => pair[side] ?? []), namespace, skipsForbidden: true })
  const [earlier, later] = await Promise.all([read(past, 'before'), read(session, 'after')])
  const sinceMs = timeOf(moment, by)
  for (const { kind, before, after } of pairObjects(earlier, later)) {
    const step = planUndo({ kind, before, now: after, sinceMs, ...(by !== undefined && { by }) })
    const name = (after ?? before)?.metadata.name ?? ''
    if (step !== undefined && step.action !== 'skip') planned.push({ kind, namespace, name, step })
  }
  return planned
}

interface TwoMoments {
  readonly past: Session
  readonly session: Session
  readonly namespace: string
}

async function planNamespaceObject({ past, session, namespace }: TwoMoments): Promise<PlannedUndo[]> {
  const kind = await (await session.mapper()).ofKind('', 'Namespace')
  const [now, before] = await Promise.all([
    readOne(session, kind, { name: namespace }),
    readOne(past, kind, { name: namespace }),
  ])
  if (now?.metadata.deletionTimestamp !== undefined) {
    throw new KubectlError(`namespace "${namespace}" is being deleted: try again when it is gone`)
  }
  if (now !== undefined) return []
  if (before === undefined) throw new KubectlError(`namespace "${namespace}" does not exist, and did not exist then`)
  const step = planUndo({ kind, before, now, sinceMs: 0 })
  return step === undefined ? [] : [{ kind, namespace: '', name: namespace, step }]
}

async function readOne(
  session: Session,
  kind: ServedKind,
  { namespace = '', name }: { readonly namespace?: string; readonly name: string },
): Promise<AnyObject | undefined> {
  const [found] = await readObjects(session, { kinds: [kind], namespace, name, skipsForbidden: false })
  return found?.object
}

export interface ObjectName {
  readonly type: string
  readonly name: string
}

/** One object. Without a moment its last change is undone. Throws KubectlError, StatusError. */
export async function planObject(search: UndoSearch, { type, name }: ObjectName): Promise<PlannedUndo | undefined> {
  const { session, moment, by } = search
  const kind = await kindOf(search, type)
  if (!canBeUndone(kind))
    throw new KubectlError(`${resourceOf(kind)} are not undone, because users do not decide about them`)
  const namespace = kind.namespaced ? search.namespace : ''
  const where = { namespace, name }
  const now = await readOne(session, kind, where)
  const named = `${resourceOf(kind)} "${name}"`
  const found =
    moment === undefined
      ? await lastChange({ ...search, kind, named, where }, now)
      : {
          before: await readOne(session.at(moment.text), kind, where),
          sinceMs: timeOf(moment, by),
          ...(by !== undefined && { by }),
        }
  if (now === undefined && found.before === undefined) {
    throw new KubectlError(`${named} does not exist, and did not exist then`)
  }
  const step = planUndo({ kind, now, ...found })
  if (step === undefined) return undefined
  return { kind, namespace, name, step: step.action === 'skip' ? { ...step, action: 'refuse' } : step }
}

/** A kind that only the past serves is an error: its objects cannot be created. */
async function kindOf({ session }: UndoSearch, type: string): Promise<ServedKind> {
  return (await session.mapper()).named(type)
}

interface LastChangeSearch extends UndoSearch {
  readonly kind: ServedKind
  readonly named: string
  readonly where: { readonly namespace: string; readonly name: string }
}

/** The changes come from the server, or from managedFields if the user may not list changes. */
async function lastChange(search: LastChangeSearch, now: AnyObject | undefined): Promise<EarlierState> {
  const { kind, named, by } = search
  const items = await listedChanges(search)
  if (items === undefined) return lastManagedChange(search, now)
  const found = lastChangeIn(kind, items, by)
  if (found !== undefined && (now === undefined) === (items.at(-1)?.type === 'DELETED')) return found
  if (now === undefined)
    throw new KubectlError(`${named} does not exist: give a moment at which it did, as in --to -2m`)
  throw noChange(search)
}

function noChange({ named, by }: LastChangeSearch): KubectlError {
  const who = by === undefined ? '' : ` by ${by}`
  return new KubectlError(`${named} has no change${who} in the history: give a moment, as in --to -2m`)
}

const ALL = encodeURIComponent('rv:0..')
const MAX_CHANGES = 10_000

/** Undefined without the permission, which is that of reading the past in all namespaces. */
async function listedChanges({ session, kind, where }: LastChangeSearch): Promise<readonly ListedChange[] | undefined> {
  const rest = await session.rest()
  try {
    const list = await rest.json<{ readonly kind?: string; readonly items?: readonly ListedChange[] }>(
      `/past/${ALL}${pathOf(kind, where)}?limit=${MAX_CHANGES}`,
    )
    if (list.kind === 'ChangeList') return list.items ?? []
  } catch (error) {
    if (isForbidden(error)) return undefined
    if (!isNotFound(error)) throw error
  }
  throw new KubectlError('the server keeps no past: only hyperkube serves it')
}

/** Managers whose times do not lead to another state, before the search ends. */
const MAX_TRIES = 5

/** By the times of managedFields, which are exact to a second. */
async function lastManagedChange(search: LastChangeSearch, now: AnyObject | undefined): Promise<EarlierState> {
  const { session, kind, named, where, by } = search
  if (now === undefined)
    throw new KubectlError(`${named} does not exist: give a moment at which it did, as in --to -2m`)
  const changes = changesOf(now).filter((change) => ownsSpec(change) && (by === undefined || change.manager === by))
  for (const { manager, timeMs } of changes.slice(0, MAX_TRIES)) {
    if (timeMs === undefined) break
    // The last state in the second before.
    const before = await readOne(session.at(momentOf(timeMs - 1000).text), kind, where)
    if (before === undefined) break
    if (changedFields(kind, before, now).length > 0) return { before, by: manager, sinceMs: timeMs }
  }
  throw noChange(search)
}

/** Changes are compared with the time, unless all of them are undone. */
function timeOf({ text, timeMs }: AbsoluteMoment, by: string | undefined): number {
  if (timeMs === undefined && by !== undefined) throw new KubectlError(`--by needs a time instead of ${text}`)
  return timeMs ?? 0
}
