/** Decides the next step for a claim or volume, in upstream's order and with its texts. Pure. */
import type { PersistentVolume, PersistentVolumeClaim } from '#apis/core/v1.ts'
import type { StorageClass } from '#apis/storage/v1.ts'
import type { EventNote } from '#client/events/event-recorder.ts'
import { keyOf, objectKey } from '#meta/object.ts'
import { BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE, hasAnnotation, isBoundTo } from '#model/volumes/binding.ts'
import { findMatch, haveSameMode, mismatchOf } from '#model/volumes/matching.ts'
import { hasStorageClass, storageClassOf } from '#model/volumes/volumes.ts'

import { PROVISIONED_BY } from './annotations.ts'

/** The input for a claim's step. */
export interface ClaimView {
  volume(name: string): PersistentVolume | undefined
  /** Volumes that are reserved for the claim, or free and of its class; further ones do no harm. */
  candidates(claim: PersistentVolumeClaim): Iterable<PersistentVolume>
  storageClass(name: string): StorageClass | undefined
  defaultClass(): string | undefined
  /** Names of unscheduled pods that use the claim. */
  waitingPods(claim: PersistentVolumeClaim): readonly string[]
}

export type ClaimStep =
  | { readonly to: 'bind'; readonly volume: PersistentVolume }
  /** Waits; the event names the reason. */
  | { readonly to: 'wait'; readonly note?: EventNote }
  /** The claim becomes Lost, with an event. */
  | { readonly to: 'lose'; readonly note: EventNote }
  | { readonly to: 'assign'; readonly storageClassName: string }
  | { readonly to: 'provision' }
  | { readonly to: 'refuse'; readonly note: EventNote; readonly error: string }

const warning = (reason: string, message: string): EventNote => ({ type: 'Warning', reason, message })
const normal = (reason: string, message: string): EventNote => ({ type: 'Normal', reason, message })

export function planClaim(claim: PersistentVolumeClaim, view: ClaimView): ClaimStep {
  if (hasAnnotation(claim, BIND_COMPLETED)) return planBound(claim, view)
  return (claim.spec.volumeName ?? '') === '' ? planOpen(claim, view) : planNamed(claim, view)
}

/** A claim without a volume name. */
function planOpen(claim: PersistentVolumeClaim, view: ClaimView): ClaimStep {
  const className = storageClassOf(claim)
  const isDelayed = view.storageClass(className)?.volumeBindingMode === 'WaitForFirstConsumer'
  const volume = findMatch(claim, view.candidates(claim), isDelayed)
  if (volume !== undefined) return { to: 'bind', volume }
  const storageClassName = hasStorageClass(claim) ? undefined : view.defaultClass()
  if (storageClassName !== undefined) return { to: 'assign', storageClassName }
  if (isDelayed && !hasAnnotation(claim, SELECTED_NODE)) return { to: 'wait', note: waitingNote(claim, view) }
  if (className !== '') return { to: 'provision' }
  const message = 'no persistent volumes available for this claim and no storage class is set'
  return { to: 'wait', note: normal('FailedBinding', message) }
}

function waitingNote(claim: PersistentVolumeClaim, view: ClaimView): EventNote {
  const pods = view.waitingPods(claim)
  if (pods.length === 0) {
    return normal('WaitForFirstConsumer', 'waiting for first consumer to be created before binding')
  }
  return normal('WaitForPodScheduled', `waiting for pod${pods.length > 1 ? 's' : ''} ${pods.join(',')} to be scheduled`)
}

/** A claim that names its volume. */
function planNamed(claim: PersistentVolumeClaim, view: ClaimView): ClaimStep {
  const name = claim.spec.volumeName ?? ''
  const volume = view.volume(name)
  if (volume === undefined) return { to: 'wait' }
  const { claimRef } = volume.spec
  if (claimRef === undefined) {
    const problem = mismatchOf(volume, claim)
    if (problem === undefined) return { to: 'bind', volume }
    const message = `Cannot bind to requested volume ${JSON.stringify(name)}: ${problem}`
    return { to: 'wait', note: warning('VolumeMismatch', message) }
  }
  if (isBoundTo(volume, claim)) return { to: 'bind', volume }
  const note = warning('FailedBinding', `volume ${JSON.stringify(name)} already bound to a different claim.`)
  if (!hasAnnotation(claim, BOUND_BY_CONTROLLER)) return { to: 'wait', note }
  const other = keyOf(claimRef.namespace, claimRef.name ?? '')
  const binding = `invalid binding of claim "${objectKey(claim)}" to volume "${name}"`
  return { to: 'refuse', note, error: `${binding}: volume already claimed by "${other}"` }
}

/** A claim that was bound before: it can never get another volume. */
function planBound(claim: PersistentVolumeClaim, view: ClaimView): ClaimStep {
  const { volumeName = '' } = claim.spec
  const lost = (what: string): ClaimStep => ({
    to: 'lose',
    note: warning('ClaimLost', `Bound claim has lost ${what}. Data on the volume is lost!`),
  })
  if (volumeName === '') return lost('reference to PersistentVolume')
  const volume = view.volume(volumeName)
  if (volume === undefined) return lost('its PersistentVolume')
  const { claimRef } = volume.spec
  if (claimRef === undefined || claimRef.uid === claim.metadata.uid) return { to: 'bind', volume }
  const message = 'Two claims are bound to the same volume, this one is bound incorrectly'
  return { to: 'lose', note: warning('ClaimMisbound', message) }
}

export type VolumeStep =
  | { readonly to: 'settle'; readonly phase: 'Available' | 'Bound' }
  /** The claim is gone or has another volume: set Released, then apply the reclaim policy. */
  | { readonly to: 'reclaim' }
  /** The claim has to be bound first. */
  | { readonly to: 'wake' }
  | { readonly to: 'complain'; readonly onVolume: EventNote; readonly onClaim: EventNote }
  | { readonly to: 'unbind' }

/** `claim` matches the claimRef by name and uid; undefined if there is none. */
export function planVolume(volume: PersistentVolume, claim: PersistentVolumeClaim | undefined): VolumeStep {
  const { claimRef, persistentVolumeReclaimPolicy: policy } = volume.spec
  if ((claimRef?.uid ?? '') === '') return { to: 'settle', phase: 'Available' }
  if (claim === undefined) return { to: 'reclaim' }
  const { volumeName = '' } = claim.spec
  if (volumeName === volume.metadata.name) return { to: 'settle', phase: 'Bound' }
  if (volumeName === '') return haveSameMode(volume, claim) ? { to: 'wake' } : complaint(volume, claim)
  // It was provisioned for a claim that has another volume by now.
  if (hasAnnotation(volume, PROVISIONED_BY) && policy === 'Delete') return { to: 'reclaim' }
  return { to: 'unbind' }
}

function complaint(volume: PersistentVolume, claim: PersistentVolumeClaim): VolumeStep {
  const noteFor = (volumeName: string, claimName: string): EventNote =>
    warning(
      'VolumeMismatch',
      `Cannot bind PersistentVolume${volumeName} to requested PersistentVolumeClaim${claimName} due to incompatible volumeMode.`,
    )
  const quoted = (name = ''): string => ` ${JSON.stringify(name)}`
  return {
    to: 'complain',
    onVolume: noteFor('', quoted(claim.metadata.name)),
    onClaim: noteFor(quoted(volume.metadata.name), ''),
  }
}
