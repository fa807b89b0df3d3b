/** Applies the reclaim policy of a released volume: Retain, Recycle or Delete. */
import { type PersistentVolume, PersistentVolumeClaims, PersistentVolumes, Pods } from '#apis/core/v1.ts'
import { compareText } from '#lib/go/text.ts'
import { hasFinalizer, isBeingDeleted, keyOf, objectKey, removeFinalizer } from '#meta/object.ts'
import { isOver } from '#model/pods.ts'
import { hasAnnotation } from '#model/volumes/binding.ts'

import { messageOf } from '../../pod-creation.ts'
import { PODS_BY_CLAIM } from '../pods-by-claim.ts'
import { IN_TREE_FINALIZER, MIGRATED_TO, PROVISIONED_BY } from './annotations.ts'
import { type Binder, failVolume, unbind, writeVolume } from './binder.ts'
import { deleterOf } from './plugins.ts'
import { empty } from './recycler.ts'

export function operationOn({ metadata }: PersistentVolume): string {
  return `reclaim-${metadata.name}[${metadata.uid}]`
}

/** Starts the reclaim operation and returns before it ends. */
export async function reclaim(binder: Binder, volume: PersistentVolume): Promise<void> {
  const { metadata, spec } = volume
  // The CSI driver that replaces the plugin does it.
  if (hasAnnotation(volume, MIGRATED_TO) && metadata.annotations?.[MIGRATED_TO] !== '') return
  switch (spec.persistentVolumeReclaimPolicy) {
    case 'Retain':
      return
    case 'Recycle':
      binder.operations.start(operationOn(volume), () => recycle(binder, metadata.name ?? ''))
      return
    case 'Delete':
      binder.operations.start(operationOn(volume), () => remove(binder, volume))
      return
    default:
      return failVolume(binder, volume, {
        type: 'Warning',
        reason: 'VolumeUnknownReclaimPolicy',
        message: 'Volume has unrecognized PersistentVolumeReclaimPolicy',
      })
  }
}

/** Whether the claim is gone or has another volume. */
function isFree({ context: { cache } }: Binder, { metadata, spec: { claimRef } }: PersistentVolume): boolean {
  if ((claimRef?.uid ?? '') === '') return false
  const claim = cache.get(PersistentVolumeClaims, keyOf(claimRef?.namespace, claimRef?.name ?? ''))
  if (claim?.metadata.uid !== claimRef?.uid) return true
  const { volumeName = '' } = claim?.spec ?? {}
  return volumeName !== '' && volumeName !== metadata.name
}

/** Deletes the volume and its data. An external driver deletes its own volumes. */
async function remove(binder: Binder, volume: PersistentVolume): Promise<void> {
  const { client, folders, signal } = binder.context
  const { name = '' } = volume.metadata
  const deleter = deleterOf(volume)
  const failure = (message: string): Promise<void> =>
    failVolume(binder, volume, { type: 'Warning', reason: 'VolumeFailedDelete', message })
  if (deleter.by === 'none') return failure(deleter.why)
  if (deleter.by === 'driver') return
  const fresh = await client.get(PersistentVolumes, { name }, { signal })
  if (!isFree(binder, fresh) || isDone(fresh)) return
  try {
    await folders.remove(temporaryFolder(fresh))
  } catch (error) {
    await failure(messageOf(error))
    throw error
  }
  const changed = { ...fresh, metadata: { ...fresh.metadata } }
  if (removeFinalizer(changed, IN_TREE_FINALIZER)) await writeVolume(binder, changed)
  await client.delete(PersistentVolumes, { name }, { signal })
}

/** A volume of this controller loses its finalizer once its directory is gone. */
function isDone(volume: PersistentVolume): boolean {
  return isBeingDeleted(volume) && hasAnnotation(volume, PROVISIONED_BY) && !hasFinalizer(volume, IN_TREE_FINALIZER)
}

/** The directory; throws if it is outside the temporary directories. */
function temporaryFolder({ metadata, spec: { hostPath } }: PersistentVolume): string {
  if (hostPath === undefined) {
    const nothing = 'spec.PersistentVolumeSource.HostPath is nil'
    throw new Error(`failed to create deleter for volume "${metadata.name}": ${nothing}`)
  }
  const { path } = hostPath
  if (/^\/tmp\/./.test(path) && !path.split('/').includes('..')) return path
  throw new Error(`host_path deleter only supports /tmp/.+ but received provided ${path}`)
}

/** Recycles the volume. A failure causes an event and a retry at the next reconcile. */
async function recycle(binder: Binder, name: string): Promise<void> {
  const { context } = binder
  const { cache, client, event, signal } = context
  const volume = await client.get(PersistentVolumes, { name }, { signal })
  if (!isFree(binder, volume)) return
  const { namespace, name: claimName = '' } = volume.spec.claimRef ?? {}
  const claimKey = keyOf(namespace, claimName)
  const users = cache.by(Pods, PODS_BY_CLAIM, claimKey).filter((pod) => !isOver(pod))
  // If another claim has the name by now, the pods use that one.
  if (users.length > 0 && cache.get(PersistentVolumeClaims, claimKey) === undefined) {
    const message = `Volume is used by pods: ${users.map(objectKey).toSorted(compareText).join(',')}`
    return event(volume, { type: 'Normal', reason: 'VolumeFailedRecycle', message })
  }
  const failure = (message: string): Promise<void> =>
    failVolume(binder, volume, { type: 'Warning', reason: 'VolumeFailedRecycle', message })
  const { hostPath, nfs } = volume.spec
  if (hostPath === undefined && nfs === undefined) return failure('No recycler plugin found for the volume!')
  try {
    await empty(volume, context)
  } catch (error) {
    if (signal.aborted) throw error
    return failure(`Recycle failed: ${messageOf(error)}`)
  }
  event(volume, { type: 'Normal', reason: 'VolumeRecycled', message: 'Volume recycled' })
  await unbind(binder, volume)
}
