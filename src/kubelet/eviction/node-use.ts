/** What eviction goes by: what is left of the node, and what its pods use of it. */
import type { Pod } from '#apis/core/v1.ts'

import type { Disk } from '../gc/image-garbage.ts'

export interface ContainerUse {
  readonly name: string
  readonly memoryBytes: number
  readonly rootfsBytes: number
  readonly rootfsInodes: number
  readonly logBytes: number
  readonly logInodes: number
}

export interface VolumeUse {
  readonly name: string
  readonly bytes: number
  readonly inodes: number
}

export interface PodUse {
  readonly pod: Pod
  /** False when nobody knows what it uses: it goes first. */
  readonly isKnown: boolean
  /** The working set. */
  readonly memoryBytes: number
  readonly processes: number
  readonly containers: readonly ContainerUse[]
  /** Of those on the node's own disk. */
  readonly volumes: readonly VolumeUse[]
  /** Of what the kubelet lends it: its hosts file and the messages of its containers, which may write to them (CVE-2020-8557). */
  readonly files?: { readonly bytes: number; readonly inodes: number }
}

export interface NodeUse {
  readonly memory?: { readonly availableBytes: number; readonly capacityBytes: number }
  /** Where the kubelet has its files. */
  readonly nodeDisk?: Disk
  /** Where the runtime has its images. */
  readonly imageDisk?: Disk
  /** Both are not the same. */
  readonly hasImageDisk: boolean
  readonly processes?: { readonly available: number; readonly capacity: number }
  readonly pods: readonly PodUse[]
}
