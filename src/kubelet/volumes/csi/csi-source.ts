/** Derives the parameters of a CSI volume from the pod or PersistentVolume and the CSIDriver. Pure. */
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '#apis/core/v1.ts'
import type { CSIDriver } from '#apis/storage/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import type { Input } from '#lib/protobuf/message.ts'

import { inlineHandle } from './csi-names.ts'
import { CAPABILITY, type VolumeCapability } from './csi-node-service.ts'

export interface SecretRef {
  readonly namespace: string
  readonly name: string
}

/** A CSI volume, inline in a pod or behind a claim. */
export interface CsiSource {
  readonly driver: string
  readonly handle: string
  readonly lifecycle: 'Persistent' | 'Ephemeral'
  readonly fsType: string
  readonly attributes: Readonly<Record<string, string>>
  readonly readOnly: boolean
  readonly isBlock: boolean
  readonly accessModes: readonly string[] | undefined
  readonly mountOptions: readonly string[]
  readonly publishSecret: SecretRef | undefined
  readonly stageSecret: SecretRef | undefined
  readonly expandSecret: SecretRef | undefined
  /** The PersistentVolume, to detect an expansion. */
  readonly persistent: PersistentVolume | undefined
  readonly claim: PersistentVolumeClaim | undefined
}

type SomeRef = { readonly namespace?: string; readonly name?: string } | undefined

const refOf = (ref: SomeRef, namespace = ''): SecretRef | undefined =>
  ref === undefined ? undefined : { namespace: ref.namespace ?? namespace, name: ref.name ?? '' }

export function inlineSource({ metadata }: Pod, { name, csi }: Volume): CsiSource {
  const { driver = '', fsType = '', volumeAttributes = {}, readOnly = false, nodePublishSecretRef } = csi ?? {}
  return {
    driver,
    handle: inlineHandle(metadata.uid ?? '', name),
    lifecycle: 'Ephemeral',
    fsType,
    attributes: volumeAttributes,
    readOnly,
    isBlock: false,
    accessModes: undefined,
    mountOptions: [],
    publishSecret: refOf(nodePublishSecretRef, metadata.namespace),
    stageSecret: undefined,
    expandSecret: undefined,
    persistent: undefined,
    claim: undefined,
  }
}

export interface Persistent {
  readonly object: PersistentVolume
  readonly readOnly: boolean
  readonly claim?: PersistentVolumeClaim | undefined
}

export function persistentSource({ object, readOnly, claim }: Persistent): CsiSource {
  const { csi, accessModes, mountOptions = [], volumeMode } = object.spec
  return {
    driver: csi?.driver ?? '',
    handle: csi?.volumeHandle ?? '',
    lifecycle: 'Persistent',
    fsType: csi?.fsType ?? '',
    attributes: csi?.volumeAttributes ?? {},
    readOnly,
    isBlock: volumeMode === 'Block',
    accessModes,
    mountOptions,
    publishSecret: refOf(csi?.nodePublishSecretRef),
    stageSecret: refOf(csi?.nodeStageSecretRef),
    expandSecret: refOf(csi?.nodeExpandSecretRef),
    persistent: object,
    claim,
  }
}

const MODES: Readonly<Record<string, number>> = {
  ReadWriteOnce: 1,
  ReadWriteOncePod: 1,
  ReadOnlyMany: 3,
  ReadWriteMany: 5,
}
/** For drivers with the capability SINGLE_NODE_MULTI_WRITER. */
const FINER_MODES: Readonly<Record<string, number>> = { ...MODES, ReadWriteOnce: 7, ReadWriteOncePod: 6 }

/** `mountGroup` is the fsGroup, for drivers that apply it themselves. */
export function capabilityOf(
  source: CsiSource,
  capabilities: ReadonlySet<number>,
  mountGroup?: number,
): Input<VolumeCapability> {
  const { isBlock, fsType, mountOptions, accessModes } = source
  const modes = capabilities.has(CAPABILITY.singleNodeMultiWriter) ? FINER_MODES : MODES
  const accessMode = { mode: modes[accessModes?.[0] ?? 'ReadWriteOnce'] ?? 0 }
  if (isBlock) return { accessMode, block: {} }
  const volumeMountGroup = mountGroup === undefined ? '' : String(mountGroup)
  return { accessMode, mount: { fsType, mountFlags: [...mountOptions], volumeMountGroup } }
}

/** Throws when the driver does not support the lifecycle mode. */
export function checkLifecycle({ driver, lifecycle }: CsiSource, object: CSIDriver | undefined): void {
  if (object === undefined) {
    if (lifecycle === 'Persistent') return
    throw new Error(`volume mode ${goQuote(lifecycle)} not supported by driver ${driver} (no CSIDriver object)`)
  }
  const modes = object.spec.volumeLifecycleModes ?? []
  if (modes.includes(lifecycle)) return
  const list = `[${modes.map(goQuote).join(' ')}]`
  throw new Error(`volume mode ${goQuote(lifecycle)} not supported by driver ${driver} (only supports ${list})`)
}

export const needsAttachment = ({ lifecycle }: CsiSource, object: CSIDriver | undefined): boolean =>
  lifecycle === 'Persistent' && object?.spec.attachRequired !== false

/** True if the kubelet applies the fsGroup to the files. */
export function takesGroup(source: CsiSource, fsGroup: number | undefined, object: CSIDriver | undefined): boolean {
  const policy = object === undefined ? 'ReadWriteOnceWithFSType' : (object.spec.fsGroupPolicy ?? '')
  if (fsGroup === undefined || policy === 'None' || source.readOnly) return false
  if (policy === 'File') return true
  if (source.fsType === '') return false
  if (source.lifecycle === 'Ephemeral') return true
  return (source.accessModes ?? []).some((mode) => mode === 'ReadWriteOnce' || mode === 'ReadWriteOncePod')
}

/** Pod attributes for drivers with podInfoOnMount. */
export function podAttributes(
  pod: Pod,
  { lifecycle }: CsiSource,
  object: CSIDriver | undefined,
): Record<string, string> {
  if (object?.spec.podInfoOnMount !== true) return {}
  const { name = '', namespace = '', uid = '' } = pod.metadata
  return {
    'csi.storage.k8s.io/pod.name': name,
    'csi.storage.k8s.io/pod.namespace': namespace,
    'csi.storage.k8s.io/pod.uid': uid,
    'csi.storage.k8s.io/serviceAccount.name': pod.spec.serviceAccountName ?? '',
    'csi.storage.k8s.io/ephemeral': String(lifecycle === 'Ephemeral'),
  }
}

export const TOKENS_KEY = 'csi.storage.k8s.io/serviceAccount.tokens'
