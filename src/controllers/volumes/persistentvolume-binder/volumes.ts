/** Reconciles a PersistentVolume. */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
} from '#apis/core/v1.ts'
import { keyOf } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

import { type Binder, settleVolume, unbind, writeVolume } from './binder.ts'
import { migratedVolume } from './changes.ts'
import { planVolume, type VolumeStep } from './plan.ts'
import { operationOn, reclaim } from './reclaim.ts'

/** `wake` enqueues a claim. */
export async function syncVolume(binder: Binder, name: string, wake: (claimKey: string) => void): Promise<void> {
  const { operations, context } = binder
  const cached = context.cache.get(PersistentVolumes, name)
  if (cached === undefined || operations.isRunning(operationOn(cached))) return
  const changed = migratedVolume(cached)
  const volume = changed === undefined ? cached : await writeVolume(binder, changed)
  const claim = await claimOf(binder, volume)
  const step = planVolume(volume, claim)
  if (step.to === 'wake') wake(keyOf(claim?.metadata.namespace, claim?.metadata.name ?? ''))
  else await take(binder, volume, claim, step)
}

async function take(
  binder: Binder,
  volume: PersistentVolume,
  claim: PersistentVolumeClaim | undefined,
  step: Exclude<VolumeStep, { to: 'wake' }>,
): Promise<void> {
  const { event } = binder.context
  switch (step.to) {
    case 'settle':
      await settleVolume(binder, volume, step.phase)
      return
    case 'unbind':
      return unbind(binder, volume)
    case 'complain':
      event(volume, step.onVolume)
      if (claim !== undefined) event(claim, step.onClaim)
      return
    case 'reclaim':
      // The Failed phase stays during a retry.
      return reclaim(binder, isReleased(volume) ? volume : await settleVolume(binder, volume, 'Released'))
  }
}

function isReleased({ status }: PersistentVolume): boolean {
  return status.phase === 'Released' || status.phase === 'Failed'
}

/**
 * The claim that the volume is bound to, by name and uid. Asks the server before it reports none: the cache may lack a
 * new claim.
 */
async function claimOf({ context }: Binder, volume: PersistentVolume): Promise<PersistentVolumeClaim | undefined> {
  const { namespace, name = '', uid = '' } = volume.spec.claimRef ?? {}
  if (uid === '') return undefined
  const known = context.cache.get(PersistentVolumeClaims, keyOf(namespace, name))
  if (known?.metadata.uid === uid || (known === undefined && isReleased(volume))) return known
  try {
    const { client, signal } = context
    const fresh = await client.get(PersistentVolumeClaims, { namespace, name }, { signal })
    return fresh.metadata.uid === uid ? fresh : undefined
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
