/** GangScheduling: binds the pods of a gang only when at least `minCount` have nodes. */
import type { Pod } from '#apis/core/v1.ts'
import { type PodGroup, PodGroups } from '#apis/scheduling/v1alpha2.ts'
import { onAbort } from '#lib/abort.ts'
import { objectKey } from '#meta/object.ts'

import { groupKeyOf } from '../cluster/pod-groups.ts'
import {
  type ClusterEventWithHint,
  definePlugin,
  failed,
  type Handle,
  type PluginFactory,
  unresolvable,
  type Verdict,
} from '../framework/framework.ts'

/** The longest wait of a member for the others. */
const TIMEOUT_MS = 5 * 60_000

const FEW = unresolvable('waiting for minCount pods from a gang to appear in scheduling queue')

const isOfGroup = (pod: Pod, other: Pod): boolean =>
  groupKeyOf(pod) !== undefined && groupKeyOf(pod) === groupKeyOf(other)

const EVENTS: readonly ClusterEventWithHint[] = [
  { resource: 'AssignedPod', actions: ['add'], queueingHint: (pod, now) => isOfGroup(pod, now as Pod) },
  { resource: 'WaitingPod', actions: ['add'], queueingHint: (pod, now) => isOfGroup(pod, now as Pod) },
  {
    resource: PodGroups,
    actions: ['add'],
    queueingHint: (pod, now) => groupKeyOf(pod) === objectKey(now as PodGroup),
  },
]

export const gangScheduling: PluginFactory = definePlugin({
  name: 'GangScheduling',
  create({ of, cluster: { groups }, activate }: Handle) {
    const podGroups = of(PodGroups)
    /** Members with a node that wait for others, by uid. */
    const waiting = new Map<string, (verdict: Verdict) => void>()
    return {
      eventsToRegister: EVENTS,
      preEnqueue({ pod }) {
        const key = groupKeyOf(pod)
        if (key === undefined) return undefined
        const group = podGroups.get(key)
        if (group === undefined) {
          const name = JSON.stringify(pod.spec.schedulingGroup?.podGroupName)
          return unresolvable(`waiting for pods's pod group ${name} to appear in scheduling queue`)
        }
        const { gang } = group.spec.schedulingPolicy
        return gang === undefined || groups.sizeOf(key) >= gang.minCount ? undefined : FEW
      },
      permit({ pod, uid }) {
        const key = groupKeyOf(pod)
        if (key === undefined) return undefined
        const group = podGroups.get(key)
        if (group === undefined) {
          const name = JSON.stringify(pod.spec.schedulingGroup?.podGroupName)
          return failed(`failed to get podGroup ${key}: podgroup.scheduling.k8s.io ${name} not found`)
        }
        const { gang } = group.spec.schedulingPolicy
        if (gang === undefined) return undefined
        if (groups.scheduledCount(key) >= gang.minCount) {
          for (const other of groups.scheduled(key)) waiting.get(other)?.(undefined)
          return undefined
        }
        activate(groups.unscheduled(key).map((other) => other.uid))
        return {
          timeoutMs: TIMEOUT_MS,
          reason: 'waiting for minCount pods from a gang to be scheduled',
          decided(over) {
            const { promise, resolve } = Promise.withResolvers<Verdict>()
            waiting.set(uid, resolve)
            onAbort(over, () => waiting.delete(uid))
            return promise
          },
        }
      },
    }
  },
})
