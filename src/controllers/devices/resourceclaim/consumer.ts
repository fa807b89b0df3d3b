/** The consumers of ResourceClaims: pods and PodGroups. Both refer to claims and templates in the same way. Pure. */
import { type Pod, type PodResourceClaim, Pods } from '#apis/core/v1.ts'
import type { ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate } from '#apis/resource/v1.ts'
import { type PodGroup, PodGroups } from '#apis/scheduling/v1alpha2.ts'
import { apiVersionOf, parseApiVersion } from '#meta/kind.ts'
import { controllerOf, isBeingDeleted, isControlledBy, keyOf, type OwnerReference } from '#meta/object.ts'
import { isTerminal } from '#model/pods.ts'
import type { CacheIndex } from '#reconcile/cache.ts'

/** The gate of claims for PodGroups. */
export const WORKLOADS = 'DRAWorkloadResourceClaims'
export const CLAIM_NAME = 'resource.kubernetes.io/pod-claim-name'

export type Consumer =
  | { readonly kind: typeof Pods; readonly object: Pod }
  | { readonly kind: typeof PodGroups; readonly object: PodGroup }

export function podConsumer(object: Pod): Consumer {
  return { kind: Pods, object }
}

export function groupConsumer(object: PodGroup): Consumer {
  return { kind: PodGroups, object }
}

/** The claim references: existing claims, or templates. */
export function claimsOf({ object }: Consumer): readonly PodResourceClaim[] {
  return object.spec.resourceClaims ?? []
}

/** The claim's name; null if none is needed, undefined if it is not created yet. */
export function claimNameOf({ object }: Consumer, reference: PodResourceClaim): string | null | undefined {
  if (reference.resourceClaimName !== undefined) return reference.resourceClaimName
  const claimStatus = object.status.resourceClaimStatuses?.find(({ name }) => name === reference.name)
  return claimStatus === undefined ? undefined : (claimStatus.resourceClaimName ?? null)
}

/** The names of all created or referenced claims. */
export function claimNamesOf(consumer: Consumer): string[] {
  const names = claimsOf(consumer).map((reference) => claimNameOf(consumer, reference))
  return [...new Set(names.filter((name) => typeof name === 'string'))]
}

/** A claim from a template for the consumer, with a generated name. */
export function draftClaim(
  { kind, object }: Consumer,
  reference: PodResourceClaim,
  template: ResourceClaimTemplate,
): Pick<ResourceClaim, 'metadata' | 'spec'> {
  const { namespace, name = '', uid = '' } = object.metadata
  const { annotations, labels } = template.spec.metadata
  const owner: OwnerReference = { apiVersion: apiVersionOf(kind), kind: kind.kind, name, uid, controller: true }
  return {
    metadata: {
      ...(namespace !== undefined && { namespace }),
      generateName: baseName(name, reference.name),
      ownerReferences: [owner],
      annotations: { ...annotations, [CLAIM_NAME]: reference.name },
      ...(labels !== undefined && { labels }),
    },
    spec: template.spec.spec,
  }
}

/** A generated name has at most 63 characters; both parts are cut. */
const MAX_BASE = 57

export function baseName(consumer: string, claim: string): string {
  const whole = `${consumer}-${claim}-`
  if (whole.length <= MAX_BASE) return whole
  const part = (text: string): string => text.slice(0, Math.floor((text.length * MAX_BASE) / whole.length))
  return `${part(consumer)}-${part(claim)}`
}

/** Whether the claim belongs to the group, which creates and reserves it for its pods. */
export function isOfGroup(group: PodGroup | undefined, reference: PodResourceClaim): group is PodGroup {
  return (group?.spec.resourceClaims ?? []).some(
    ({ name, resourceClaimName, resourceClaimTemplateName }) =>
      name === reference.name &&
      resourceClaimName === reference.resourceClaimName &&
      resourceClaimTemplateName === reference.resourceClaimTemplateName,
  )
}

export function referenceTo({ kind, object }: Consumer): ResourceClaimConsumerReference {
  const { name = '', uid = '' } = object.metadata
  return { ...(kind.group !== '' && { apiGroup: kind.group }), resource: kind.plural, name, uid }
}

/** Whether the claim is reserved for the pod, or for its group. A pod references its group only by name. */
export function isReservedFor(claim: ResourceClaim, pod: Pod, hasGroups: boolean): boolean {
  const group = hasGroups ? groupNameOf(pod) : undefined
  return (claim.status.reservedFor ?? []).some(
    ({ apiGroup, resource, name, uid }) =>
      uid === pod.metadata.uid ||
      (group !== undefined && apiGroup === PodGroups.group && resource === PodGroups.plural && name === group),
  )
}

/** Whether the claim was created for the pod, or for its group. */
export function isFor(claim: ResourceClaim, pod: Pod, hasGroups: boolean): boolean {
  if (isControlledBy(claim, pod)) return true
  const owner = hasGroups ? controllerOf(claim) : undefined
  return (
    owner?.kind === PodGroups.kind &&
    owner.name === groupNameOf(pod) &&
    parseApiVersion(owner.apiVersion).group === PodGroups.group
  )
}

/** The pod that owns the claim. */
export function owningPod(claim: ResourceClaim): OwnerReference | undefined {
  const owner = controllerOf(claim)
  return owner?.kind === 'Pod' && owner.apiVersion === 'v1' ? owner : undefined
}

/** No container runs or will run. */
export function isDone(pod: Pod): boolean {
  return isTerminal(pod) || (isBeingDeleted(pod) && (pod.spec.nodeName ?? '') === '')
}

export function groupNameOf({ spec }: Pod): string | undefined {
  return spec.schedulingGroup?.podGroupName
}

/** Pods by the key of their group. */
export const byGroup: CacheIndex<Pod> = {
  name: 'podGroup',
  of(pod) {
    const name = groupNameOf(pod)
    return name === undefined ? [] : [keyOf(pod.metadata.namespace, name)]
  },
}
