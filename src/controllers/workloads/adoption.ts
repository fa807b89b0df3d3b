/**
 * Adoption and release by selector: adopts matching objects without a controller, releases owned ones that no longer
 * match. Writes name the uid, so another object of the same name is never touched. Adoption first confirms with the API
 * server that the owner is not being deleted.
 */
import type { Kind } from '#apis/kinds.ts'
import { controllerOf, controllerRef, isBeingDeleted, isControlledBy, type KubeObject } from '#meta/object.ts'
import { isInvalid, isNotFound } from '#meta/status.ts'

import type { ControllerContext } from '../controller.ts'

export interface Claim<T extends KubeObject> {
  readonly owner: KubeObject
  readonly ownerKind: Kind
  readonly kind: Kind<T>
  readonly matches: (object: T) => boolean
  /** Removed on release: Jobs leave finalizers on their pods. */
  readonly finalizer?: string
}

/** Returns the candidates, in order, that the owner controls afterwards. */
export async function claim<T extends KubeObject>(
  { client, signal }: ControllerContext,
  { owner, ownerKind, kind, matches, finalizer }: Claim<T>,
  candidates: readonly T[],
): Promise<T[]> {
  const mine: T[] = []
  let mayAdopt: Promise<void> | undefined
  const patch = (object: T, value: object): Promise<unknown> => {
    const { namespace, name = '' } = object.metadata
    return client.patch(kind, { namespace, name }, { type: 'strategic', value }, { signal })
  }
  for (const object of candidates) {
    const { uid } = object.metadata
    if (isControlledBy(object, owner)) {
      if (matches(object)) mine.push(object)
      else if (!isBeingDeleted(owner)) await ignoring(patch(object, releasePatch(owner, uid, finalizer)))
    } else if (controllerOf(object) === undefined && matches(object)) {
      if (isBeingDeleted(owner) || isBeingDeleted(object)) continue
      mayAdopt ??= checkAlive({ client, signal }, owner, ownerKind)
      await mayAdopt
      const reference = controllerRef(owner, ownerKind)
      const finalizers = finalizer === undefined ? {} : { finalizers: [finalizer] }
      if (await ignoring(patch(object, { metadata: { uid, ownerReferences: [reference], ...finalizers } })))
        mine.push(object)
    }
  }
  return mine
}

function releasePatch(owner: KubeObject, uid: string | undefined, finalizer: string | undefined): object {
  const ownerReferences = [{ $patch: 'delete', uid: owner.metadata.uid }]
  const finalizers = finalizer === undefined ? {} : { '$deleteFromPrimitiveList/finalizers': [finalizer] }
  return { metadata: { uid, ownerReferences, ...finalizers } }
}

/** Reads the owner from the server: the cache may be stale, and a deleted owner must not adopt. */
async function checkAlive(
  { client, signal }: Pick<ControllerContext, 'client' | 'signal'>,
  owner: KubeObject,
  kind: Kind,
): Promise<void> {
  const { namespace, name = '', uid } = owner.metadata
  const fresh = await client.get(kind, { namespace, name }, { signal })
  if (fresh.metadata.uid !== uid) {
    throw new Error(`original ${kind.kind} ${namespace}/${name} is gone: got uid ${fresh.metadata.uid}, wanted ${uid}`)
  }
  if (isBeingDeleted(fresh)) {
    throw new Error(`${namespace}/${name} has just been deleted at ${fresh.metadata.deletionTimestamp}`)
  }
}

/** Returns whether the write succeeded. An object that is gone or replaced is ignored. */
async function ignoring(writing: Promise<unknown>): Promise<boolean> {
  try {
    await writing
    return true
  } catch (error) {
    if (isNotFound(error) || isInvalid(error)) return false
    throw error
  }
}
