/** Computes the quota usage of PersistentVolumeClaims: number and storage, in total and by storage class. */
import type { PersistentVolumeClaim } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'
import { compareQuantities, parseQuantity, type Quantity, quantityOf, roundQuantityUp } from '#meta/quantity.ts'

import { amountOf } from '../resource-lists.ts'
import { storageClassOf } from '../volumes/volumes.ts'
import type { CountedWrite, Evaluator, Scope } from './evaluator.ts'
import { selects } from './evaluator.ts'

const COUNT = 'count/persistentvolumeclaims'
const CLAIMS = 'persistentvolumeclaims'
const STORAGE = 'requests.storage'
const BY_CLASS = '.storageclass.storage.k8s.io/'

export interface VolumeClaimEvaluatorOptions {
  readonly isEnabled: (gate: string) => boolean
}

export function createVolumeClaimEvaluator({ isEnabled }: VolumeClaimEvaluatorOptions): Evaluator {
  return {
    handles: handlesClaim,
    matching: (names) => [...names].filter(isClaimName),
    isWithin: (scope, claim) => isEnabled('VolumeAttributesClass') && isWithin(scope, claim as PersistentVolumeClaim),
    usage: (claim) => claimUsage(claim as PersistentVolumeClaim),
  }
}

/** A status update can grow a claim or change its attributes class. */
function handlesClaim({ operation, subresource, object, oldObject }: CountedWrite): boolean {
  if (subresource === '') return operation === 'CREATE' || operation === 'UPDATE'
  if (subresource !== 'status' || oldObject === undefined) return false
  return summary(object) !== summary(oldObject)
}

function summary(claim: KubeObject | undefined): string {
  const { status } = claim as PersistentVolumeClaim
  const allocated = amountOf(status?.allocatedResources, 'storage') ?? ''
  return [allocated, ...attributeClasses(claim as PersistentVolumeClaim)].join('\n')
}

function isClaimName(name: string): boolean {
  if (name === COUNT || name === CLAIMS || name === STORAGE) return true
  return name.endsWith(BY_CLASS + CLAIMS) || name.endsWith(BY_CLASS + STORAGE)
}

/** The desired, current and pending class: a claim may match several at once. */
function attributeClasses({ spec, status }: PersistentVolumeClaim): string[] {
  const names = [
    spec.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ]
  return [...new Set(names.filter((name): name is string => name !== undefined && name !== ''))].sort()
}

function isWithin(scope: Scope, claim: PersistentVolumeClaim): boolean {
  if (scope.scopeName !== 'VolumeAttributesClass') return false
  const classes = attributeClasses(claim)
  return classes.length === 0 ? selects(scope, undefined) : classes.some((name) => selects(scope, name))
}

function claimUsage(claim: PersistentVolumeClaim): Map<string, Quantity> {
  const one = quantityOf(1)
  const used = new Map([
    [CLAIMS, one],
    [COUNT, one],
  ])
  const storageClass = storageClassOf(claim)
  const storage = storageOf(claim)
  if (storageClass !== '') used.set(storageClass + BY_CLASS + CLAIMS, one)
  if (storage === undefined) return used
  used.set(STORAGE, storage)
  if (storageClass !== '') used.set(storageClass + BY_CLASS + STORAGE, storage)
  return used
}

/** In whole bytes; an allocation that exceeds the request counts. */
function storageOf({ spec, status }: PersistentVolumeClaim): Quantity | undefined {
  const requestText = amountOf(spec.resources?.requests, 'storage')
  if (requestText === undefined) return undefined
  const requested = parseQuantity(requestText)
  const granted = parseQuantity(amountOf(status?.allocatedResources, 'storage') ?? '0')
  return roundQuantityUp(compareQuantities(granted, requested) > 0 ? granted : requested, 0)
}
