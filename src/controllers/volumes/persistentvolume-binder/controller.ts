/**
 * PersistentVolume binder: binds claims to volumes, provisions missing volumes, and reclaims released ones. A binding
 * is a pair of objects that refer to each other. Either may be written first, even by users; the next reconcile
 * completes or undoes a partial binding.
 */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  Nodes,
  Pods,
} from '#apis/core/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import { keyOf, objectKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { EVENTS, related, rule } from '#reconcile/controller.ts'
import { runPeriodically } from '#reconcile/periodic.ts'

import { type Controller, defineController } from '../../controller.ts'
import { binderOf } from './binder.ts'
import { syncClaim } from './claims.ts'
import { countBindings } from './counts.ts'
import { syncVolume } from './volumes.ts'

const CLAIM = 'claim:'
const VOLUME = 'volume:'

const claimKey = (key: string): string => CLAIM + key
const volumeKey = (name: string): string => VOLUME + name

export const persistentVolumeBinderController: Controller = defineController({
  name: 'persistentvolume-binder-controller',
  aliases: ['persistentvolume-binder'],
  account: 'persistent-volume-binder',
  component: 'persistentvolume-controller',
  // One worker: two claims never search for a volume at the same time.
  workers: 1,
  watches: [
    related(PersistentVolumeClaims, (claim) => [claimKey(objectKey(claim))]),
    related(PersistentVolumes, ({ metadata }) => [volumeKey(metadata.name ?? '')]),
    // A deleted claim enqueues its volume, and vice versa.
    { ...related(PersistentVolumeClaims, volumeOf, () => false), skipsAdded: true },
    { ...related(PersistentVolumes, claimOf, () => false), skipsAdded: true },
  ],
  reads: [StorageClasses, Pods, Nodes],
  rules: [
    rule('', 'persistentvolumes', 'get list watch create update delete'),
    rule('', 'persistentvolumeclaims', 'get list watch update'),
    rule('', 'persistentvolumes/status persistentvolumeclaims/status', 'update'),
    rule('', 'pods', 'get list watch create delete'),
    rule('storage.k8s.io', 'storageclasses', 'get list watch'),
    rule('', 'nodes', 'list watch'),
    rule('', 'events', 'watch'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const binder = binderOf(context)
    if (key.startsWith(CLAIM)) return syncClaim(binder, key.slice(CLAIM.length))
    return syncVolume(binder, key.slice(VOLUME.length), (claim) => context.enqueue(claimKey(claim))).catch(
      ignoringAbsence,
    )
  },

  /** Periodic resync, for new classes, released volumes and retries. */
  async run(context) {
    const { cache, settings, enqueue } = context
    countBindings(context)
    await runPeriodically(context, settings['pvclaimbinder-sync-period'], 'Failed to look at volumes', () => {
      for (const claim of cache.list(PersistentVolumeClaims)) enqueue(claimKey(objectKey(claim)))
      for (const { metadata } of cache.list(PersistentVolumes)) enqueue(volumeKey(metadata.name ?? ''))
    })
    await binderOf(context).operations.settled()
  },
})

/** Ignores a volume that was deleted during the reconcile. */
function ignoringAbsence(error: unknown): void {
  if (!isNotFound(error)) throw error
}

function volumeOf({ spec }: PersistentVolumeClaim): string[] {
  const { volumeName = '' } = spec
  return volumeName === '' ? [] : [volumeKey(volumeName)]
}

function claimOf({ spec: { claimRef } }: PersistentVolume): string[] {
  return claimRef === undefined ? [] : [claimKey(keyOf(claimRef.namespace, claimRef.name ?? ''))]
}
