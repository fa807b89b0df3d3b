/**
 * Protection of storage that is in use: a claim that a pod mounts, a volume that is bound, a class of attributes that
 * volumes have. Each carries a finalizer, which admission puts on it and these controllers where admission did not; it is
 * taken off once the object is to go and nothing uses it.
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
import { claimKeysOf, claimNameOf, notMadeForPod } from '#model/volumes.ts'

import type { Cache, CacheIndex } from './cache.ts'
import {
  type Controller,
  type ControllerContext,
  defineController,
  EVENTS,
  itself,
  perRun,
  related,
  rule,
} from './controller.ts'
import { PODS_BY_CLAIM } from './pods-by-claim.ts'

interface Protection<T extends KubeObject> extends Pick<Controller, 'name' | 'aliases' | 'account' | 'rules'> {
  readonly kind: Kind<T>
  readonly finalizer: string
  /** What may have stopped to use one. */
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

/** What a pod is on its way to use, or uses no more, is no reason to look. */
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

/** Only a pod that has a node: no kubelet starts one whose claim is being deleted. */
function uses(pod: Pod, claim: PersistentVolumeClaim): boolean {
  if (!isScheduled(pod) || pod.metadata.namespace !== claim.metadata.namespace) return false
  return (pod.spec.volumes ?? []).some((volume) => {
    if (claimNameOf(pod, volume) !== claim.metadata.name) return false
    return volume.ephemeral === undefined || (!isShutDown(pod) && notMadeForPod(pod, claim) === undefined)
  })
}

/** Its kubelet is done with it, or nobody waits for one: finalizers of the pod may be waiting for the claim to go. */
function isShutDown({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds === 0
}

interface Listed {
  readonly namespace: string
  readonly revision: bigint
  /** Those that use any claim. */
  readonly pods: readonly Pod[]
}

const lastListOf = perRun(() => ({ listed: undefined as Listed | undefined }))

/**
 * Whether a pod uses the claim that the cache does not know yet, as they were after the claim began to go. Many claims that
 * go together are looked at with one list; what uses one of them there may have gone since.
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

/** The one it is to have, the one it has, and the one that is being tried. */
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
