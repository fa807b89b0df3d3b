/**
 * ResourceClaim controller: creates claims from templates, reserves claims for pods that were not scheduled by
 * kube-scheduler, and deallocates unused claims.
 */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { ResourceClaims, ResourceClaimTemplates } from '#apis/resource/v1.ts'
import { type PodGroup, PodGroups } from '#apis/scheduling/v1alpha2.ts'
import { keyOf, objectKey } from '#meta/object.ts'
import type { Cache, CacheIndex } from '#reconcile/cache.ts'
import { EVENTS, related, rule } from '#reconcile/controller.ts'

import { type Controller, defineController } from '../../controller.ts'
import { syncGroup, syncPod } from './claim-creation.ts'
import { syncClaim } from './claim-release.ts'
import {
  byGroup,
  claimNamesOf,
  claimsOf,
  type Consumer,
  groupConsumer,
  isDone,
  podConsumer,
  WORKLOADS,
} from './consumer.ts'

/** The key prefix tells the kind. */
const POD = 'pod:'
const GROUP = 'podgroup:'
const CLAIM = 'claim:'

const byClaim: CacheIndex<Pod> = {
  name: 'resourceClaim',
  of: (pod) => claimNamesOf(podConsumer(pod)).map((name) => keyOf(pod.metadata.namespace, name)),
}
const byTemplate: CacheIndex<Pod> = { name: 'resourceClaimTemplate', of: (pod) => templatesOf(podConsumer(pod)) }
const groupsByClaim: CacheIndex<PodGroup> = {
  name: 'resourceClaim',
  of: (group) => claimNamesOf(groupConsumer(group)).map((name) => keyOf(group.metadata.namespace, name)),
}
const groupsByTemplate: CacheIndex<PodGroup> = {
  name: 'resourceClaimTemplate',
  of: (group) => templatesOf(groupConsumer(group)),
}

export const resourceClaimController: Controller = defineController({
  name: 'resourceclaim-controller',
  aliases: ['resource-claim-controller'],
  account: 'resource-claim-controller',
  component: 'resource_claim',
  watches: [
    related(Pods, podKeys),
    related(ResourceClaims, (claim, cache) => [
      CLAIM + objectKey(claim),
      ...cache.by(Pods, byClaim, objectKey(claim)).flatMap((pod) => podKeys(pod, cache)),
    ]),
    related(ResourceClaimTemplates, (template, cache) =>
      cache.by(Pods, byTemplate, objectKey(template)).flatMap((pod) => podKeys(pod, cache)),
    ),
    { ...related(PodGroups, groupKeys), gates: [WORKLOADS] },
    {
      ...related(ResourceClaims, (claim, cache) =>
        cache.by(PodGroups, groupsByClaim, objectKey(claim)).map((group) => GROUP + objectKey(group)),
      ),
      gates: [WORKLOADS],
    },
    {
      ...related(ResourceClaimTemplates, (template, cache) =>
        cache.by(PodGroups, groupsByTemplate, objectKey(template)).map((group) => GROUP + objectKey(group)),
      ),
      gates: [WORKLOADS],
    },
  ],
  rules: [
    rule('', 'pods', 'get list watch'),
    rule('', 'pods/finalizers', 'update'),
    rule('', 'pods/status', 'patch update'),
    rule('resource.k8s.io', 'resourceclaims', 'create delete get list patch update watch'),
    rule('resource.k8s.io', 'resourceclaims/status resourceclaims/binding', 'patch update'),
    rule('scheduling.k8s.io', 'podgroups', 'get list watch'),
    rule('scheduling.k8s.io', 'podgroups/status', 'patch update'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const object = key.slice(key.indexOf(':') + 1)
    if (key.startsWith(CLAIM)) await syncClaim(object, context)
    else if (key.startsWith(GROUP)) await syncGroup(object, context)
    else await syncPod(object, context)
  },
})

function templatesOf(consumer: Consumer): string[] {
  const { namespace } = consumer.object.metadata
  const names = claimsOf(consumer).map(({ resourceClaimTemplateName }) => resourceClaimTemplateName)
  return [...new Set(names.filter((name) => name !== undefined).map((name) => keyOf(namespace, name)))]
}

/** A finished pod enqueues its claims, including those for extended resources. */
function podKeys(pod: Pod, cache: Cache): string[] {
  const extended = pod.status.extendedResourceClaimStatus?.resourceClaimName
  const consumer = podConsumer(pod)
  if (claimsOf(consumer).length === 0 && extended === undefined) return []
  const key = objectKey(pod)
  const isGone = cache.get(Pods, key)?.metadata.uid !== pod.metadata.uid
  const names = isGone || isDone(pod) ? [...claimNamesOf(consumer), ...(extended === undefined ? [] : [extended])] : []
  return [...names.map((name) => CLAIM + keyOf(pod.metadata.namespace, name)), POD + key]
}

/** A group enqueues its pods when its claim statuses change. */
function groupKeys(group: PodGroup, cache: Cache): string[] {
  const consumer = groupConsumer(group)
  if (claimsOf(consumer).length === 0) return []
  const key = objectKey(group)
  const isGone = cache.get(PodGroups, key)?.metadata.uid !== group.metadata.uid
  const claims = isGone ? claimNamesOf(consumer).map((name) => CLAIM + keyOf(group.metadata.namespace, name)) : []
  return [GROUP + key, ...claims, ...cache.by(Pods, byGroup, key).flatMap((pod) => podKeys(pod, cache))]
}
