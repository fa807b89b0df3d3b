/**
 * What the parts of the binder share: what is under way, and the writes of a binding. What was written is in the cache when the
 * write returns: else a claim would be looked at again before anybody has heard of its volume, and get a second one.
 */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
} from '#apis/core/v1.ts'
import type { EventNote } from '#client/event-recorder.ts'
import { boundVolume } from '#model/volume-binding.ts'

import { type ControllerContext, perRun } from '../controller.ts'
import { Operations } from '../operations.ts'
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
        if (!signal.aborted) log.error(error, 'Volume operation failed', { operation })
      },
    }),
  }
})

/** Guarded by the version it was made from. */
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
 * The volume first, so that nobody else takes it, then the claim; each in two writes, spec and status. What is missing after
 * a failure is written the next time the claim is looked at.
 */
export async function bind(binder: Binder, volume: PersistentVolume, claim: PersistentVolumeClaim): Promise<void> {
  const withClaim = boundVolume(volume, claim)
  const taken = withClaim === undefined ? volume : await writeVolume(binder, withClaim)
  const bound = await settleVolume(binder, taken, 'Bound')
  const withVolume = boundClaim(claim, bound)
  const given = withVolume === undefined ? claim : await writeClaim(binder, withVolume)
  await settleClaim(binder, given, 'Bound', bound)
}

/** Takes back what was done, or, where a user had kept the volume for its claim, leaves it kept. */
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

/** Says why it failed once, and in its status for as long as it has. */
export async function failVolume(binder: Binder, volume: PersistentVolume, note: EventNote): Promise<void> {
  const changed = volumeInPhase(volume, 'Failed', note.message)
  if (changed === undefined) return
  binder.context.event(await writeVolume(binder, changed, 'status'), note)
}
