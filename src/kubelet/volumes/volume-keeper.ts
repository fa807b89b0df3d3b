/** What pod workers ask of whoever keeps the volumes of pods on this node. */
import type { Pod } from '#apis/core/v1.ts'

import type { VolumeFsUse } from '../node-stats.ts'

/** Where a volume of a pod is on this node. */
export interface BroughtVolume {
  /** '' for what the runtime mounts by itself. */
  readonly hostPath: string
  readonly image?: VolumeImage
  /** What is at `hostPath` is a device, or leads to one. */
  readonly isDevice?: boolean
  /** Whatever the mount says: content of the API is never written to. */
  readonly readOnly: boolean
}

/** An image whose content is the volume. */
export interface VolumeImage {
  readonly reference: string
  readonly pullPolicy: string
}

/** `failures`: one message for each volume, as in `FailedMount` events: `MountVolume.SetUp failed for volume "v" : …`. */
export type Brought = { readonly failures: readonly string[] } | { readonly mounts: ReadonlyMap<string, BroughtVolume> }

export interface SubPathAsk {
  readonly uid: string
  readonly container: string
  readonly volume: string
  /** Which of the container's volumeMounts it is. */
  readonly index: number
  /** Where the whole volume is. */
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

export interface VolumeKeeper {
  /**
   * Brings every volume of the pod, or what has changed of them since: asked again in each sync of the pod, and for pods whose
   * volumes were brought before a restart. Failures of one volume do not keep the others from coming.
   */
  bring(pod: Pod, signal: AbortSignal): Promise<Brought>
  /**
   * Where a part of a volume is, safe from whoever changes the volume meanwhile. Rejects with what the container cannot be
   * created for: `failed to create subPath directory for volumeMount "v" of container "c"`, …
   */
  subPath(ask: SubPathAsk): Promise<string>
  /** The text of a file in a volume, and of nothing outside. Rejects when it cannot be read. */
  read(hostPath: string, path: string): Promise<string>
  /** Gives back everything of a pod whose containers have ended. Harmless when repeated. */
  leave(uid: string): Promise<void>
  /** Whose volumes are on the disk, from before a restart too. */
  uids(): Promise<readonly string[]>
  /** How much the volumes of a pod hold, those of which that is told. Default: of none. */
  measure?(uid: string): Promise<readonly VolumeFsUse[]>
  /** By kind of volume, how many are to be there and how many are. Default: nobody counts. */
  counts?(): Iterable<VolumeCount>
}
