/**
 * The interface of a volume plugin, which plans from the API objects what a volume contains. `set-up.ts` carries out
 * the plan.
 */
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
import type { TokenOptions } from './pod-tokens.ts'
import type { VolumeImage } from './volume-manager.ts'

export interface FileContent {
  readonly data: Buffer
  readonly mode: number
  /** The owner; undefined: the kubelet's user. */
  readonly user?: number | undefined
}

/** Files by path relative to the volume. */
export type Payload = ReadonlyMap<string, FileContent>

/** How a volume is set up. */
export type VolumePlan =
  /** A path of the node. It is created only if its type says so. */
  | { readonly at: 'node'; readonly path: string; readonly type: string; readonly readOnly: boolean }
  /** A directory of the pod, in memory or on disk, empty or with files. */
  | { readonly at: 'pod'; readonly memory?: MemoryMount; readonly files?: Payload }
  /** A directory of the node, or the file system of its block device, bind-mounted for the pod. */
  | {
      readonly at: 'bind'
      readonly from: string
      readonly readOnly: boolean
      readonly options: readonly string[]
      /** The file system for an unformatted block device. */
      readonly fsType: string
    }
  /** A file system that `mount` attaches for the pod. */
  | {
      readonly at: 'mount'
      /** `server:/path`. */
      readonly source: string
      readonly type: string
      readonly options: readonly string[]
      readonly readOnly: boolean
    }
  /** A CSI volume. */
  | { readonly at: 'driver'; readonly source: CsiSource }
  /** A block device of the node. */
  | { readonly at: 'device'; readonly path: string; readonly readOnly: boolean }
  /** An image mounted by the runtime. */
  | { readonly at: 'runtime'; readonly image: VolumeImage }

/** A memory-backed file system. */
export interface MemoryMount {
  readonly type: 'tmpfs' | 'hugetlbfs'
  readonly options: readonly string[]
}

/** A volume of a pod; `persistent` is the PersistentVolume of its claim. */
export interface VolumeRequest {
  readonly pod: Pod
  readonly volume: Volume
  readonly persistent?: Persistent
}

export interface TrustSelection {
  readonly name: string | undefined
  readonly signerName: string | undefined
  readonly labelSelector: LabelSelector | undefined
  readonly isOptional: boolean
}

export interface CertificateOptions {
  readonly pod: Pod
  /** The projection within the pod: volume and source. */
  readonly projectionKey: string
  readonly projection: PodCertificateProjection
}

/** Both in PEM. */
export interface CredentialBundle {
  readonly key: string
  readonly chain: string
}

/** API objects that plugins read, as the node. */
export interface VolumeSources {
  /** Undefined when it does not exist. */
  configMap(pod: Pod, name: string): Promise<ConfigMap | undefined>
  secret(pod: Pod, name: string): Promise<Secret | undefined>
  token(request: TokenOptions): Promise<string>
  /** In PEM. */
  trustAnchors(request: TrustSelection): Promise<string>
  /** Rejects until a certificate is issued. */
  certificate(request: CertificateOptions): Promise<CredentialBundle>
  /** These two reject when the object does not exist. */
  claim(pod: Pod, name: string): Promise<PersistentVolumeClaim>
  persistentVolume(name: string): Promise<PersistentVolume>
  /** From the API server; undefined until it was read. */
  node(): Node | undefined
  /** Allocatable resources of the node. */
  allocatable(): ResourceList
}

export interface VolumePlugin {
  /** `kubernetes.io/empty-dir`. */
  readonly name: string
  /** The field of a pod's volume that selects the plugin. */
  readonly volume?: Exclude<keyof Volume, 'name'>
  /** The field of a PersistentVolume that selects the plugin. */
  readonly persistent?: keyof PersistentVolumeSpec
  /** True for content from the API, which is refreshed in each sync and read-only. */
  readonly isContent: boolean
  /**
   * How the usage of a volume is measured: by its own files, because it shares the disk of the node, or by its file
   * system. Default: not at all.
   */
  readonly usage?: 'files' | 'file-system'
  /** Throws the text of the `FailedMount` event after its colon, or a `VolumeFault`. */
  plan(request: VolumeRequest, sources: VolumeSources): Promise<VolumePlan>
}

/** Combines errors in the format of upstream's aggregates, without duplicates. */
export function combineErrors(errors: readonly Error[]): Error {
  const texts = [...new Set(errors.map(({ message }) => message))]
  const [first = ''] = texts
  return new Error(texts.length === 1 ? first : `[${texts.join(', ')}]`)
}
