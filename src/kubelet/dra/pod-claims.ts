/** Finds the ResourceClaims of a pod and the devices of each container. Pure. */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import type { ResourceClaim } from '#apis/resource/v1.ts'

import type { ClaimState } from './claim-state.ts'

/** Claim names by their name in the pod, without claims that are not needed. Throws while one is not created. */
export function claimNamesOf({ spec, status, metadata }: Pod): Map<string, string> {
  const names = new Map<string, string>()
  for (const { name, resourceClaimName, resourceClaimTemplateName } of spec.resourceClaims ?? []) {
    if (resourceClaimName !== undefined) names.set(name, resourceClaimName)
    if (resourceClaimTemplateName === undefined) continue
    const made = status.resourceClaimStatuses?.find((one) => one.name === name)
    if (made === undefined) {
      throw new Error(`pod "${metadata.namespace}/${metadata.name}": pod claim ${name}: ResourceClaim not created yet`)
    }
    if (made.resourceClaimName !== undefined) names.set(name, made.resourceClaimName)
  }
  return names
}

/** Throws unless the claim is reserved for the pod. */
export function checkClaim({ metadata: { name, uid } }: Pod, claim: ResourceClaim): void {
  const isReserved = (claim.status.reservedFor ?? []).some((one) => one.uid === uid)
  if (isReserved) return
  const which = `${claim.metadata.name} (${claim.metadata.uid})`
  throw new Error(`pod ${name} (${uid}) is not allowed to use ResourceClaim ${which}`)
}

/** The drivers of the claim. Throws while it is not allocated. */
export function driversOf({ metadata, status }: ResourceClaim): string[] {
  if (status.allocation === undefined) throw new Error(`ResourceClaim ${metadata.name}: not allocated`)
  return [...new Set((status.allocation.devices?.results ?? []).map(({ driver }) => driver))]
}

/** The request of a claim or container; `gpu/large` belongs to the request `gpu`. */
const baseOf = (request: string): string => request.split('/')[0] ?? ''

/** CDI device names of a container. `claims` is by name. */
export function cdiDevicesOf(
  pod: Pod,
  container: Container | EphemeralContainer,
  claims: ReadonlyMap<string, ClaimState>,
): string[] {
  const names = claimNamesOf(pod)
  const wanted: [claim: string | undefined, request: string][] = (container.resources?.claims ?? []).map(
    ({ name, request = '' }) => [names.get(name), request],
  )
  const { extendedResourceClaimStatus: extended } = pod.status
  for (const { containerName, requestName } of extended?.requestMappings ?? []) {
    if (containerName === container.name) wanted.push([extended?.resourceClaimName, requestName])
  }
  const found = wanted.flatMap(([name, request]) => {
    if (name === undefined) return []
    const claim = claims.get(name)
    if (claim === undefined) {
      const where = `ResourceClaim ${name} in namespace ${pod.metadata.namespace}`
      throw new Error(`internal error: unable to get claim info for ${where}`)
    }
    const devices = Object.values(claim.DriverState).flatMap(({ Devices }) => Devices ?? [])
    return devices
      .filter(({ RequestNames }) => request === '' || isOfRequest(RequestNames ?? [], request))
      .flatMap(({ CDIDeviceIDs }) => CDIDeviceIDs ?? [])
  })
  return [...new Set(found)]
}

const isOfRequest = (names: readonly string[], request: string): boolean =>
  names.length === 0 || names.some((name) => baseOf(name) === request)
