/** Formats the usage of a node and its pods for `/stats/summary` and `/metrics/resource`. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { timeOf } from '#meta/time.ts'

/** Usage at one moment. */
export interface Measure {
  readonly startedMs: number
  /** Current usage rate. */
  readonly cpuNanoCores: number
  /** Total since the start. */
  readonly cpuNanoSeconds: number
  /** The working set. */
  readonly memoryBytes: number
  /** Default: only the working set is known. */
  readonly memory?: MemoryUse | undefined
  readonly swap?: SwapUse | undefined
}

export interface MemoryUse {
  readonly usageBytes: number
  readonly rssBytes: number
  readonly pageFaults: number
  readonly majorPageFaults: number
  /** Remaining memory below the limit; unset without a limit. */
  readonly availableBytes?: number | undefined
}

export interface SwapUse {
  readonly usageBytes: number
  readonly availableBytes?: number | undefined
}

/** Usage of a file system, or of one directory on it. */
export interface FsUse {
  readonly availableBytes: number
  readonly capacityBytes: number
  readonly usedBytes: number
  readonly inodesFree: number
  readonly inodes: number
  readonly inodesUsed: number
}

export interface InterfaceUse {
  readonly name: string
  readonly rxBytes: number
  readonly rxErrors: number
  readonly txBytes: number
  readonly txErrors: number
}

export interface NetworkUse {
  /** The interface with the default route. */
  readonly outward: InterfaceUse | undefined
  readonly interfaces: readonly InterfaceUse[]
}

export interface VolumeFsUse extends FsUse {
  /** The name in the pod spec. */
  readonly name: string
  readonly claim?: { readonly name: string; readonly namespace: string } | undefined
  /** Volume health reported by the driver; unset if it does not report it. */
  readonly isAbnormal?: boolean | undefined
}

export interface MeasuredContainer extends Measure {
  readonly name: string
  /** The writable layer. */
  readonly layer?: { readonly bytes: number; readonly inodes: number } | undefined
  readonly rootfs?: FsUse
  readonly logs?: FsUse
}

export interface MeasuredPod {
  readonly pod: Pick<Pod, 'metadata'>
  readonly all: Measure
  readonly containers: readonly MeasuredContainer[]
  readonly network?: NetworkUse | undefined
  readonly volumes?: readonly VolumeFsUse[]
  readonly ephemeralStorage?: FsUse
  readonly processes?: number | undefined
}

export interface MeasuredNode {
  readonly name: string
  /** Usage of the whole machine. */
  readonly all: Measure
  readonly capacityBytes: number
  readonly pods: readonly MeasuredPod[]
  readonly network?: NetworkUse
  readonly fs?: FsUse
  readonly imageFs?: FsUse
  readonly processes?: { readonly most: number; readonly now: number }
  /** System cgroups, and the cgroup of all pods. */
  readonly parts?: readonly (Measure & { readonly name: string })[]
}

const sum = (values: readonly (number | undefined)[]): number =>
  values.reduce<number>((all, one) => all + (one ?? 0), 0)

export function sumOfMeasures(parts: readonly Measure[]): Measure {
  const known = parts.flatMap(({ memory }) => memory ?? [])
  const swaps = parts.flatMap(({ swap }) => swap ?? [])
  return {
    startedMs: Math.min(...parts.map(({ startedMs }) => startedMs)),
    cpuNanoCores: sum(parts.map(({ cpuNanoCores }) => cpuNanoCores)),
    cpuNanoSeconds: sum(parts.map(({ cpuNanoSeconds }) => cpuNanoSeconds)),
    memoryBytes: sum(parts.map(({ memoryBytes }) => memoryBytes)),
    ...(known.length > 0 && {
      memory: {
        usageBytes: sum(known.map(({ usageBytes }) => usageBytes)),
        rssBytes: sum(known.map(({ rssBytes }) => rssBytes)),
        pageFaults: sum(known.map(({ pageFaults }) => pageFaults)),
        majorPageFaults: sum(known.map(({ majorPageFaults }) => majorPageFaults)),
      },
    }),
    ...(swaps.length > 0 && { swap: { usageBytes: sum(swaps.map(({ usageBytes }) => usageBytes)) } }),
  }
}

function cpuAndMemory(measure: Measure, time: string): Stats {
  const { startedMs, cpuNanoCores, cpuNanoSeconds, memoryBytes, memory, swap } = measure
  const { usageBytes = memoryBytes, rssBytes = memoryBytes, pageFaults = 0, majorPageFaults = 0 } = memory ?? {}
  const left = memory?.availableBytes
  return {
    startTime: timeOf(startedMs),
    cpu: { time, usageNanoCores: cpuNanoCores, usageCoreNanoSeconds: cpuNanoSeconds },
    memory: {
      time,
      ...(left !== undefined && { availableBytes: left }),
      usageBytes,
      workingSetBytes: memoryBytes,
      rssBytes,
      pageFaults,
      majorPageFaults,
    },
    ...(swap !== undefined && { swap: swapOf(swap, time) }),
  }
}

interface Stats {
  readonly startTime: string
  readonly cpu: object
  readonly memory: object
  readonly swap?: object
}

const swapOf = ({ usageBytes, availableBytes }: SwapUse, time: string): object => ({
  time,
  ...(availableBytes !== undefined && { swapAvailableBytes: availableBytes }),
  swapUsageBytes: usageBytes,
})

function fsOf(use: FsUse, time: string): object {
  const { availableBytes, capacityBytes, usedBytes, inodesFree, inodes, inodesUsed } = use
  return { time, availableBytes, capacityBytes, usedBytes, inodesFree, inodes, inodesUsed }
}

const networkOf = ({ outward, interfaces }: NetworkUse, time: string): object => ({
  time,
  ...(outward ?? { name: '' }),
  interfaces,
})

/** The JSON of `/stats/summary`. */
export function statsSummary(node: MeasuredNode, nowMs: number): object {
  const time = timeOf(nowMs)
  return { node: nodeSummary(node, time), pods: node.pods.map((pod) => podSummary(pod, time)) }
}

function nodeSummary(node: MeasuredNode, time: string): object {
  const { name, all, capacityBytes, parts = [], network, fs, imageFs, processes } = node
  const { startTime, cpu, memory, swap } = cpuAndMemory(all, time)
  const availableBytes = Math.max(0, capacityBytes - all.memoryBytes)
  const ofImages = imageFs === undefined ? undefined : fsOf(imageFs, time)
  return {
    nodeName: name,
    ...(parts.length > 0 && {
      systemContainers: parts.map((part) => ({ name: part.name, ...cpuAndMemory(part, time) })),
    }),
    startTime,
    cpu,
    memory: { ...memory, availableBytes },
    ...(network !== undefined && { network: networkOf(network, time) }),
    ...(fs !== undefined && { fs: fsOf(fs, time) }),
    ...(ofImages !== undefined && { runtime: { imageFs: ofImages, containerFs: ofImages } }),
    ...(processes !== undefined && { rlimit: { time, maxpid: processes.most, curproc: processes.now } }),
    ...(swap !== undefined && { swap }),
  }
}

function podSummary(measured: MeasuredPod, time: string): object {
  const { pod, containers, all, network, volumes = [], ephemeralStorage, processes } = measured
  const { metadata } = pod
  const { swap, ...rest } = cpuAndMemory(all, time)
  return {
    podRef: { name: metadata.name, namespace: metadata.namespace, uid: metadata.uid },
    ...rest,
    containers: containers.map((own) => containerSummary(own, time)),
    ...(network !== undefined && { network: networkOf(network, time) }),
    ...(volumes.length > 0 && { volume: volumes.map((volume) => volumeSummary(volume, time)) }),
    ...(ephemeralStorage !== undefined && { 'ephemeral-storage': fsOf(ephemeralStorage, time) }),
    ...(processes !== undefined && { process_stats: { process_count: processes } }),
    ...(swap !== undefined && { swap }),
  }
}

function containerSummary(own: MeasuredContainer, time: string): object {
  const { name, rootfs, logs } = own
  return {
    name,
    ...cpuAndMemory(own, time),
    ...(rootfs !== undefined && { rootfs: fsOf(rootfs, time) }),
    ...(logs !== undefined && { logs: fsOf(logs, time) }),
  }
}

const volumeSummary = (volume: VolumeFsUse, time: string): object => ({
  ...fsOf(volume, time),
  name: volume.name,
  ...(volume.claim !== undefined && { pvcRef: volume.claim }),
  ...(volume.isAbnormal !== undefined && { volumeHealthStats: { abnormal: volume.isAbnormal } }),
})
