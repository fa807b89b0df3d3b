/**
 * Ephemeral volumes: creates a claim for each ephemeral volume of a pod, owned by the pod. If another claim has the
 * name, the pod gets an event and waits.
 */
import { type PersistentVolumeClaim, PersistentVolumeClaims, type Pod, Pods, type Volume } from '#apis/core/v1.ts'
import { controllerRef, isBeingDeleted, keyOf, objectKey } from '#meta/object.ts'
import { claimNameOf, notMadeForPod } from '#model/volumes/volumes.ts'
import type { Cache } from '#reconcile/cache.ts'
import { EVENTS, related, rule } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../controller.ts'
import { messageOf } from '../pod-creation.ts'
import { PODS_BY_CLAIM } from './pods-by-claim.ts'

export const ephemeralVolumeController: Controller = defineController({
  name: 'ephemeral-volume-controller',
  aliases: ['ephemeral-volume'],
  component: 'ephemeral_volume',
  watches: [
    // The volumes of a pod are immutable.
    related(Pods, keysOf, () => false),
    { ...related(PersistentVolumeClaims, podsOf, () => false), skipsAdded: true },
  ],
  rules: [
    rule('', 'pods', 'get list watch'),
    rule('', 'pods/finalizers', 'update'),
    rule('', 'persistentvolumeclaims', 'get list watch create'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const pod = context.cache.get(Pods, key)
    if (pod === undefined || isBeingDeleted(pod)) return
    for (const volume of pod.spec.volumes ?? []) {
      try {
        await provide(pod, volume, context)
      } catch (error) {
        const message = `ephemeral volume ${volume.name}: ${messageOf(error)}`
        context.event(pod, { type: 'Warning', reason: 'FailedBinding', message })
        throw new Error(`pod ${key}, ${message}`, { cause: error })
      }
    }
  },
})

function keysOf(pod: Pod): string[] {
  const isAsking = pod.spec.volumes?.some(({ ephemeral }) => ephemeral !== undefined) ?? false
  return isAsking && !isBeingDeleted(pod) ? [objectKey(pod)] : []
}

/** Creates a deleted claim again while its pod exists. */
function podsOf(claim: PersistentVolumeClaim, cache: Cache): string[] {
  return cache.by(Pods, PODS_BY_CLAIM, objectKey(claim)).flatMap(keysOf)
}

async function provide(pod: Pod, volume: Volume, { cache, client, meters, signal }: ControllerContext): Promise<void> {
  const { volumeClaimTemplate: template } = volume.ephemeral ?? {}
  if (template === undefined) return
  const { namespace } = pod.metadata
  const name = claimNameOf(pod, volume) ?? ''
  const claim = cache.get(PersistentVolumeClaims, keyOf(namespace, name))
  if (claim !== undefined) {
    const problem = notMadeForPod(pod, claim)
    if (problem !== undefined) throw new Error(problem)
    return
  }
  const { labels, annotations } = template.metadata ?? {}
  const metadata = {
    name,
    ...(namespace !== undefined && { namespace }),
    ownerReferences: [controllerRef(pod, Pods)],
    ...(labels !== undefined && { labels }),
    ...(annotations !== undefined && { annotations }),
  }
  meters.family('ephemeral_volume_controller_create_total').labels().inc()
  try {
    await client.create(PersistentVolumeClaims, { metadata, spec: template.spec }, { signal })
  } catch (error) {
    meters.family('ephemeral_volume_controller_create_failures_total').labels().inc()
    throw new Error(`create PVC ${name}: ${messageOf(error)}`, { cause: error })
  }
}
