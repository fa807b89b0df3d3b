/**
 * Creates ResourceClaims from templates, exactly once, and records their names in the status of the pod or PodGroup.
 */
import { type Pod, type PodResourceClaim, Pods } from '#apis/core/v1.ts'
import {
  type ResourceClaim,
  ResourceClaims,
  type ResourceClaimTemplate,
  ResourceClaimTemplates,
} from '#apis/resource/v1.ts'
import { type PodGroup, PodGroups } from '#apis/scheduling/v1alpha2.ts'
import { goQuote } from '#lib/go/text.ts'
import { isBeingDeleted, keyOf, objectKey } from '#meta/object.ts'

import { perRun } from '../../controller.ts'
import { type ControllerContext } from '../../controller.ts'
import {
  CLAIM_NAME,
  claimNameOf,
  claimsOf,
  type Consumer,
  draftClaim,
  groupConsumer,
  groupNameOf,
  isDone,
  isFor,
  isOfGroup,
  isReservedFor,
  podConsumer,
  referenceTo,
  WORKLOADS,
} from './consumer.ts'

const FIELD_MANAGER = 'ResourceClaimController'

/** Created claims that the cache does not show yet, by consumer and reference name. */
const createdOf = perRun(() => new Map<string, ResourceClaim>())

/** Forgets a claim that the cache shows, or that is gone. */
export function forgetCreated(key: string, context: ControllerContext): void {
  const all = createdOf(context)
  for (const [of, made] of all) if (objectKey(made) === key) all.delete(of)
}

/** Creates the pod's claims, and reserves them once it has a node. */
export async function syncPod(key: string, context: ControllerContext): Promise<void> {
  const pod = context.cache.get(Pods, key)
  // The claims of a finished pod are being deleted.
  if (pod === undefined || isBeingDeleted(pod) || isDone(pod)) return
  const group = groupOf(pod, context)
  const made = await createMissing(podConsumer(pod), group, context)
  if (made.size > 0) await applyStatuses(podConsumer(pod), made, context)
  if ((pod.spec.nodeName ?? '') !== '') await reserveAll(pod, { group, made }, context)
}

/** Reserves claims of pods that another scheduler placed. */
async function reserveAll(
  pod: Pod,
  { group, made }: { readonly group: PodGroup | undefined; readonly made: ReadonlyMap<string, string> },
  { cache, client, signal, isEnabled }: ControllerContext,
): Promise<void> {
  const hasGroups = isEnabled(WORKLOADS)
  for (const reference of claimsOf(podConsumer(pod))) {
    const name = made.get(reference.name) ?? claimNameOf(podConsumer(pod), reference) ?? ''
    const claim = cache.get(ResourceClaims, keyOf(pod.metadata.namespace, name))
    const isOthers =
      reference.resourceClaimTemplateName !== undefined && claim !== undefined && !isFor(claim, pod, hasGroups)
    if (claim?.status.allocation === undefined || isOthers || isReservedFor(claim, pod, hasGroups)) continue
    const consumer = isOfGroup(group, reference) ? groupConsumer(group) : podConsumer(pod)
    const reservedFor = [...(claim.status.reservedFor ?? []), referenceTo(consumer)]
    await client.updateStatus(ResourceClaims, { ...claim, status: { ...claim.status, reservedFor } }, { signal })
  }
}

export async function syncGroup(key: string, context: ControllerContext): Promise<void> {
  const group = context.cache.get(PodGroups, key)
  if (group === undefined || isBeingDeleted(group)) return
  const made = await createMissing(groupConsumer(group), undefined, context)
  if (made.size > 0) await applyStatuses(groupConsumer(group), made, context)
}

/** Undefined for a pod without a group, or if the gate is off. */
function groupOf(pod: Pod, { cache, isEnabled }: ControllerContext): PodGroup | undefined {
  const name = groupNameOf(pod)
  if (name === undefined || !isEnabled(WORKLOADS)) return undefined
  const group = cache.get(PodGroups, keyOf(pod.metadata.namespace, name))
  if (group === undefined) {
    throw new Error(`get PodGroup for Pod ${objectKey(pod)}: podgroup.scheduling.k8s.io ${goQuote(name)} not found`)
  }
  return group
}

/** Creates missing claims. Returns claim names that the status does not have yet, by reference name. */
async function createMissing(
  consumer: Consumer,
  group: PodGroup | undefined,
  context: ControllerContext,
): Promise<Map<string, string>> {
  const made = new Map<string, string>()
  for (const reference of claimsOf(consumer)) {
    try {
      const name = await createFromTemplate(consumer, reference, { ...context, group })
      if (name !== undefined) made.set(reference.name, name)
    } catch (error) {
      const message = `${consumer.kind.kind}ResourceClaim ${reference.name}: ${(error as Error).message}`
      context.event(consumer.object, { type: 'Warning', reason: 'FailedResourceClaimCreation', message })
      throw new Error(`${consumer.kind.kind} ${objectKey(consumer.object)}, ${message}`, { cause: error })
    }
  }
  return made
}

async function createFromTemplate(
  consumer: Consumer,
  reference: PodResourceClaim,
  { group, ...context }: ControllerContext & { readonly group: PodGroup | undefined },
): Promise<string | undefined> {
  const { cache } = context
  const { namespace } = consumer.object.metadata
  const known = claimNameOf(consumer, reference)
  const { resourceClaimTemplateName } = reference
  if (known === null || resourceClaimTemplateName === undefined) return undefined
  // Also if another owner has it: then nothing can be done until that claim is gone.
  if (known !== undefined && cache.get(ResourceClaims, keyOf(namespace, known)) !== undefined) return undefined
  if (isOfGroup(group, reference)) return find(groupConsumer(group), reference, context)?.metadata.name
  const found = find(consumer, reference, context)
  if (found !== undefined) return found.metadata.name
  const template = cache.get(ResourceClaimTemplates, keyOf(namespace, resourceClaimTemplateName))
  const quoted = goQuote(resourceClaimTemplateName)
  if (template === undefined) {
    throw new Error(`resource claim template ${quoted}: resourceclaimtemplate.resource.k8s.io ${quoted} not found`)
  }
  return make(consumer, reference, template, context)
}

async function make(
  consumer: Consumer,
  reference: PodResourceClaim,
  template: ResourceClaimTemplate,
  context: ControllerContext,
): Promise<string | undefined> {
  const { client, signal, isEnabled } = context
  const isListed = template.spec.spec.devices.requests?.some(({ firstAvailable = [] }) => firstAvailable.length > 0)
  if (isListed === true && !isEnabled('DRAPrioritizedList')) {
    throw new Error('template includes a prioritized list of subrequests, but the feature is disabled')
  }
  const claim = await client
    .create(ResourceClaims, draftClaim(consumer, reference, template), { signal })
    .catch((cause: Error) => {
      throw new Error(`create ResourceClaim : ${cause.message}`, { cause })
    })
  createdOf(context).set(createdKey(consumer, reference), claim)
  return claim.metadata.name
}

function createdKey({ object }: Consumer, { name }: PodResourceClaim): string {
  return `${object.metadata.uid}/${name}`
}

/** A claim of this consumer that its status does not name, because an earlier sync was interrupted. */
function find(consumer: Consumer, reference: PodResourceClaim, context: ControllerContext): ResourceClaim | undefined {
  const own = context.cache.ownedBy(ResourceClaims, consumer.object)
  return (
    own.find(({ metadata }) => metadata.annotations?.[CLAIM_NAME] === reference.name) ??
    createdOf(context).get(createdKey(consumer, reference))
  )
}

/** Applies all names at once: an apply removes the others. */
async function applyStatuses(
  consumer: Consumer,
  made: ReadonlyMap<string, string>,
  { client, signal }: ControllerContext,
): Promise<void> {
  const { namespace, name } = consumer.object.metadata
  const statuses = new Map((consumer.object.status.resourceClaimStatuses ?? []).map((one) => [one.name, one]))
  for (const [of, resourceClaimName] of made) statuses.set(of, { name: of, resourceClaimName })
  const metadata = { ...(namespace !== undefined && { namespace }), ...(name !== undefined && { name }) }
  const wanted = { metadata, status: { resourceClaimStatuses: [...statuses.values()] } }
  const options = { fieldManager: FIELD_MANAGER, force: true, subresource: 'status', signal }
  if (consumer.kind === Pods) await client.apply(Pods, wanted, options)
  else await client.apply(PodGroups, wanted, options)
}
