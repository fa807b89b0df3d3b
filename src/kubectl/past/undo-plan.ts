/**
 * Decides how to bring an object back to an earlier state. Only fields that users decide count; objects of controllers
 * are left alone, and an object that changed for another reason too is refused. Pure.
 */
import type { ServedKind } from '#client/discovery.ts'

import type { AnyObject } from '../session/rest.ts'
import { momentOf } from './absolute-moment.ts'
import { isSecret } from './differences.ts'
import { changesOf, isSince, type ManagedChange, owns } from './field-managers.ts'
import { changedFields, type FieldPath, recreatedObject, restoredObject } from './user-fields.ts'
import { resourceOf } from './user-kinds.ts'

export interface UndoQuestion {
  readonly kind: ServedKind
  readonly before: AnyObject | undefined
  readonly now: AnyObject | undefined
  /** The manager whose changes are undone; undefined: all changes since the moment. */
  readonly by?: string
  /** The time of the earlier state. */
  readonly sinceMs: number
}

export type UndoStep =
  | { readonly action: 'create' | 'change'; readonly object: AnyObject; readonly note: string }
  | { readonly action: 'delete'; readonly object: AnyObject; readonly note: string }
  /** The object differs, but it is left unchanged for this reason. */
  | { readonly action: 'refuse'; readonly note: string }
  /** The object is not one of a user. */
  | { readonly action: 'skip'; readonly note: string }

/** Undefined: there is nothing to undo. */
export function planUndo(question: UndoQuestion): UndoStep | undefined {
  const { kind, now } = question
  const before = question.before?.metadata.deletionTimestamp === undefined ? question.before : undefined
  const owner = controllerOf(now ?? before)
  if (owner !== undefined) return { action: 'skip', note: `its controller ${owner} decides about it` }
  if (isOfNamespace(kind, now ?? before)) return { action: 'skip', note: 'a controller creates it' }
  if (now === undefined) return before === undefined ? undefined : planCreation(question, before)
  if (before === undefined) return planDeletion(question, now)
  return planChange(question, before, now)
}

function refuse(note: string): UndoStep {
  return { action: 'refuse', note }
}

function controllerOf(object: AnyObject | undefined): string | undefined {
  const owner = object?.metadata.ownerReferences?.find(({ controller }) => controller === true)
  return owner === undefined ? undefined : `${owner.kind.toLowerCase()}/${owner.name}`
}

/** Controllers create these objects in every namespace. */
function isOfNamespace(kind: ServedKind, object: AnyObject | undefined): boolean {
  const name = object?.metadata.name
  if (resourceOf(kind) === 'configmaps') return name === 'kube-root-ca.crt'
  const isDecided = object?.['imagePullSecrets'] !== undefined || object?.metadata.labels !== undefined
  return resourceOf(kind) === 'serviceaccounts' && name === 'default' && !isDecided
}

function planCreation({ kind, by }: UndoQuestion, before: AnyObject): UndoStep {
  if (by !== undefined) return refuse(`it was deleted, and the past does not show by which manager`)
  if (isSecret(kind)) return refuse('it was deleted, and the past does not have its values')
  if (resourceOf(kind) === 'jobs.batch' && isFinished(before)) return refuse('it had finished, and would run again')
  return {
    action: 'create',
    object: recreatedObject(kind, before),
    note: CREATION_NOTES[resourceOf(kind)] ?? 'new uid',
  }
}

const CREATION_NOTES: Readonly<Record<string, string>> = {
  persistentvolumeclaims: 'new uid; data in the volume is not restored',
  persistentvolumes: 'new uid; data in the volume is not restored',
}

function isFinished({ status }: AnyObject): boolean {
  const { conditions = [] } = (status ?? {}) as {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
  return conditions.some(({ type, status: value }) => (type === 'Complete' || type === 'Failed') && value === 'True')
}

/** Objects whose deletion loses more than the object. */
const NOT_DELETED: Readonly<Record<string, string>> = {
  secrets: 'the past does not have its values',
  persistentvolumeclaims: 'its volume has data',
  persistentvolumes: 'it has data',
  namespaces: 'it has objects',
  'customresourcedefinitions.apiextensions.k8s.io': 'its objects would be deleted as well',
}

function planDeletion({ kind, by, sinceMs }: UndoQuestion, now: AnyObject): UndoStep | undefined {
  if (now.metadata.deletionTimestamp !== undefined) return undefined
  if (by !== undefined) {
    const changes = changesOf(now)
    if (!changes.some(({ manager }) => manager === by)) return undefined
    const other = changes.find((change) => change.manager !== by && isSince(change, sinceMs))
    if (other !== undefined) return refuse(`${by} created it, and ${textOf(other)}`)
  }
  const reason = NOT_DELETED[resourceOf(kind)]
  if (reason !== undefined) return refuse(`it is new, but ${reason}: delete it yourself`)
  return { action: 'delete', object: now, note: '' }
}

function planChange({ kind, by, sinceMs }: UndoQuestion, before: AnyObject, now: AnyObject): UndoStep | undefined {
  const paths = changedFields(kind, before, now)
  if (paths.length === 0) return secretStep(kind, before, now)
  const recent = changesOf(now).filter((change) => isSince(change, sinceMs))
  if (by !== undefined && !recent.some(({ manager }) => manager === by)) return undefined
  if (now.metadata.deletionTimestamp !== undefined) return refuse('it is being deleted')
  const others = by === undefined ? [] : recent.filter((change) => change.manager !== by)
  for (const path of paths) {
    const other = others.find((change) => owns(change, path))
    if (other !== undefined) return refuse(`${textOf(other)} (${path.join('.')})`)
  }
  const note = [fieldsText(paths), ...(isSecret(kind) ? ['values are not restored'] : [])].join('; ')
  return { action: 'change', object: restoredObject(kind, before, now), note }
}

function textOf({ manager, timeMs }: ManagedChange): string {
  const time = timeMs === undefined ? '' : ` at ${momentOf(timeMs).text}`
  return `${manager} changed it${time}`
}

/** A Secret that was written, without a visible difference. */
function secretStep(kind: ServedKind, before: AnyObject, now: AnyObject): UndoStep | undefined {
  if (!isSecret(kind) || before.metadata.resourceVersion === now.metadata.resourceVersion) return undefined
  return refuse('it was written, and the past does not have its values')
}

const MAX_FIELDS = 3

function fieldsText(paths: readonly FieldPath[]): string {
  const shown = paths.slice(0, MAX_FIELDS).map((path) => path.join('.'))
  const more = paths.length - shown.length
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '')
}
