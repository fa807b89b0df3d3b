/** The interface of the volume manager that pod workers use. */
import type { Pod } from '#apis/core/v1.ts'

import type { VolumeFsUse } from '../machine/node-stats.ts'

/** A mounted volume of a pod. */
export interface MountedVolume {
  /** '' for a volume that the runtime mounts. */
  readonly hostPath: string
  readonly image?: VolumeImage
  /** `hostPath` is a block device or a link to one. */
  readonly isDevice?: boolean
  /** True even if the mount is writable: content from the API is never written. */
  readonly readOnly: boolean
}

/** The image of an image volume. */
export interface VolumeImage {
  readonly reference: string
  readonly pullPolicy: string
}

/** `failures` has one `FailedMount` message per volume: `MountVolume.SetUp failed for volume "v" : …`. */
export type MountResult =
  | { readonly failures: readonly string[] }
  | { readonly mounts: ReadonlyMap<string, MountedVolume> }

export interface SubPathRequest {
  readonly uid: string
  readonly container: string
  readonly volume: string
  /** The index in the container's volumeMounts. */
  readonly index: number
  /** The path of the volume. */
  readonly hostPath: string
  /** Relative, with `$(NAME)` of subPathExpr expanded. */
  readonly subPath: string
}

export interface VolumeCount {
  /** `kubernetes.io/empty-dir`. */
  readonly plugin: string
  readonly desired: number
  readonly actual: number
}

export interface VolumeManager {
  /**
   * Mounts all volumes of the pod and updates their content. Called in each sync, also for volumes mounted before a
   * restart. The failure of one volume does not stop the others.
   */
  mount(pod: Pod, signal: AbortSignal): Promise<MountResult>
  /**
   * Mounts a subPath, safe from concurrent changes of the volume, and returns its path. Rejects with an error such as
   * `failed to create subPath directory for volumeMount "v" of container "c"`.
   */
  subPath(request: SubPathRequest): Promise<string>
  /** Reads a file inside a volume, and never outside it. Rejects when it cannot be read. */
  read(hostPath: string, path: string): Promise<string>
  /** Unmounts all volumes of a pod whose containers have ended. Idempotent. */
  unmount(uid: string): Promise<void>
  /** UIDs of pods with volumes on disk, including those from before a restart. */
  uids(): Promise<readonly string[]>
  /** Usage of the volumes of a pod, where it is known. Default: none. */
  measure?(uid: string): Promise<readonly VolumeFsUse[]>
  /** Desired and actual number of volumes per plugin. Default: not counted. */
  counts?(): Iterable<VolumeCount>
}
