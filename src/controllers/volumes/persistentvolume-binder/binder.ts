/**
 * Shared state and writes of the binder. A write updates the cache before it returns; otherwise the next reconcile
 * could bind a second volume to a claim.
 */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
} from '#apis/core/v1.ts'
import type { EventNote } from '#client/events/event-recorder.ts'
import { boundVolume } from '#model/volumes/binding.ts'
import { Operations } from '#reconcile/operations.ts'

import { perRun } from '../../controller.ts'
import { type ControllerContext } from '../../controller.ts'
import { boundClaim, claimInPhase, unboundVolume, volumeInPhase } from './changes.ts'

export interface Binder {
  readonly context: ControllerContext
  readonly operations: Operations
}

export const binderOf: (context: ControllerContext) => Binder = perRun((context): Binder => {
  const { clock, log, signal } = context
  return {
    context,
    operations: new Operations({
      clock,
      onError(error, operation) {
        if (!signal.aborted) log.error(error, 'Failed to run volume operation', { operation })
      },
    }),
  }
})

/** With a resourceVersion precondition. */
export function writeClaim(
  { context: { client, signal } }: Binder,
  claim: PersistentVolumeClaim,
  subresource?: 'status',
): Promise<PersistentVolumeClaim> {
  return client.update(PersistentVolumeClaims, claim, { signal, ...(subresource !== undefined && { subresource }) })
}

export function writeVolume(
  { context: { client, signal } }: Binder,
  volume: PersistentVolume,
  subresource?: 'status',
): Promise<PersistentVolume> {
  return client.update(PersistentVolumes, volume, { signal, ...(subresource !== undefined && { subresource }) })
}

/**
 * Writes the volume first, so that no other claim takes it, then the claim, each with spec and status. The next
 * reconcile completes a partial binding.
 */
export async function bind(binder: Binder, volume: PersistentVolume, claim: PersistentVolumeClaim): Promise<void> {
  const withClaim = boundVolume(volume, claim)
  const taken = withClaim === undefined ? volume : await writeVolume(binder, withClaim)
  const bound = await settleVolume(binder, taken, 'Bound')
  const withVolume = boundClaim(claim, bound)
  const given = withVolume === undefined ? claim : await writeClaim(binder, withVolume)
  await settleClaim(binder, given, 'Bound', bound)
}

/** Undoes a binding; a volume that a user reserved for its claim stays reserved. */
export async function unbind(binder: Binder, volume: PersistentVolume): Promise<void> {
  const free = await writeVolume(binder, unboundVolume(volume))
  await settleVolume(binder, free, 'Available')
}

export async function settleClaim(
  binder: Binder,
  claim: PersistentVolumeClaim,
  phase: 'Pending' | 'Bound' | 'Lost',
  volume?: PersistentVolume,
): Promise<PersistentVolumeClaim> {
  const changed = claimInPhase(claim, phase, volume)
  return changed === undefined ? claim : writeClaim(binder, changed, 'status')
}

export async function settleVolume(binder: Binder, volume: PersistentVolume, phase: string): Promise<PersistentVolume> {
  const changed = volumeInPhase(volume, phase)
  return changed === undefined ? volume : writeVolume(binder, changed, 'status')
}

/** Records the event once and keeps the Failed phase. */
export async function failVolume(binder: Binder, volume: PersistentVolume, note: EventNote): Promise<void> {
  const changed = volumeInPhase(volume, 'Failed', note.message)
  if (changed === undefined) return
  binder.context.event(await writeVolume(binder, changed, 'status'), note)
}
