/** Finds the volumes that must be attached before a mount, and their names in node status. Pure. */
import { createHash } from 'node:crypto'

import type {
  FCVolumeSource,
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeSpec,
  Pod,
  Volume,
} from '#apis/core/v1.ts'
import { PersistentVolumeClaims, PersistentVolumes } from '#apis/core/v1.ts'
import type { VolumeAttachment, VolumeAttachmentSource } from '#apis/storage/v1.ts'
import { keyOf } from '#meta/object.ts'
import { translatedInline, translatedVolume } from '#model/volumes/csi-migration.ts'
import { claimNameOf, notMadeForPod } from '#model/volumes/volumes.ts'
import type { Cache, CacheIndex } from '#reconcile/cache.ts'

export interface Attachable {
  /** `kubernetes.io/csi/<driver>^<handle>`: equal for the same volume. */
  readonly name: string
  /** The name for messages. */
  readonly title: string
  /** May be attached to several nodes at once. */
  readonly isShared: boolean
  /** The CSI driver that attaches it; a volume without one counts as attached at once. */
  readonly csi?: { readonly driver: string; readonly handle: string; readonly source: VolumeAttachmentSource }
  /** The in-tree plugin it comes from: attached through CSI only on nodes that migrated the plugin. */
  readonly plugin?: string
}

export const CSI = 'kubernetes.io/csi/'

export function attachableOf(volume: PersistentVolume): Attachable | undefined {
  const { metadata, spec } = volume
  const { name: title = '' } = metadata
  const source = { persistentVolumeName: title }
  if (spec.csi !== undefined) return ofDriver(title, spec, source)
  const old = translatedVolume(volume)
  if (old !== undefined) return { ...ofDriver(title, old.spec, source), plugin: old.plugin }
  const name = networkDisk(spec)
  return name === undefined ? undefined : { name, title, isShared: isShared(spec) }
}

/** An inline volume of a pod in the namespace. */
export function inlineAttachable(volume: Volume, namespace: string): Attachable | undefined {
  const old = translatedInline(volume, namespace)
  if (old !== undefined) return { ...ofDriver(old.title, old.spec, { inlineVolumeSpec: old.spec }), plugin: old.plugin }
  const name = networkDisk(volume)
  return name === undefined ? undefined : { name, title: volume.name, isShared: true }
}

/** The volume of a VolumeAttachment; undefined if it is unknown by now. */
export function attachableIn({ spec }: VolumeAttachment, cache: Cache): Attachable | undefined {
  const { persistentVolumeName = '', inlineVolumeSpec: inline } = spec.source
  if (inline !== undefined) return inline.csi === undefined ? undefined : ofDriver('', inline, spec.source)
  const volume = cache.get(PersistentVolumes, persistentVolumeName)
  return volume === undefined ? undefined : attachableOf(volume)
}

function ofDriver(title: string, spec: PersistentVolumeSpec, source: VolumeAttachmentSource): Attachable {
  const { driver = '', volumeHandle: handle = '' } = spec.csi ?? {}
  return { name: `${CSI}${driver}^${handle}`, title, isShared: isShared(spec), csi: { driver, handle, source } }
}

function isShared({ accessModes = [] }: PersistentVolumeSpec): boolean {
  return accessModes.length === 0 || accessModes.some((mode) => mode.endsWith('Many'))
}

/** Disks that nodes reach over the network without an attach call. */
function networkDisk({ iscsi, fc }: Pick<PersistentVolume['spec'] | Volume, 'iscsi' | 'fc'>): string | undefined {
  if (iscsi !== undefined) return `kubernetes.io/iscsi/${iscsi.targetPortal}:${iscsi.iqn}:${iscsi.lun}`
  const disk = fc === undefined ? undefined : fibreChannelDisk(fc)
  return disk === undefined ? undefined : `kubernetes.io/fc/${disk}`
}

function fibreChannelDisk({ targetWWNs = [], lun, wwids = [] }: FCVolumeSource): string | undefined {
  if (targetWWNs.length > 0 && lun !== undefined) return `[${targetWWNs.join(' ')}]:${lun}`
  return wwids.length > 0 ? `[${wwids.join(' ')}]` : undefined
}

/** Driver and handle in a volume name of node status; undefined for volumes without a driver. */
export function csiIn(name: string): { readonly driver: string; readonly handle: string } | undefined {
  if (!name.startsWith(CSI)) return undefined
  const [driver = '', handle = ''] = name.slice(CSI.length).split('^')
  return { driver, handle }
}

/** The name of the VolumeAttachment: deterministic for a volume and node. */
export function attachmentName({ driver, handle }: { driver: string; handle: string }, node: string): string {
  return `csi-${createHash('sha256').update(`${handle}${driver}${node}`).digest('hex')}`
}

export const VOLUMES_BY_NAME: CacheIndex<PersistentVolume> = {
  name: 'attachable',
  of(volume) {
    const attachable = attachableOf(volume)
    return attachable === undefined ? [] : [attachable.name]
  },
}

export const PODS_BY_INLINE: CacheIndex<Pod> = {
  name: 'inline-attachable',
  of({ metadata: { namespace = '' }, spec }) {
    const found = (spec.volumes ?? []).map((volume) => inlineAttachable(volume, namespace)?.name)
    return found.filter((name) => name !== undefined)
  },
}

/** The volume that the claim is bound to, if both refer to each other. */
export function volumeOfClaim(claim: PersistentVolumeClaim, cache: Cache): PersistentVolume | undefined {
  const { volumeName = '' } = claim.spec
  if (claim.status.phase !== 'Bound' || volumeName === '') return undefined
  const volume = cache.get(PersistentVolumes, volumeName)
  return volume?.spec.claimRef?.uid === claim.metadata.uid ? volume : undefined
}

/** The attachable volume of a pod: of its claim, or inline. */
export function attachableFor(pod: Pod, volume: Volume, cache: Cache): Attachable | undefined {
  const name = claimNameOf(pod, volume)
  if (name === undefined) return inlineAttachable(volume, pod.metadata.namespace ?? '')
  const claim = cache.get(PersistentVolumeClaims, keyOf(pod.metadata.namespace, name))
  if (claim === undefined || (volume.ephemeral !== undefined && notMadeForPod(pod, claim) !== undefined))
    return undefined
  const bound = volumeOfClaim(claim, cache)
  return bound === undefined ? undefined : attachableOf(bound)
}

/** The names of all attachable volumes of the pod. */
export function namesFor(pod: Pod, cache: Cache): string[] {
  const found = (pod.spec.volumes ?? []).map((volume) => attachableFor(pod, volume, cache)?.name)
  return found.filter((name) => name !== undefined)
}
