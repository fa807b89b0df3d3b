/** ReplicaSet controller: keeps `spec.replicas` pods alive. */
import { type ReplicaSet, ReplicaSets } from '#apis/apps/v1.ts'
import { type Pod, Pods } from '#apis/core/v1.ts'
import { asSelector } from '#meta/label-selector.ts'
import { controllerOf } from '#meta/object.ts'

import type { Cache } from './cache.ts'
import { type Controller, rule, EVENTS } from './controller.ts'
import { keepReplicas } from './replica-keeper.ts'

export const replicaSetController: Controller = keepReplicas({
  kind: ReplicaSets,
  name: 'replicaset-controller',
  aliases: ['replicaset'],
  selectorOf: ({ spec }) => asSelector(spec.selector),
  familyOf: family,
  tellsTerminating: true,
  rules: [
    rule('apps extensions', 'replicasets', 'get list watch update'),
    rule('apps extensions', 'replicasets/status replicasets/finalizers', 'update'),
    rule('', 'pods', 'create delete list patch watch'),
    EVENTS,
  ],
})

/** Pods of all sets of the same Deployment: on a node with many of them one is missed least. */
function family(set: ReplicaSet, cache: Cache): readonly Pod[] {
  const owner = controllerOf(set)
  if (owner === undefined) return cache.ownedBy(Pods, set)
  const siblings = cache
    .inNamespace(ReplicaSets, set.metadata.namespace ?? '')
    .filter((one) => controllerOf(one)?.uid === owner.uid)
  return siblings.flatMap((one) => cache.ownedBy(Pods, one))
}
