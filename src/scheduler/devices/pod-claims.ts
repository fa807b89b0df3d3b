/** Finds the ResourceClaims of a pod: those it names and those generated from templates. */
import type { Pod, PodResourceClaim } from '#apis/core/v1.ts'
import type { AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim } from '#apis/resource/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { isBeingDeleted, isControlledBy, keyOf, objectKey } from '#meta/object.ts'

/** All claims in order, or why the pod must wait. */
export function claimsOf(pod: Pod, get: (key: string) => ResourceClaim | undefined): readonly ResourceClaim[] | string {
  const claims: ResourceClaim[] = []
  for (const reference of pod.spec.resourceClaims ?? []) {
    const name = nameOf(pod, reference)
    // The claim controller decided that no claim is needed.
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

/** Null: no claim is needed. Undefined: not created yet. */
function nameOf({ status }: Pod, { name, resourceClaimName }: PodResourceClaim): string | null | undefined {
  if (resourceClaimName !== undefined) return resourceClaimName
  const claimStatus = status.resourceClaimStatuses?.find((one) => one.name === name)
  return claimStatus === undefined ? undefined : (claimStatus.resourceClaimName ?? null)
}

export function isReservedFor({ status }: ResourceClaim, { metadata }: Pod): boolean {
  return (status.reservedFor ?? []).some(({ uid }) => uid === metadata.uid)
}

/** Devices with binding conditions. */
export function slowDevices({ status }: ResourceClaim): readonly DeviceRequestAllocationResult[] {
  return (status.allocation?.devices.results ?? []).filter(({ bindingConditions = [] }) => bindingConditions.length > 0)
}

/** Whether all binding conditions are true. Throws if one has failed. */
export function isMadeReady(claim: ResourceClaim): boolean {
  for (const result of slowDevices(claim)) {
    const status = claim.status.devices?.find(
      ({ driver, pool, device }) => driver === result.driver && pool === result.pool && device === result.device,
    )
    const isTrue = (type: string): boolean => conditionOf(status, type)?.status === 'True'
    const failed = (result.bindingFailureConditions ?? []).find(isTrue)
    if (failed !== undefined) {
      const { reason = '', message = '' } = conditionOf(status, failed) ?? {}
      const why = `claim=${claim.metadata.name}, reason=${reason}, message=${goQuote(message)}`
      throw new Error(`device binding failed: ${why}`)
    }
    if (!(result.bindingConditions ?? []).every(isTrue)) return false
  }
  return true
}

function conditionOf(
  status: AllocatedDeviceStatus | undefined,
  type: string,
): { readonly status: string; readonly reason?: string; readonly message?: string } | undefined {
  return status?.conditions?.find((one) => one.type === type)
}
