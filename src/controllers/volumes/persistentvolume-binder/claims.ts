/** Reconciles a PersistentVolumeClaim. */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  Pods,
} from '#apis/core/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import { compareText } from '#lib/go/text.ts'
import { keyOf, objectKey } from '#meta/object.ts'
import { newestDefault } from '#model/newest-default.ts'
import { isOver, isScheduled } from '#model/pods.ts'
import { DEFAULT_STORAGE_CLASS_MARKS, storageClassOf } from '#model/volumes/volumes.ts'
import type { CacheIndex } from '#reconcile/cache.ts'

import { PODS_BY_CLAIM } from '../pods-by-claim.ts'
import { bind, type Binder, settleClaim, writeClaim } from './binder.ts'
import { migratedClaim } from './changes.ts'
import { type ClaimStep, type ClaimView, planClaim } from './plan.ts'
import { provision } from './provisioning.ts'

/** Volumes by the key of their claim, bound or reserved. */
const TAKEN: CacheIndex<PersistentVolume> = {
  name: 'claim',
  of: ({ spec: { claimRef } }) => (claimRef === undefined ? [] : [keyOf(claimRef.namespace, claimRef.name ?? '')]),
}
/** Volumes without a claim, by storage class. */
const FREE: CacheIndex<PersistentVolume> = {
  name: 'free',
  of: (volume) => (volume.spec.claimRef === undefined ? [storageClassOf(volume)] : []),
}

export async function syncClaim(binder: Binder, key: string): Promise<void> {
  const cached = binder.context.cache.get(PersistentVolumeClaims, key)
  if (cached === undefined) return
  const changed = migratedClaim(cached)
  const claim = changed === undefined ? cached : await writeClaim(binder, changed)
  await take(binder, claim, planClaim(claim, viewOf(binder)))
}

async function take(binder: Binder, claim: PersistentVolumeClaim, step: ClaimStep): Promise<void> {
  const { context } = binder
  switch (step.to) {
    case 'bind':
      return bind(binder, step.volume, claim)
    case 'assign': {
      const { storageClassName } = step
      const assigned = { ...claim, spec: { ...claim.spec, storageClassName } }
      await writeClaim(binder, assigned).catch((error: unknown) => {
        context.meters.family('retroactive_storageclass_errors_total').labels().inc()
        throw error
      })
      context.meters.family('retroactive_storageclass_total').labels().inc()
      return
    }
    case 'provision':
      return provision(binder, claim)
    case 'wait':
      if (step.note !== undefined) context.event(claim, step.note)
      await settleClaim(binder, claim, 'Pending')
      return
    case 'lose':
      if (claim.status.phase === 'Lost') return
      context.event(await settleClaim(binder, claim, 'Lost'), step.note)
      return
    case 'refuse':
      context.event(claim, step.note)
      throw new Error(step.error)
  }
}

function viewOf({ context: { cache } }: Binder): ClaimView {
  return {
    volume: (name) => cache.get(PersistentVolumes, name),
    *candidates(claim) {
      yield* cache.by(PersistentVolumes, TAKEN, objectKey(claim))
      yield* cache.by(PersistentVolumes, FREE, storageClassOf(claim))
    },
    storageClass: (name) => cache.get(StorageClasses, name),
    defaultClass: () => newestDefault([...cache.list(StorageClasses)], DEFAULT_STORAGE_CLASS_MARKS)?.metadata.name,
    waitingPods(claim) {
      const pods = cache.by(Pods, PODS_BY_CLAIM, objectKey(claim)).filter((pod) => !isOver(pod) && !isScheduled(pod))
      return pods.map(({ metadata }) => metadata.name ?? '').toSorted(compareText)
    },
  }
}
