/** The claims of a pod: those that it names, and those that are made for it. */
import type { Pod, PodResourceClaim } from '#apis/core/v1.ts'
import type { AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim } from '#apis/resource/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import { isBeingDeleted, isControlledBy, keyOf, objectKey } from '#meta/object.ts'

/** All of them, in order, or why the pod has to wait. */
export function claimsOf(pod: Pod, get: (key: string) => ResourceClaim | undefined): readonly ResourceClaim[] | string {
  const claims: ResourceClaim[] = []
  for (const reference of pod.spec.resourceClaims ?? []) {
    const name = nameOf(pod, reference)
    // Whoever makes claims found that none is needed.
    if (name === null) continue
    if (name === undefined) return `pod "${objectKey(pod)}": ResourceClaim not created yet`
    const key = keyOf(pod.metadata.namespace, name)
    const claim = get(key)
    if (claim === undefined) return `could not find ResourceClaim ${goQuote(key)}`
    if (isBeingDeleted(claim)) return `resourceclaim ${goQuote(name)} is being deleted`
    if (reference.resourceClaimName === undefined && !isControlledBy(claim, pod))
      return `ResourceClaim ${key} was not created for Pod ${objectKey(pod)} (Pod is not owner)`
    claims.push(claim)
  }
  return claims
}

/** Null: there is none. Undefined: not yet. */
function nameOf({ status }: Pod, { name, resourceClaimName }: PodResourceClaim): string | null | undefined {
  if (resourceClaimName !== undefined) return resourceClaimName
  const told = status.resourceClaimStatuses?.find((one) => one.name === name)
  return told === undefined ? undefined : (told.resourceClaimName ?? null)
}

export function isReservedFor({ status }: ResourceClaim, { metadata }: Pod): boolean {
  return (status.reservedFor ?? []).some(({ uid }) => uid === metadata.uid)
}

/** Devices that their driver has yet to make ready for the node. */
export function slowDevices({ status }: ResourceClaim): readonly DeviceRequestAllocationResult[] {
  return (status.allocation?.devices.results ?? []).filter(({ bindingConditions = [] }) => bindingConditions.length > 0)
}

/** Whether drivers have made ready what the claim has. Throws when they never will. */
export function isMadeReady(claim: ResourceClaim): boolean {
  for (const result of slowDevices(claim)) {
    const told = claim.status.devices?.find(
      ({ driver, pool, device }) => driver === result.driver && pool === result.pool && device === result.device,
    )
    const isTrue = (type: string): boolean => conditionOf(told, type)?.status === 'True'
    const failed = (result.bindingFailureConditions ?? []).find(isTrue)
    if (failed !== undefined) {
      const { reason = '', message = '' } = conditionOf(told, failed) ?? {}
      const why = `claim=${claim.metadata.name}, reason=${reason}, message=${goQuote(message)}`
      throw new Error(`device binding failed: ${why}`)
    }
    if (!(result.bindingConditions ?? []).every(isTrue)) return false
  }
  return true
}

function conditionOf(
  told: AllocatedDeviceStatus | undefined,
  type: string,
): { readonly status: string; readonly reason?: string; readonly message?: string } | undefined {
  return told?.conditions?.find((one) => one.type === type)
}
