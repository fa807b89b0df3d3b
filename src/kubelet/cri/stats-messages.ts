/** What containers, sandboxes and file systems use. Tables of CRI v1: names, types, numbers. */
import { defineMessage, type Message } from '#lib/protobuf/message.ts'
import type { Int64 } from '#lib/protobuf/wire.ts'

import { type ContainerMetadata, containerMetadata } from './container-messages.ts'
import { type PodSandboxMetadata, podSandboxMetadata } from './sandbox-messages.ts'

export interface ContainerAttributes {
  readonly id: string
  readonly metadata: ContainerMetadata | undefined
  readonly labels: Map<string, string>
  readonly annotations: Map<string, string>
}

export interface UInt64Value {
  readonly value: Int64
}

export interface PsiData {
  readonly total: Int64
  readonly avg10: number
  readonly avg60: number
  readonly avg300: number
}

export interface PsiStats {
  readonly full: PsiData | undefined
  readonly some: PsiData | undefined
}

export interface CpuUsage {
  readonly timestamp: Int64
  readonly usageCoreNanoSeconds: UInt64Value | undefined
  readonly usageNanoCores: UInt64Value | undefined
  readonly psi: PsiStats | undefined
}

export interface MemoryUsage {
  readonly timestamp: Int64
  readonly workingSetBytes: UInt64Value | undefined
  readonly availableBytes: UInt64Value | undefined
  readonly usageBytes: UInt64Value | undefined
  readonly rssBytes: UInt64Value | undefined
  readonly pageFaults: UInt64Value | undefined
  readonly majorPageFaults: UInt64Value | undefined
  readonly psi: PsiStats | undefined
}

export interface FilesystemIdentifier {
  readonly mountpoint: string
}

export interface FilesystemUsage {
  readonly timestamp: Int64
  readonly fsId: FilesystemIdentifier | undefined
  readonly usedBytes: UInt64Value | undefined
  readonly inodesUsed: UInt64Value | undefined
}

export interface SwapUsage {
  readonly timestamp: Int64
  readonly swapAvailableBytes: UInt64Value | undefined
  readonly swapUsageBytes: UInt64Value | undefined
}

export interface IoUsage {
  readonly timestamp: Int64
  readonly psi: PsiStats | undefined
}

export interface ContainerStats {
  readonly attributes: ContainerAttributes | undefined
  readonly cpu: CpuUsage | undefined
  readonly memory: MemoryUsage | undefined
  readonly writableLayer: FilesystemUsage | undefined
  readonly swap: SwapUsage | undefined
  readonly io: IoUsage | undefined
}

export interface PodSandboxAttributes {
  readonly id: string
  readonly metadata: PodSandboxMetadata | undefined
  readonly labels: Map<string, string>
  readonly annotations: Map<string, string>
}

export interface NetworkInterfaceUsage {
  readonly name: string
  readonly rxBytes: UInt64Value | undefined
  readonly rxErrors: UInt64Value | undefined
  readonly txBytes: UInt64Value | undefined
  readonly txErrors: UInt64Value | undefined
}

export interface NetworkUsage {
  readonly timestamp: Int64
  readonly defaultInterface: NetworkInterfaceUsage | undefined
  readonly interfaces: NetworkInterfaceUsage[]
}

export interface ProcessUsage {
  readonly timestamp: Int64
  readonly processCount: UInt64Value | undefined
}

export interface LinuxPodSandboxStats {
  readonly cpu: CpuUsage | undefined
  readonly memory: MemoryUsage | undefined
  readonly network: NetworkUsage | undefined
  readonly process: ProcessUsage | undefined
  readonly containers: ContainerStats[]
  readonly io: IoUsage | undefined
}

export interface PodSandboxStats {
  readonly attributes: PodSandboxAttributes | undefined
  readonly linux: LinuxPodSandboxStats | undefined
}

export interface PodSandboxStatsFilter {
  readonly id: string
  readonly labelSelector: Map<string, string>
}

export interface ContainerStatsFilter {
  readonly id: string
  readonly podSandboxId: string
  readonly labelSelector: Map<string, string>
}

export const containerAttributes: Message<ContainerAttributes> = defineMessage({
  id: [1, 'string'],
  metadata: [2, containerMetadata],
  labels: [3, { key: 'string', value: 'string' }],
  annotations: [4, { key: 'string', value: 'string' }],
})
export const uInt64Value: Message<UInt64Value> = defineMessage({ value: [1, 'uint64'] })
export const psiData: Message<PsiData> = defineMessage({
  total: [1, 'uint64'],
  avg10: [2, 'double'],
  avg60: [3, 'double'],
  avg300: [4, 'double'],
})
export const psiStats: Message<PsiStats> = defineMessage({ full: [1, psiData], some: [2, psiData] })
export const cpuUsage: Message<CpuUsage> = defineMessage({
  timestamp: [1, 'int64'],
  usageCoreNanoSeconds: [2, uInt64Value],
  usageNanoCores: [3, uInt64Value],
  psi: [4, psiStats],
})
export const memoryUsage: Message<MemoryUsage> = defineMessage({
  timestamp: [1, 'int64'],
  workingSetBytes: [2, uInt64Value],
  availableBytes: [3, uInt64Value],
  usageBytes: [4, uInt64Value],
  rssBytes: [5, uInt64Value],
  pageFaults: [6, uInt64Value],
  majorPageFaults: [7, uInt64Value],
  psi: [8, psiStats],
})
export const filesystemIdentifier: Message<FilesystemIdentifier> = defineMessage({ mountpoint: [1, 'string'] })
export const filesystemUsage: Message<FilesystemUsage> = defineMessage({
  timestamp: [1, 'int64'],
  fsId: [2, filesystemIdentifier],
  usedBytes: [3, uInt64Value],
  inodesUsed: [4, uInt64Value],
})
export const swapUsage: Message<SwapUsage> = defineMessage({
  timestamp: [1, 'int64'],
  swapAvailableBytes: [2, uInt64Value],
  swapUsageBytes: [3, uInt64Value],
})
export const ioUsage: Message<IoUsage> = defineMessage({ timestamp: [1, 'int64'], psi: [2, psiStats] })
export const containerStats: Message<ContainerStats> = defineMessage({
  attributes: [1, containerAttributes],
  cpu: [2, cpuUsage],
  memory: [3, memoryUsage],
  writableLayer: [4, filesystemUsage],
  swap: [5, swapUsage],
  io: [6, ioUsage],
})
export const podSandboxAttributes: Message<PodSandboxAttributes> = defineMessage({
  id: [1, 'string'],
  metadata: [2, podSandboxMetadata],
  labels: [3, { key: 'string', value: 'string' }],
  annotations: [4, { key: 'string', value: 'string' }],
})
export const networkInterfaceUsage: Message<NetworkInterfaceUsage> = defineMessage({
  name: [1, 'string'],
  rxBytes: [2, uInt64Value],
  rxErrors: [3, uInt64Value],
  txBytes: [4, uInt64Value],
  txErrors: [5, uInt64Value],
})
export const networkUsage: Message<NetworkUsage> = defineMessage({
  timestamp: [1, 'int64'],
  defaultInterface: [2, networkInterfaceUsage],
  interfaces: [3, networkInterfaceUsage, 'repeated'],
})
export const processUsage: Message<ProcessUsage> = defineMessage({
  timestamp: [1, 'int64'],
  processCount: [2, uInt64Value],
})
export const linuxPodSandboxStats: Message<LinuxPodSandboxStats> = defineMessage({
  cpu: [1, cpuUsage],
  memory: [2, memoryUsage],
  network: [3, networkUsage],
  process: [4, processUsage],
  containers: [5, containerStats, 'repeated'],
  io: [6, ioUsage],
})
export const podSandboxStats: Message<PodSandboxStats> = defineMessage({
  attributes: [1, podSandboxAttributes],
  linux: [2, linuxPodSandboxStats],
})
export const podSandboxStatsFilter: Message<PodSandboxStatsFilter> = defineMessage({
  id: [1, 'string'],
  labelSelector: [2, { key: 'string', value: 'string' }],
})
export const containerStatsFilter: Message<ContainerStatsFilter> = defineMessage({
  id: [1, 'string'],
  podSandboxId: [2, 'string'],
  labelSelector: [3, { key: 'string', value: 'string' }],
})
