/**
 * Computes the quota usage of ResourceClaims: their number, and the maximum number of devices per class. A claim that
 * was generated for an extended resource is charged only to its pod.
 */
import { type Pod, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import {
  DeviceClasses,
  type DeviceRequest,
  type DeviceSubRequest,
  type ExactDeviceRequest,
  type ResourceClaim,
  ResourceClaims,
} from '#apis/resource/v1.ts'
import { compareText } from '#lib/go/text.ts'
import { controllerOf, type KubeObject } from '#meta/object.ts'
import { type Quantity, quantityOf, quantitySign, subtractQuantities } from '#meta/quantity.ts'
import { epochMsOf } from '#meta/time.ts'

import type { Amounts } from '../pod-resources.ts'
import { addAmounts } from './amounts.ts'
import type { Evaluator } from './evaluator.ts'
import { DEVICE_CLASS_PREFIX, isExtendedQuotaName, podUsage, type PodEvaluatorOptions } from './pods.ts'

const COUNT = 'count/resourceclaims.resource.k8s.io'
const BY_CLASS = '.deviceclass.resource.k8s.io/devices'
const IMPLICIT = `requests.${DEVICE_CLASS_PREFIX}`
const EXTENDED_CLAIM = 'resource.kubernetes.io/extended-resource-claim'
/** The maximum number of devices of a claim; the worst case of a request for all. */
const MAX_DEVICES = 32

/** The access to other objects: the server's store, or a controller's cache. */
export interface ObjectSource {
  get<T extends KubeObject>(kind: Kind<T>, namespace: string, name: string): Promise<T | undefined>
  list<T extends KubeObject>(kind: Kind<T>, namespace: string): Promise<readonly T[]>
}

export interface DeviceClaimEvaluatorOptions extends PodEvaluatorOptions {
  readonly objects: ObjectSource
}

/** Reads the current device classes, so it is valid for one decision. */
export async function createDeviceClaimEvaluator(options: DeviceClaimEvaluatorOptions): Promise<Evaluator> {
  const extended = options.isEnabled('DRAExtendedResource')
    ? await extendedNames(options.objects)
    : new Map<string, string>()
  const resources = new Set([...extended.values()].filter((name) => name !== ''))
  const matches = (name: string): boolean => {
    if (name === COUNT || name.endsWith(BY_CLASS)) return true
    if (name.startsWith(IMPLICIT)) return extended.has(name.slice(IMPLICIT.length))
    return isExtendedQuotaName(name) && resources.has(name.slice('requests.'.length))
  }
  return {
    handles: ({ operation, subresource }) => subresource === '' && (operation === 'CREATE' || operation === 'UPDATE'),
    matching: (names) => [...names].filter(matches),
    async usage(object) {
      const claim = object as ResourceClaim
      const used = deviceUsage(claim)
      if (!options.isEnabled('DRAExtendedResource')) return used
      return new Map([...used, ...extendedUsage(used, extended, await chargedToPod(claim, options))])
    },
  }
}

/** By device class, its extended resource; empty without one. */
async function extendedNames(objects: ObjectSource): Promise<Map<string, string>> {
  const classes = await objects.list(DeviceClasses, '')
  return new Map(classes.map(({ metadata, spec }) => [metadata.name ?? '', spec?.extendedResourceName ?? '']))
}

function deviceUsage({ spec }: ResourceClaim): Map<string, Quantity> {
  let used: Map<string, Quantity> = new Map([[COUNT, quantityOf(1)]])
  for (const request of spec?.devices?.requests ?? []) {
    const counts = new Map<string, number>()
    for (const one of alternatives(request)) {
      const name = one.deviceClassName + BY_CLASS
      counts.set(name, Math.max(counts.get(name) ?? 0, devicesOf(one)))
    }
    used = addAmounts(used, new Map([...counts].map(([name, count]) => [name, quantityOf(count)])))
  }
  return used
}

/** The worst case of all alternatives. */
function alternatives({ exactly, firstAvailable = [] }: DeviceRequest): (ExactDeviceRequest | DeviceSubRequest)[] {
  if (firstAvailable.length > 0) return firstAvailable
  return exactly === undefined ? [] : [exactly]
}

function devicesOf({ allocationMode, count = 0 }: ExactDeviceRequest | DeviceSubRequest): number {
  if (allocationMode === 'ExactCount') return count
  return allocationMode === 'All' ? MAX_DEVICES : 0
}

function extendedUsage(used: Amounts, extended: ReadonlyMap<string, string>, charged: Amounts): Map<string, Quantity> {
  const more = new Map<string, Quantity>()
  for (const [name, amount] of used) {
    if (!name.endsWith(BY_CLASS) || name === BY_CLASS) continue
    const deviceClass = name.slice(0, -BY_CLASS.length)
    more.set(IMPLICIT + deviceClass, amount)
    const resource = extended.get(deviceClass) ?? ''
    if (resource !== '') more.set(`requests.${resource}`, amount)
  }
  for (const [name, amount] of more) {
    const known = charged.get(name)
    const rest = known === undefined ? amount : subtractQuantities(amount, known)
    if (quantitySign(rest) > 0) more.set(name, rest)
    else more.delete(name)
  }
  return more
}

/** The charge of the pod for which the scheduler generated this claim; empty for other claims. */
async function chargedToPod(claim: ResourceClaim, options: DeviceClaimEvaluatorOptions): Promise<Amounts> {
  const nothing: Amounts = new Map()
  const owner = podOwner(claim)
  if (owner === undefined) return nothing
  const pod = await options.objects.get(Pods, claim.metadata.namespace ?? '', owner.name)
  if (pod === undefined || pod.metadata.uid !== owner.uid) return nothing
  return (await isClaimOf(pod, claim, options.objects)) ? podUsage(pod, options) : nothing
}

function podOwner(claim: ResourceClaim): { readonly name: string; readonly uid: string } | undefined {
  if (claim.metadata.annotations?.[EXTENDED_CLAIM] !== 'true') return undefined
  const owner = controllerOf(claim)
  return owner?.kind === 'Pod' && owner.apiVersion === 'v1' ? owner : undefined
}

/** The claim in the pod's status; before it is set, the first that was generated for it. */
async function isClaimOf(pod: Pod, claim: ResourceClaim, objects: ObjectSource): Promise<boolean> {
  const status = pod.status?.extendedResourceClaimStatus
  if (status !== undefined) return status.resourceClaimName === claim.metadata.name
  const all = await objects.list(ResourceClaims, claim.metadata.namespace ?? '')
  return all.filter((other) => podOwner(other)?.uid === pod.metadata.uid).every((other) => ageOrder(other, claim) >= 0)
}

function ageOrder(a: ResourceClaim, b: ResourceClaim): number {
  const made = ({ metadata }: ResourceClaim): number =>
    metadata.creationTimestamp === undefined || metadata.creationTimestamp === null
      ? 0
      : epochMsOf(metadata.creationTimestamp)
  return made(a) - made(b) || compareText(a.metadata.name ?? '', b.metadata.name ?? '')
}
