/**
 * Protects storage in use: claims of pods, bound volumes and VolumeAttributesClasses. Admission or these controllers
 * add a finalizer; they remove it once the object is terminating and unused.
 */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  type Pod,
  Pods,
} from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { VolumeAttributesClasses } from '#apis/storage/v1.ts'
import {
  addFinalizer,
  hasFinalizer,
  isBeingDeleted,
  type KubeObject,
  objectKey,
  removeFinalizer,
} from '#meta/object.ts'
import { isOver, isScheduled } from '#model/pods.ts'
import { claimKeysOf, claimNameOf, notMadeForPod } from '#model/volumes/volumes.ts'
import type { Cache, CacheIndex } from '#reconcile/cache.ts'
import { EVENTS, itself, related, rule } from '#reconcile/controller.ts'

import { perRun } from '../controller.ts'
import { type Controller, type ControllerContext, defineController } from '../controller.ts'
import { PODS_BY_CLAIM } from './pods-by-claim.ts'

interface Protection<T extends KubeObject> extends Pick<Controller, 'name' | 'aliases' | 'account' | 'rules'> {
  readonly kind: Kind<T>
  readonly finalizer: string
  /** Watches of kinds that may stop using the object. */
  readonly users: Controller['watches']
  readonly isUsed: (object: T, context: ControllerContext) => boolean | Promise<boolean>
}

function protect<T extends KubeObject>({ kind, finalizer, users, isUsed, ...rest }: Protection<T>): Controller {
  return defineController({
    ...rest,
    watches: [itself(kind), ...users],
    async reconcile(key, context) {
      const { cache, client, signal } = context
      const object = cache.get(kind, key)
      if (object === undefined) return
      const isGoing = isBeingDeleted(object)
      if (isGoing !== hasFinalizer(object, finalizer) || (isGoing && (await isUsed(object, context)))) return
      const changed = { ...object, metadata: { ...object.metadata } }
      if (isGoing) removeFinalizer(changed, finalizer)
      else addFinalizer(changed, finalizer)
      await client.update(kind, changed, { signal })
    },
  })
}

/** Only pods that may have stopped using a claim matter. */
function mayRelease(pod: Pod): boolean {
  return isOver(pod) || !isScheduled(pod)
}

export const claimProtectionController: Controller = protect({
  name: 'persistentvolumeclaim-protection-controller',
  aliases: ['pvc-protection'],
  account: 'pvc-protection-controller',
  kind: PersistentVolumeClaims,
  finalizer: 'kubernetes.io/pvc-protection',
  users: [{ ...related(Pods, claimKeysOf, mayRelease), skipsAdded: true }],
  rules: [
    rule('', 'persistentvolumeclaims', 'get list watch update'),
    rule('', 'persistentvolumeclaims/status', 'update'),
    rule('', 'pods', 'get list watch'),
    EVENTS,
  ],

  async isUsed(claim, context) {
    const known = context.cache.by(Pods, PODS_BY_CLAIM, objectKey(claim))
    if (known.some((pod) => uses(pod, claim))) return true
    return isUsedSince(claim, context)
  },
})

/** Only a pod with a node: no kubelet starts a pod whose claim is terminating. */
function uses(pod: Pod, claim: PersistentVolumeClaim): boolean {
  if (!isScheduled(pod) || pod.metadata.namespace !== claim.metadata.namespace) return false
  return (pod.spec.volumes ?? []).some((volume) => {
    if (claimNameOf(pod, volume) !== claim.metadata.name) return false
    return volume.ephemeral === undefined || (!isShutDown(pod) && notMadeForPod(pod, claim) === undefined)
  })
}

/** The kubelet has finished with the pod, or it has no node: its finalizers may wait for the claim. */
function isShutDown({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds === 0
}

interface PodList {
  readonly namespace: string
  readonly revision: bigint
  /** Pods that use any claim. */
  readonly pods: readonly Pod[]
}

const lastListOf = perRun(() => ({ listed: undefined as PodList | undefined }))

/**
 * Whether a pod that the cache lacks uses the claim, by a list made after the claim's deletion. Many claims share one
 * list; a listed pod may be gone by now.
 */
async function isUsedSince(claim: PersistentVolumeClaim, context: ControllerContext): Promise<boolean> {
  const { client, signal } = context
  const { namespace = '', resourceVersion = '0' } = claim.metadata
  const last = lastListOf(context)
  const { listed } = last
  const isRecent = listed?.namespace === namespace && listed.revision >= BigInt(resourceVersion)
  if (isRecent && !listed.pods.some((pod) => uses(pod, claim))) return false
  const list = await client.list(Pods, { namespace, signal })
  const pods = list.items.filter((pod) => claimKeysOf(pod).length > 0)
  last.listed = { namespace, revision: BigInt(list.metadata.resourceVersion ?? '0'), pods }
  return pods.some((pod) => uses(pod, claim))
}

export const volumeProtectionController: Controller = protect({
  name: 'persistentvolume-protection-controller',
  aliases: ['pv-protection'],
  account: 'pv-protection-controller',
  kind: PersistentVolumes,
  finalizer: 'kubernetes.io/pv-protection',
  users: [],
  rules: [rule('', 'persistentvolumes', 'get list watch update'), EVENTS],
  isUsed: ({ status }) => status.phase === 'Bound',
})

const CLAIMS_BY_ATTRIBUTES: CacheIndex<PersistentVolumeClaim> = { name: 'attributes', of: classesOfClaim }
const VOLUMES_BY_ATTRIBUTES: CacheIndex<PersistentVolume> = { name: 'attributes', of: classesOfVolume }

export const volumeAttributesClassProtectionController: Controller = protect({
  name: 'volumeattributesclass-protection-controller',
  kind: VolumeAttributesClasses,
  finalizer: 'kubernetes.io/vac-protection',
  users: [
    { ...related(PersistentVolumeClaims, classesOfClaim), skipsAdded: true },
    { ...related(PersistentVolumes, classesOfVolume), skipsAdded: true },
  ],
  rules: [
    rule('', 'persistentvolumeclaims persistentvolumes', 'get list watch'),
    rule('storage.k8s.io', 'volumeattributesclasses', 'get list watch update'),
    EVENTS,
  ],
  isUsed: ({ metadata: { name = '' } }, { cache }) => isClassUsed(name, cache),
})

function isClassUsed(name: string, cache: Cache): boolean {
  return (
    cache.by(PersistentVolumes, VOLUMES_BY_ATTRIBUTES, name).length > 0 ||
    cache.by(PersistentVolumeClaims, CLAIMS_BY_ATTRIBUTES, name).length > 0
  )
}

/** The desired, the current and the pending class. */
function classesOfClaim({ spec, status }: PersistentVolumeClaim): string[] {
  const tried = status.modifyVolumeStatus?.targetVolumeAttributesClassName
  return named(spec.volumeAttributesClassName, status.currentVolumeAttributesClassName, tried)
}

function classesOfVolume({ spec }: PersistentVolume): string[] {
  return named(spec.volumeAttributesClassName)
}

function named(...names: (string | undefined)[]): string[] {
  return [...new Set(names.filter((name) => name !== undefined && name !== ''))] as string[]
}
