/**
 * Expander: handles claims that request more storage. It expands nothing itself: it emits an event about an external
 * resizer, and annotates claims of migrated in-tree plugins for their CSI driver.
 */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
} from '#apis/core/v1.ts'
import { objectKey } from '#meta/object.ts'
import { compareQuantities, parseQuantity } from '#meta/quantity.ts'
import { migratedSource } from '#model/volumes/csi-migration.ts'
import { PRE_RESIZE_CAPACITY } from '#model/volumes/volumes.ts'
import { EVENTS, related, rule } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../controller.ts'
import { messageOf } from '../pod-creation.ts'

const RESIZER = 'volume.kubernetes.io/storage-resizer'

export const persistentVolumeExpanderController: Controller = defineController({
  name: 'persistentvolume-expander-controller',
  aliases: ['persistentvolume-expander'],
  account: 'expand-controller',
  component: 'volume_expand',
  workers: 10,
  watches: [related(PersistentVolumeClaims, keysOf, hasGrown)],
  rules: [
    rule('', 'persistentvolumes', 'get list watch update patch'),
    rule('', 'persistentvolumeclaims/status', 'update patch'),
    rule('', 'persistentvolumeclaims', 'get list watch'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const { cache, client, signal, event } = context
    const claim = cache.get(PersistentVolumeClaims, key)
    if (claim === undefined) return
    const volume = await client.get(PersistentVolumes, { name: claim.spec.volumeName ?? '' }, { signal })
    if (!isOf(volume, claim)) throw new Error(`persistent Volume is not bound to PVC being updated : ${key}`)
    const isWaiting = volume.metadata.annotations?.[PRE_RESIZE_CAPACITY] !== undefined
    if (!isWaiting && compareQuantities(requestOf(claim), capacityOf(claim)) <= 0) return
    const source = migratedSource(volume.spec)
    const message =
      source === undefined
        ? 'waiting for an external controller to expand this PVC'
        : `CSI migration enabled for ${source.plugin}; waiting for external resizer to expand the pvc`
    event(claim, { type: 'Normal', reason: 'ExternalExpanding', message })
    if (source !== undefined) await annotateForResizer(claim, source.driver, context)
  },
})

function keysOf(claim: PersistentVolumeClaim): string[] {
  return claim.status.phase === 'Bound' ? [objectKey(claim)] : []
}

/** The request or the capacity increased. */
function hasGrown(claim: PersistentVolumeClaim, old: PersistentVolumeClaim): boolean {
  return (
    compareQuantities(requestOf(claim), requestOf(old)) > 0 || compareQuantities(capacityOf(claim), capacityOf(old)) > 0
  )
}

function requestOf({ spec }: PersistentVolumeClaim): ReturnType<typeof parseQuantity> {
  return parseQuantity(spec.resources.requests?.['storage'] ?? '0')
}

function capacityOf({ status }: PersistentVolumeClaim): ReturnType<typeof parseQuantity> {
  return parseQuantity(status.capacity?.['storage'] ?? '0')
}

function isOf({ spec: { claimRef } }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  return claimRef?.namespace === metadata.namespace && claimRef?.uid === metadata.uid
}

async function annotateForResizer(
  claim: PersistentVolumeClaim,
  driver: string,
  { client, signal, event }: ControllerContext,
): Promise<void> {
  const { namespace, name = '', resourceVersion, annotations = {} } = claim.metadata
  if (annotations[RESIZER] === driver) return
  try {
    const value = { metadata: { resourceVersion, annotations: { [RESIZER]: driver } } }
    const where = { namespace, name, subresource: 'status' }
    await client.patch(PersistentVolumeClaims, where, { type: 'strategic', value }, { signal })
  } catch (error) {
    const message = `error setting resizer annotation to pvc ${objectKey(claim)}, with error ${messageOf(error)}`
    event(claim, { type: 'Warning', reason: 'ExternalExpanding', message })
    throw new Error(message, { cause: error })
  }
}
