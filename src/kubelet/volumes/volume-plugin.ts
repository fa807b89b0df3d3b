/** The shape of a kind of volume: it says what is to be there, from what the API says; others bring it there. */
import type {
  ConfigMap,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeSpec,
  Pod,
  PodCertificateProjection,
  Secret,
  Volume,
} from '#apis/core/v1.ts'
import type { LabelSelector } from '#meta/label-selector.ts'
import type { ResourceList } from '#model/resource-lists.ts'

import type { CsiSource, Persistent } from './csi/csi-source.ts'
import type { VolumeImage } from './volume-keeper.ts'

export interface FileContent {
  readonly data: Buffer
  readonly mode: number
  /** Whose it is; the kubelet's own when undefined. */
  readonly user?: number | undefined
}

/** Files by their path below the volume. */
export type Payload = ReadonlyMap<string, FileContent>

/** What is to be there. */
export type VolumePlan =
  /** Something of the node itself: nothing is made but what its type says. */
  | { readonly at: 'node'; readonly path: string; readonly type: string; readonly readOnly: boolean }
  /** A directory of the pod's own, in memory or on the disk, with files of ours in it or none. */
  | { readonly at: 'pod'; readonly memory?: MemoryMount; readonly files?: Payload }
  | BindPlan
  /** Something that a driver brings. */
  | { readonly at: 'driver'; readonly source: CsiSource }
  /** A device of the node, handed to containers as it is. */
  | { readonly at: 'device'; readonly path: string; readonly readOnly: boolean }
  /** An image that the runtime mounts. */
  | { readonly at: 'runtime'; readonly image: VolumeImage }

/** A directory of the node, or the file system on a block device of it, mounted where the pod has its volumes. */
export interface BindPlan {
  readonly at: 'bind'
  readonly from: string
  readonly readOnly: boolean
  readonly options: readonly string[]
  /** Of the PersistentVolume. */
  readonly name: string
  /** The file system that an unformatted block device gets. */
  readonly fsType: string
}

/** Memory as a file system. */
export interface MemoryMount {
  readonly type: 'tmpfs' | 'hugetlbfs'
  readonly options: readonly string[]
}

/** A volume as its pod has it; `persistent` is what stands behind its claim. */
export interface VolumeAsk {
  readonly pod: Pod
  readonly volume: Volume
  readonly persistent?: Persistent
}

export interface TokenAsk {
  readonly pod: Pod
  readonly audience: string
  readonly expirationSeconds: number | undefined
}

export interface TrustAsk {
  readonly name: string | undefined
  readonly signerName: string | undefined
  readonly labelSelector: LabelSelector | undefined
  readonly isOptional: boolean
}

export interface CertificateAsk {
  readonly pod: Pod
  /** Which projection of the pod it is: volume and source. */
  readonly place: string
  readonly projection: PodCertificateProjection
}

/** Both PEM. */
export interface CredentialBundle {
  readonly key: string
  readonly chain: string
}

/** What kinds of volumes ask the API server for, with the identity of the node. */
export interface VolumeSources {
  /** Undefined when there is none. */
  configMap(pod: Pod, name: string): Promise<ConfigMap | undefined>
  secret(pod: Pod, name: string): Promise<Secret | undefined>
  token(ask: TokenAsk): Promise<string>
  /** PEM. */
  trustAnchors(ask: TrustAsk): Promise<string>
  /** Rejects until there is one. */
  certificate(ask: CertificateAsk): Promise<CredentialBundle>
  /** These two reject when there is none. */
  claim(pod: Pod, name: string): Promise<PersistentVolumeClaim>
  persistentVolume(name: string): Promise<PersistentVolume>
  /** As the API server has it; undefined until it was read. */
  node(): Node | undefined
  /** Of the node. */
  allocatable(): ResourceList
}

export interface VolumePlugin {
  /** `kubernetes.io/empty-dir`. */
  readonly name: string
  /** The field of a pod's volume that asks for it. */
  readonly volume?: Exclude<keyof Volume, 'name'>
  /** The field of a PersistentVolume that asks for it. */
  readonly persistent?: keyof PersistentVolumeSpec
  /** What the API holds: asked again in each sync, and never written to by containers. */
  readonly isContent: boolean
  /** Throws what the `FailedMount` event says after its colon, or a `VolumeFault`. */
  plan(ask: VolumeAsk, sources: VolumeSources): Promise<VolumePlan>
}

/** A failure with another beginning than `MountVolume.SetUp failed`. */
export class VolumeFault extends Error {
  override readonly name = 'VolumeFault'
  readonly phase: string

  constructor(phase: string, message: string) {
    super(message)
    this.phase = phase
  }
}

/** Several failures as one, as upstream's aggregates read: each once. */
export function oneOf(errors: readonly Error[]): Error {
  const texts = [...new Set(errors.map(({ message }) => message))]
  const [first = ''] = texts
  return new Error(texts.length === 1 ? first : `[${texts.join(', ')}]`)
}
