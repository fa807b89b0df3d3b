/** ReplicaSet controller: maintains `spec.replicas` pods. */
import { type ReplicaSet, ReplicaSets } from '#apis/apps/v1.ts'
import { type Pod, Pods } from '#apis/core/v1.ts'
import { asSelector } from '#meta/label-selector.ts'
import { controllerOf } from '#meta/object.ts'
import type { Cache } from '#reconcile/cache.ts'
import { rule, EVENTS } from '#reconcile/controller.ts'

import { type Controller } from '../controller.ts'
import { keepReplicas } from './replica-keeper.ts'

export const replicaSetController: Controller = keepReplicas({
  kind: ReplicaSets,
  name: 'replicaset-controller',
  aliases: ['replicaset'],
  selectorOf: ({ spec }) => asSelector(spec.selector),
  familyOf: family,
  reportsTerminating: true,
  rules: [
    rule('apps extensions', 'replicasets', 'get list watch update'),
    rule('apps extensions', 'replicasets/status replicasets/finalizers', 'update'),
    rule('', 'pods', 'create delete list patch watch'),
    EVENTS,
  ],
})

/** Pods of all ReplicaSets of the same Deployment. */
function family(set: ReplicaSet, cache: Cache): readonly Pod[] {
  const owner = controllerOf(set)
  if (owner === undefined) return cache.ownedBy(Pods, set)
  const siblings = cache
    .inNamespace(ReplicaSets, set.metadata.namespace ?? '')
    .filter((one) => controllerOf(one)?.uid === owner.uid)
  return siblings.flatMap((one) => cache.ownedBy(Pods, one))
}
