/** Selects the PersistentVolume for a claim. Pure. */
import type { Node, PersistentVolume, PersistentVolumeClaim } from '#apis/core/v1.ts'
import { compareText } from '#lib/go/text.ts'
import { asSelector } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { compareQuantities, parseQuantity, type Quantity, quantityValue } from '#meta/quantity.ts'

import { fitsNodeTerm } from '../nodes/fit.ts'
import { isBoundTo } from './binding.ts'
import { storageClassOf } from './volumes.ts'

type Claim = Pick<PersistentVolumeClaim, 'metadata' | 'spec'>

export function haveSameMode(volume: PersistentVolume, claim: Claim): boolean {
  return (volume.spec.volumeMode ?? 'Filesystem') === (claim.spec.volumeMode ?? 'Filesystem')
}

function haveSameAttributes(volume: PersistentVolume, claim: Claim): boolean {
  return (volume.spec.volumeAttributesClassName ?? '') === (claim.spec.volumeAttributesClassName ?? '')
}

function givesAccess(volume: PersistentVolume, claim: Claim): boolean {
  const given = volume.spec.accessModes ?? []
  return (claim.spec.accessModes ?? []).every((mode) => given.includes(mode))
}

export function capacityOf({ spec }: PersistentVolume): Quantity {
  return parseQuantity(spec.capacity?.['storage'] ?? '0')
}

export function requestOf({ spec }: Claim): Quantity {
  return parseQuantity(spec.resources?.requests?.['storage'] ?? '0')
}

/** The reason why a named volume is unsuitable, in upstream's words. */
export function mismatchOf(volume: PersistentVolume, claim: Claim): string | undefined {
  if (isBeingDeleted(volume)) return `the volume is marked for deletion ${JSON.stringify(volume.metadata.name)}`
  if (quantityValue(capacityOf(volume)) < quantityValue(requestOf(claim))) return 'requested PV is too small'
  if (storageClassOf(volume) !== storageClassOf(claim)) return 'storageClassName does not match'
  if (!haveSameAttributes(volume, claim)) return 'volumeAttributesClassName does not match'
  if (!haveSameMode(volume, claim)) return 'incompatible volumeMode'
  return givesAccess(volume, claim) ? undefined : 'incompatible accessMode'
}

/**
 * Selects a suitable volume with the fewest access modes; among those a reserved one, or the smallest. `isDelayed`: the
 * scheduler chooses, and only reserved volumes are bound without it.
 */
export function findMatch(
  claim: PersistentVolumeClaim,
  volumes: Iterable<PersistentVolume>,
  isDelayed: boolean,
): PersistentVolume | undefined {
  const isWanted = wantedBy(claim)
  let best: VolumeRank | undefined
  for (const volume of volumes) {
    const isKept = isBoundTo(volume, claim)
    if (!(isKept || (!isDelayed && isWanted(volume))) || !suits(volume, claim)) continue
    const ranked = { volume, isKept, capacity: capacityOf(volume), modes: new Set(volume.spec.accessModes).size }
    if (best === undefined || isBetter(ranked, best)) best = ranked
  }
  return best?.volume
}

/**
 * The candidates when a node is chosen for the claim's first pod: only a reserved volume if there is one, or else all
 * suitable ones, smallest first.
 */
export function delayedMatches(
  claim: PersistentVolumeClaim,
  volumes: readonly PersistentVolume[],
): readonly PersistentVolume[] {
  const large = volumes.filter((volume) => isLikeAndLarge(volume, claim))
  const kept = large.find((volume) => isBoundTo(volume, claim))
  if (kept !== undefined) return [kept]
  const isWanted = wantedBy(claim)
  return large.filter((volume) => isWanted(volume) && givesAccess(volume, claim)).sort(bySize)
}

function bySize(one: PersistentVolume, other: PersistentVolume): number {
  const order = compareQuantities(capacityOf(one), capacityOf(other))
  return order === 0 ? compareText(one.metadata.name ?? '', other.metadata.name ?? '') : order
}

/** True if the node can access the volume. */
export function isReachable({ spec }: PersistentVolume, { metadata: { labels } }: Pick<Node, 'metadata'>): boolean {
  const required = spec.nodeAffinity?.required
  if (required === undefined) return true
  // Only labels count: volumes do not select nodes by name.
  const node = { metadata: labels === undefined ? {} : { labels } }
  return (required.nodeSelectorTerms ?? []).some((term) => fitsNodeTerm(term, node))
}

/** The requirements of a volume that is not reserved for the claim. */
function wantedBy(claim: PersistentVolumeClaim): (volume: PersistentVolume) => boolean {
  const storageClass = storageClassOf(claim)
  const selector = claim.spec.selector === undefined ? undefined : asSelector(claim.spec.selector)
  return (volume) =>
    volume.spec.claimRef === undefined &&
    volume.status.phase === 'Available' &&
    storageClassOf(volume) === storageClass &&
    (selector === undefined || matchesLabels(selector, volume.metadata.labels ?? {}))
}

/** The requirements of any volume, reserved or not. */
function suits(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  return isLikeAndLarge(volume, claim) && givesAccess(volume, claim)
}

function isLikeAndLarge(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  if (isBeingDeleted(volume) || !haveSameMode(volume, claim) || !haveSameAttributes(volume, claim)) return false
  return compareQuantities(capacityOf(volume), requestOf(claim)) >= 0
}

interface VolumeRank {
  readonly volume: PersistentVolume
  readonly isKept: boolean
  readonly capacity: Quantity
  readonly modes: number
}

/** By name as a tie-breaker, so that the result is deterministic. */
function isBetter(one: VolumeRank, other: VolumeRank): boolean {
  const order =
    one.modes - other.modes ||
    Number(other.isKept) - Number(one.isKept) ||
    compareQuantities(one.capacity, other.capacity) ||
    compareText(one.volume.metadata.name ?? '', other.volume.metadata.name ?? '')
  return order < 0
}
