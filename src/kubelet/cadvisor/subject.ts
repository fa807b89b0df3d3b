/** Whom `/metrics/cadvisor` tells of: the machine, the cgroups above pods, pods, their sandboxes and containers. */
import type { DeviceCounts } from '../machine/network-use.ts'
import type { DeviceIo, Figures } from './cgroup-figures.ts'
import type { DiskCounts } from './disk-figures.ts'

export type Labels = readonly (readonly [name: string, value: string])[]

/** A file system, by the device it is on. */
export interface FsFigures {
  readonly device: string
  readonly limitBytes: number
  readonly usedBytes: number
  readonly inodes: number
  readonly inodesFree: number
  /** Undefined where the kernel does not count for the device. */
  readonly counts: DiskCounts | undefined
}

export interface Subject {
  /** Sorted by name. */
  readonly labels: Labels
  readonly figures: Figures
  readonly io: readonly (DeviceIo & { readonly device: string })[]
  readonly filesystems: readonly FsFigures[]
  readonly interfaces: readonly DeviceCounts[]
  /** How many files its first process may open; -1: any number. */
  readonly openFilesLimit?: number | undefined
}

export interface MachineFigures {
  readonly cores: number
  readonly physicalCores: number
  readonly sockets: number
  readonly memoryBytes: number
  readonly swapBytes: number
}

export interface Identity {
  /** The path of its cgroup. */
  readonly id: string
  /** As the runtime names it. */
  readonly name?: string
  readonly container?: string
  readonly image?: string
  readonly pod?: string
  readonly namespace?: string
}

export const labelsOf = ({ id, name, container, image, pod, namespace }: Identity): Labels => [
  ['container', container ?? ''],
  ['id', id],
  ['image', image ?? ''],
  ['name', name ?? ''],
  ['namespace', namespace ?? ''],
  ['pod', pod ?? ''],
]
