/** Which volume a claim gets. Pure. */
import type { Node, PersistentVolume, PersistentVolumeClaim } from '#apis/core/v1.ts'
import { compareText } from '#lib/go-text.ts'
import { asSelector } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { compareQuantities, parseQuantity, type Quantity, quantityValue } from '#meta/quantity.ts'

import { fitsNodeTerm } from './node-fit.ts'
import { isBoundTo } from './volume-binding.ts'
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

/** Why a volume that a claim asks for by name is not for it, in upstream's words. */
export function mismatchOf(volume: PersistentVolume, claim: Claim): string | undefined {
  if (isBeingDeleted(volume)) return `the volume is marked for deletion ${JSON.stringify(volume.metadata.name)}`
  if (quantityValue(capacityOf(volume)) < quantityValue(requestOf(claim))) return 'requested PV is too small'
  if (storageClassOf(volume) !== storageClassOf(claim)) return 'storageClassName does not match'
  if (!haveSameAttributes(volume, claim)) return 'volumeAttributesClassName does not match'
  if (!haveSameMode(volume, claim)) return 'incompatible volumeMode'
  return givesAccess(volume, claim) ? undefined : 'incompatible accessMode'
}

/**
 * Of the volumes that would do, one with as few access modes as can be; of those one that is kept for the claim, or else
 * the smallest. `isDelayed`: the scheduler chooses, and only what is kept for the claim is bound without it.
 */
export function findMatch(
  claim: PersistentVolumeClaim,
  volumes: Iterable<PersistentVolume>,
  isDelayed: boolean,
): PersistentVolume | undefined {
  const isWanted = wantedBy(claim)
  let best: Ranked | undefined
  for (const volume of volumes) {
    const isKept = isBoundTo(volume, claim)
    if (!(isKept || (!isDelayed && isWanted(volume))) || !suits(volume, claim)) continue
    const ranked = { volume, isKept, capacity: capacityOf(volume), modes: new Set(volume.spec.accessModes).size }
    if (best === undefined || isBetter(ranked, best)) best = ranked
  }
  return best?.volume
}

/**
 * What comes into question when a node is chosen for the claim's first pod: only what is kept for it, where something is,
 * or else whatever would do, the smallest first.
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

/** Whether the node can get at the volume. */
export function isReachable({ spec }: PersistentVolume, { metadata: { labels } }: Pick<Node, 'metadata'>): boolean {
  const required = spec.nodeAffinity?.required
  if (required === undefined) return true
  // Only labels count: a volume does not know nodes by name.
  const node = { metadata: labels === undefined ? {} : { labels } }
  return (required.nodeSelectorTerms ?? []).some((term) => fitsNodeTerm(term, node))
}

/** What a volume must be that nobody has kept for the claim. */
function wantedBy(claim: PersistentVolumeClaim): (volume: PersistentVolume) => boolean {
  const storageClass = storageClassOf(claim)
  const selector = claim.spec.selector === undefined ? undefined : asSelector(claim.spec.selector)
  return (volume) =>
    volume.spec.claimRef === undefined &&
    volume.status.phase === 'Available' &&
    storageClassOf(volume) === storageClass &&
    (selector === undefined || matchesLabels(selector, volume.metadata.labels ?? {}))
}

/** What any volume must be, kept or not. */
function suits(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  return isLikeAndLarge(volume, claim) && givesAccess(volume, claim)
}

function isLikeAndLarge(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  if (isBeingDeleted(volume) || !haveSameMode(volume, claim) || !haveSameAttributes(volume, claim)) return false
  return compareQuantities(capacityOf(volume), requestOf(claim)) >= 0
}

interface Ranked {
  readonly volume: PersistentVolume
  readonly isKept: boolean
  readonly capacity: Quantity
  readonly modes: number
}

/** By name where nothing else tells: the same volumes give the same answer. */
function isBetter(one: Ranked, other: Ranked): boolean {
  const order =
    one.modes - other.modes ||
    Number(other.isKept) - Number(one.isKept) ||
    compareQuantities(one.capacity, other.capacity) ||
    compareText(one.volume.metadata.name ?? '', other.volume.metadata.name ?? '')
  return order < 0
}
