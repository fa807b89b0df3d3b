/**
 * Authorization for parts of a claim's status, in addition to the permission to write it. Writing an allocation
 * requires permission for `resourceclaims/binding`. Writing a device's status requires permission for the driver in
 * `resourceclaims/driver`, from the claim's node or from any. Upstream: DRAResourceClaimGranularStatusAuthorization.
 */
import { type AllocationResult, type ResourceClaim, ResourceClaims } from '#apis/resource/v1.ts'
import type { WriteContext } from '#apiserver/registry/resource.ts'
import { type Access, type Authorizer, forbiddenAccess, resourceAccess } from '#auth/authorizer.ts'
import { EXTRA, extraValue, parseServiceAccountUser } from '#auth/credentials/service-account-name.ts'
import type { User } from '#auth/user.ts'
import { compareText } from '#lib/go/text.ts'
import { semanticEqual } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { nameIsSubdomain } from '#meta/validation/names.ts'

import { identityOf } from './claim-status.ts'

const GATE = 'DRAResourceClaimGranularStatusAuthorization'
const ASSOCIATED_NODE = 'associated-node:'
const ARBITRARY_NODE = 'arbitrary-node:'

export type Authorize = Authorizer['authorize']

/** The forbidden parts of the change from `old` to `next`. */
export async function statusAccessErrors(
  ask: Authorize,
  [next, old]: readonly [ResourceClaim, ResourceClaim],
  context: WriteContext,
): Promise<FieldError[]> {
  if (!context.isEnabled(GATE)) return []
  const isReport = context.isEnabled('DRAResourceClaimDeviceStatus') && next.status?.allocation !== undefined
  return collectErrors(
    await bindingErrors(ask, [next, old], context),
    // The status of a removed device goes with it, without a permission.
    isReport && (await reportErrors(ask, [next, old], context)),
  )
}

async function bindingErrors(
  ask: Authorize,
  [next, old]: readonly [ResourceClaim, ResourceClaim],
  { user, verb }: WriteContext,
): Promise<FieldError[]> {
  const isSame = (['allocation', 'reservedFor'] as const).every((name) =>
    semanticEqual(next.status?.[name], old.status?.[name]),
  )
  if (isSame) return []
  const refusal = await refusalOf(ask, user, accessTo({ verb, subresource: 'binding' }))
  if (refusal === undefined) return []
  const wanted = `requires resource="resourceclaims/binding", verb="${verb}" permission`
  return [
    fieldPath('status.allocation').forbidden(`changing status.allocation or status.reservedFor ${wanted}: ${refusal}`),
  ]
}

async function reportErrors(
  ask: Authorize,
  [next, old]: readonly [ResourceClaim, ResourceClaim],
  { user, verb }: WriteContext,
): Promise<FieldError[]> {
  const isNear = isOnNode(user, nodeOf(next.status?.allocation))
  const verbs = [...(isNear ? [ASSOCIATED_NODE] : []), ARBITRARY_NODE].map((prefix) => prefix + verb)
  const { namespace = '' } = next.metadata
  const errors: FieldError[] = []
  for (const name of changedDrivers(next, old)) {
    const accesses = verbs.map((one) => accessTo({ verb: one, subresource: 'driver', namespace, name }))
    const refusal = await refusalOf(ask, user, ...accesses)
    if (refusal === undefined) continue
    const wanted = `requires resource="resourceclaims/driver", verb="[${verbs.join(' ')}]" permission`
    errors.push(fieldPath('status.devices').forbidden(`changing status.devices ${wanted}: ${refusal}`))
  }
  return errors
}

function accessTo(parts: Pick<Access, 'verb' | 'subresource'> & Partial<Access>): Access {
  const { group, version, plural: resource } = ResourceClaims
  return resourceAccess({ group, version, resource, ...parts })
}

/** Undefined if one of them is allowed; otherwise the denial of the first. */
async function refusalOf(ask: Authorize, user: User, ...accesses: readonly Access[]): Promise<string | undefined> {
  let first: string | undefined
  for (const access of accesses) {
    const { allowed, reason, error } = await ask(user, access)
    if (allowed) return undefined
    const why = [error ?? '', reason].filter((text) => text !== '').join(': ')
    first ??= forbiddenAccess(user, access, why).message
  }
  return first
}

/** The drivers whose status changed, in order. */
function changedDrivers(next: ResourceClaim, old: ResourceClaim): string[] {
  const before = new Map((old.status?.devices ?? []).map((device) => [identityOf(device), device]))
  const drivers = new Set<string>()
  for (const device of next.status?.devices ?? []) {
    const id = identityOf(device)
    if (!semanticEqual(before.get(id), device)) drivers.add(device.driver)
    before.delete(id)
  }
  for (const { driver } of before.values()) drivers.add(driver)
  return [...drivers].sort(compareText)
}

/** The node of the allocated devices; undefined for network devices. */
function nodeOf(allocation: AllocationResult | undefined): string | undefined {
  const [term, ...others] = allocation?.nodeSelector?.nodeSelectorTerms ?? []
  const [field, ...moreFields] = term?.matchFields ?? []
  const isPlain = others.length + moreFields.length + (term?.matchExpressions ?? []).length === 0
  const isName = field?.key === 'metadata.name' && field.operator === 'In'
  return isPlain && isName && field.values?.length === 1 ? field.values[0] : undefined
}

/** True if the user is a service account of a pod on that node. */
function isOnNode(user: User, node: string | undefined): boolean {
  if (node === undefined || node === '' || parseServiceAccountUser(user.name) === undefined) return false
  return extraValue(user, EXTRA.nodeName) === node && nameIsSubdomain(node, false).length === 0
}
