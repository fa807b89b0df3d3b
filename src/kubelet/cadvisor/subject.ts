/** The subjects that `/metrics/cadvisor` measures: the machine, cgroups above pods, pods, sandboxes and containers. */
import type { DeviceCounts } from '../machine/network-use.ts'
import type { DeviceIo, Figures } from './cgroup-figures.ts'
import type { DiskCounts } from './disk-figures.ts'

export type Labels = readonly (readonly [name: string, value: string])[]

/** A file system, by device. */
export interface FsFigures {
  readonly device: string
  readonly limitBytes: number
  readonly usedBytes: number
  readonly inodes: number
  readonly inodesFree: number
  /** Undefined when the kernel has no counters for the device. */
  readonly counts: DiskCounts | undefined
}

export interface Subject {
  /** Sorted by name. */
  readonly labels: Labels
  readonly figures: Figures
  readonly io: readonly (DeviceIo & { readonly device: string })[]
  readonly filesystems: readonly FsFigures[]
  readonly interfaces: readonly DeviceCounts[]
  /** The open files limit of its first process; -1: unlimited. */
  readonly openFilesLimit?: number | undefined
}

export interface MachineFigures {
  readonly cores: number
  readonly physicalCores: number
  readonly sockets: number
  readonly memoryBytes: number
  readonly swapBytes: number
}

export interface SubjectIdentity {
  /** The cgroup path. */
  readonly id: string
  /** The name in the runtime. */
  readonly name?: string
  readonly container?: string
  readonly image?: string
  readonly pod?: string
  readonly namespace?: string
}

export const labelsOf = ({ id, name, container, image, pod, namespace }: SubjectIdentity): Labels => [
  ['container', container ?? ''],
  ['id', id],
  ['image', image ?? ''],
  ['name', name ?? ''],
  ['namespace', namespace ?? ''],
  ['pod', pod ?? ''],
]
