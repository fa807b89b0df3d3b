/**
 * Removes the protection finalizer of a terminating PodGroup once none of its pods runs. Admission adds the finalizer.
 */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { type PodGroup, PodGroups } from '#apis/scheduling/v1alpha2.ts'
import { hasFinalizer, isBeingDeleted, keyOf, objectKey, removeFinalizer } from '#meta/object.ts'
import { isTerminalPhase } from '#model/pods.ts'
import { related, rule } from '#reconcile/controller.ts'

import { type Controller, defineController } from '../controller.ts'
import { byGroup, groupNameOf } from './resourceclaim/consumer.ts'

const FINALIZER = 'scheduling.k8s.io/podgroup-protection'

export const podGroupProtectionController: Controller = defineController({
  name: 'podgroup-protection-controller',
  gates: ['GenericWorkload'],
  workers: 1,
  watches: [related(PodGroups, (group) => (isWaiting(group) ? [objectKey(group)] : [])), related(Pods, groupKey)],
  rules: [rule('scheduling.k8s.io', 'podgroups', 'get list update watch'), rule('', 'pods', 'get list watch')],

  async reconcile(key, { cache, client, signal }) {
    const group = cache.get(PodGroups, key)
    const isUsed = cache.by(Pods, byGroup, key).some(({ status }) => !isTerminalPhase(status.phase))
    if (group === undefined || !isWaiting(group) || isUsed) return
    const changed = { ...group, metadata: { ...group.metadata } }
    removeFinalizer(changed, FINALIZER)
    await client.update(PodGroups, changed, { signal })
  },
})

function isWaiting(group: PodGroup): boolean {
  return isBeingDeleted(group) && hasFinalizer(group, FINALIZER)
}

function groupKey(pod: Pod): string[] {
  const name = groupNameOf(pod)
  return name === undefined ? [] : [keyOf(pod.metadata.namespace, name)]
}
