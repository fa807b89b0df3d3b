/** What the parts of the binder share: what is known of claims and volumes, what is under way, and the writes of a binding. */
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
import { Ledger } from './ledger.ts'

export interface Binder {
  readonly context: ControllerContext
  readonly claims: Ledger<PersistentVolumeClaim>
  readonly volumes: Ledger<PersistentVolume>
  readonly operations: Operations
}

export const binderOf: (context: ControllerContext) => Binder = perRun((context): Binder => {
  const { cache, clock, log, signal } = context
  return {
    context,
    claims: new Ledger(PersistentVolumeClaims, cache),
    volumes: new Ledger(PersistentVolumes, cache),
    operations: new Operations({
      clock,
      onError(error, operation) {
        if (!signal.aborted) log.error(error, 'Volume operation failed', { operation })
      },
    }),
  }
})

/**
 * The volume first, so that nobody else takes it, then the claim; each in two writes, spec and status. What is missing after
 * a failure is written the next time the claim is looked at.
 */
export async function bind(binder: Binder, volume: PersistentVolume, claim: PersistentVolumeClaim): Promise<void> {
  const { context, volumes, claims } = binder
  const withClaim = boundVolume(volume, claim)
  const taken = withClaim === undefined ? volume : await volumes.write(withClaim, context)
  const bound = await settleVolume(binder, taken, 'Bound')
  const withVolume = boundClaim(claim, bound)
  const given = withVolume === undefined ? claim : await claims.write(withVolume, context)
  await settleClaim(binder, given, 'Bound', bound)
}

/** Takes back what was done, or, where a user had kept the volume for its claim, leaves it kept. */
export async function unbind(binder: Binder, volume: PersistentVolume): Promise<void> {
  const free = await binder.volumes.write(unboundVolume(volume), binder.context)
  await settleVolume(binder, free, 'Available')
}

export async function settleClaim(
  { claims, context }: Binder,
  claim: PersistentVolumeClaim,
  phase: 'Pending' | 'Bound' | 'Lost',
  volume?: PersistentVolume,
): Promise<PersistentVolumeClaim> {
  const changed = claimInPhase(claim, phase, volume)
  return changed === undefined ? claim : claims.write(changed, context, 'status')
}

export async function settleVolume(
  { volumes, context }: Binder,
  volume: PersistentVolume,
  phase: string,
): Promise<PersistentVolume> {
  const changed = volumeInPhase(volume, phase)
  return changed === undefined ? volume : volumes.write(changed, context, 'status')
}

/** Says why it failed once, and in its status for as long as it has. */
export async function failVolume(
  { volumes, context }: Binder,
  volume: PersistentVolume,
  note: EventNote,
): Promise<void> {
  const changed = volumeInPhase(volume, 'Failed', note.message)
  if (changed === undefined) return
  context.event(await volumes.write(changed, context, 'status'), note)
}
