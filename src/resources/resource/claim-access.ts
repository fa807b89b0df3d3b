/**
 * Who may change which part of a claim's status: the right to write the status is not enough. Giving devices away needs
 * the right to `resourceclaims/binding`, and reporting on those of a driver the right to `resourceclaims/driver` by the
 * driver's name, from the claim's own node or from anywhere. Upstream: DRAResourceClaimGranularStatusAuthorization.
 */
import { type AllocationResult, type ResourceClaim, ResourceClaims } from '#apis/resource/v1.ts'
import { type Access, type Authorizer, forbiddenAccess, resourceAccess } from '#apiserver/authorizers/authorizer.ts'
import { EXTRA, extraValue, parseServiceAccountUser } from '#apiserver/credentials/service-account-name.ts'
import type { User, WriteContext } from '#apiserver/registry/resource.ts'
import { compareText } from '#lib/go-text.ts'
import { semanticEqual } from '#meta/object.ts'
import { type FieldError, forbidden } from '#meta/validation/field-error.ts'
import { nameIsSubdomain } from '#meta/validation/names.ts'

import { identityOf } from './claim-status.ts'

const GATE = 'DRAResourceClaimGranularStatusAuthorization'
const ASSOCIATED_NODE = 'associated-node:'
const ARBITRARY_NODE = 'arbitrary-node:'

export type Ask = Authorizer['authorize']

/** What the user may not do of the change from `old` to `next`. */
export async function statusAccessErrors(
  ask: Ask,
  [next, old]: readonly [ResourceClaim, ResourceClaim],
  context: WriteContext,
): Promise<FieldError[]> {
  if (!context.isEnabled(GATE)) return []
  const isReport = context.isEnabled('DRAResourceClaimDeviceStatus') && next.status?.allocation !== undefined
  return [
    ...(await bindingErrors(ask, [next, old], context)),
    // What is reported of devices goes with them, without anybody's leave.
    ...(isReport ? await reportErrors(ask, [next, old], context) : []),
  ]
}

async function bindingErrors(
  ask: Ask,
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
  return [forbidden('status.allocation', `changing status.allocation or status.reservedFor ${wanted}: ${refusal}`)]
}

async function reportErrors(
  ask: Ask,
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
    errors.push(forbidden('status.devices', `changing status.devices ${wanted}: ${refusal}`))
  }
  return errors
}

function accessTo(parts: Pick<Access, 'verb' | 'subresource'> & Partial<Access>): Access {
  const { group, version, plural: resource } = ResourceClaims
  return resourceAccess({ group, version, resource, ...parts })
}

/** Undefined when one of them is allowed; otherwise why the first is not. */
async function refusalOf(ask: Ask, user: User, ...accesses: readonly Access[]): Promise<string | undefined> {
  let first: string | undefined
  for (const access of accesses) {
    const { allowed, reason, error } = await ask(user, access)
    if (allowed) return undefined
    const why = [error ?? '', reason].filter((text) => text !== '').join(': ')
    first ??= forbiddenAccess(user, access, why).message
  }
  return first
}

/** Those of which something was added, removed or changed, in order. */
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

/** The one node whose devices were given away; undefined for devices of the network. */
function nodeOf(allocation: AllocationResult | undefined): string | undefined {
  const [term, ...others] = allocation?.nodeSelector?.nodeSelectorTerms ?? []
  const [field, ...moreFields] = term?.matchFields ?? []
  const isPlain = others.length + moreFields.length + (term?.matchExpressions ?? []).length === 0
  const isName = field?.key === 'metadata.name' && field.operator === 'In'
  return isPlain && isName && field.values?.length === 1 ? field.values[0] : undefined
}

/** Whether the user is a service account of a pod on that node. */
function isOnNode(user: User, node: string | undefined): boolean {
  if (node === undefined || node === '' || parseServiceAccountUser(user.name) === undefined) return false
  return extraValue(user, EXTRA.nodeName) === node && nameIsSubdomain(node, false).length === 0
}
