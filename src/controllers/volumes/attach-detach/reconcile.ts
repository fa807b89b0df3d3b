/** One reconcile of a volume: finds the pods that use it and its attachments, and executes the next steps. */
import { type Node, Nodes, PersistentVolumeClaims, PersistentVolumes, type Pod, Pods } from '#apis/core/v1.ts'
import { CSIDrivers, type CSINode, CSINodes } from '#apis/storage/v1.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { isConditionTrue } from '#meta/conditions.ts'
import { keyOf, objectKey } from '#meta/object.ts'
import { isOver, isScheduled } from '#model/pods.ts'
import type { Cache } from '#reconcile/cache.ts'

import type { ControllerContext } from '../../controller.ts'
import {
  type Attachable,
  attachableOf,
  inlineAttachable,
  namesFor,
  PODS_BY_INLINE,
  volumeOfClaim,
  VOLUMES_BY_NAME,
} from '../attachable.ts'
import { PODS_BY_CLAIM } from '../pods-by-claim.ts'
import type { Attachment, VolumeState } from './actual-state.ts'
import type { Attacher } from './attacher.ts'
import { type AttachmentView, planAttachments } from './plan.ts'

/** The annotation of nodes whose kubelet leaves attaching to this controller. */
const MANAGED = 'volumes.kubernetes.io/controller-managed-attach-detach'
const MIGRATED_PLUGINS = 'storage.alpha.kubernetes.io/migrated-plugins'
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service'

export function isManaged({ metadata }: Node): boolean {
  return Object.hasOwn(metadata.annotations ?? {}, MANAGED)
}

export function isReady({ status }: Node): boolean {
  return isConditionTrue(
    status.conditions?.map(({ type, status: state }) => ({ type, status: state })),
    'Ready',
  )
}

export async function reconcileVolume(
  name: string,
  attacher: Attacher,
  context: ControllerContext,
): Promise<Requeue | undefined> {
  const { settings } = context
  const state = attacher.actualState.volume(name)
  findUsers(state, context.cache)
  attacher.follow(state)
  const nodes = new Set([...state.wanted.keys(), ...state.attachments.keys()])
  const plan = planAttachments({
    isShared: state.attachable?.isShared !== false,
    wanted: [...state.wanted.keys()],
    attachments: [...state.attachments.values()].map((one) => seen(one, state, context)),
    mayForce: !settings['disable-force-detach-on-timeout'],
    isBusy: (node, what) => attacher.waitMs(state, node, what) > 0,
  })
  for (const step of plan.steps) await attacher.take(state, step)
  const retries = [...nodes].flatMap((node) => [
    attacher.waitMs(state, node, 'attach'),
    attacher.waitMs(state, node, 'detach'),
  ])
  const waitMs = Math.min(attacher.follow(state), plan.waitMs, ...retries.filter((ms) => ms > 0))
  await attacher.updateNodeStatuses()
  if (state.wanted.size + state.attachments.size + state.pending.size === 0) attacher.actualState.forget(state)
  return waitMs === Infinity ? undefined : { requeueAfterMs: Math.ceil(waitMs) }
}

/** Updates the volume and its users; a pod stays a user until it is gone. */
function findUsers(state: VolumeState, cache: Cache): void {
  state.attachable = attachableCalled(state.name, cache) ?? state.attachable
  for (const pod of usersOf(state.name, cache)) {
    const node = pod.spec.nodeName ?? ''
    if (!isScheduled(pod) || !isOurs(node, state, cache)) continue
    const users = state.wanted.get(node) ?? new Map<string, string>()
    state.wanted.set(node, users.set(pod.metadata.uid ?? '', objectKey(pod)))
  }
  const isNeeded = mustAttach(state, cache)
  for (const [node, users] of state.wanted) {
    for (const [uid, key] of users) if (!isNeeded || !isThere(uid, cache.get(Pods, key))) users.delete(uid)
    if (users.size > 0) continue
    state.wanted.delete(node)
    state.multiAttachReported.delete(node)
  }
}

/** Some drivers need no attachment. */
function mustAttach({ attachable }: VolumeState, cache: Cache): boolean {
  const driver = attachable?.csi?.driver
  return driver === undefined || cache.get(CSIDrivers, driver)?.spec.attachRequired !== false
}

function isThere(uid: string, pod: Pod | undefined): boolean {
  return pod?.metadata.uid === uid && !isOver(pod)
}

/** Also true for a deleted node with an attached volume. */
function isOurs(name: string, { attachable, attachments }: VolumeState, cache: Cache): boolean {
  const node = cache.get(Nodes, name)
  if (node === undefined) return attachments.has(name)
  const plugin = attachable?.plugin
  return isManaged(node) && (plugin === undefined || migratedAt(cache.get(CSINodes, name)).includes(plugin))
}

/** The in-tree plugins that the node has migrated to CSI. */
export function migratedAt(node: CSINode | undefined): string[] {
  return (node?.metadata.annotations?.[MIGRATED_PLUGINS] ?? '').split(',')
}

function attachableCalled(name: string, cache: Cache): Attachable | undefined {
  const [volume] = cache.by(PersistentVolumes, VOLUMES_BY_NAME, name)
  if (volume !== undefined) return attachableOf(volume)
  const [pod] = cache.by(Pods, PODS_BY_INLINE, name)
  const { namespace = '' } = pod?.metadata ?? {}
  return pod?.spec.volumes?.map((volume) => inlineAttachable(volume, namespace)).find((one) => one?.name === name)
}

function* usersOf(name: string, cache: Cache): Generator<Pod> {
  for (const volume of cache.by(PersistentVolumes, VOLUMES_BY_NAME, name)) {
    const { claimRef } = volume.spec
    const key = keyOf(claimRef?.namespace, claimRef?.name ?? '')
    const claim = cache.get(PersistentVolumeClaims, key)
    if (claim === undefined || volumeOfClaim(claim, cache) !== volume) continue
    for (const pod of cache.by(Pods, PODS_BY_CLAIM, key)) if (namesFor(pod, cache).includes(name)) yield pod
  }
  yield* cache.by(Pods, PODS_BY_INLINE, name)
}

function seen(
  attachment: Attachment,
  { name, wanted }: VolumeState,
  { cache, clock }: ControllerContext,
): AttachmentView {
  const node = cache.get(Nodes, attachment.node)
  const isWanted = wanted.has(attachment.node)
  if (isWanted) attachment.unwantedSinceMs = undefined
  else attachment.unwantedSinceMs ??= clock.elapsed()
  // Until the node has updated its status after the attachment, it may have mounted the volume.
  if (node !== undefined && node.metadata.resourceVersion !== attachment.nodeVersion) {
    attachment.isInUse = node.status.volumesInUse?.includes(name) ?? false
  }
  return {
    node: attachment.node,
    isConfirmed: attachment.isConfirmed,
    isMounted: attachment.isInUse,
    unwantedMs: isWanted ? 0 : clock.elapsed() - (attachment.unwantedSinceMs ?? 0),
    isHealthy: node !== undefined && isReady(node),
    isOutOfService: node?.spec.taints?.some(({ key }) => key === OUT_OF_SERVICE) ?? false,
  }
}
