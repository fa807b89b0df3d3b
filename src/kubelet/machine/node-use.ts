/** The types of node and pod usage that the eviction manager reads. */
import type { Pod } from '#apis/core/v1.ts'

import type { Disk } from './disks.ts'

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
  /** False when the usage is unknown; such pods are evicted first. */
  readonly isKnown: boolean
  /** The working set. */
  readonly memoryBytes: number
  readonly processes: number
  readonly containers: readonly ContainerUse[]
  /** Volumes on the node's disk. */
  readonly volumes: readonly VolumeUse[]
  /** Usage of the pod's hosts file and termination messages, which containers can write to (CVE-2020-8557). */
  readonly files?: { readonly bytes: number; readonly inodes: number }
}

export interface NodeUse {
  readonly memory?: { readonly availableBytes: number; readonly capacityBytes: number }
  /** The file system of the kubelet's files. */
  readonly nodeDisk?: Disk
  /** The file system of images. */
  readonly imageDisk?: Disk
  /** True if they are different file systems. */
  readonly hasImageDisk: boolean
  readonly processes?: { readonly available: number; readonly capacity: number }
  readonly pods: readonly PodUse[]
}
