/** Measures CPU and memory usage of the node and its containers, from the runtime and the kernel. */
import { readFile } from 'node:fs/promises'

import type { ContainerStats, MemoryUsage, UInt64Value } from '#apis/wire/cri.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'

import type { PodOfNode } from '../pod/pod-of-node.ts'
import { LABELS } from '../pod/sandbox-config.ts'
import {
  type Measure,
  type MeasuredContainer,
  type MeasuredNode,
  type MeasuredPod,
  type MemoryUse,
  sumOfMeasures,
} from './node-stats.ts'

export interface UsageSamplerOptions {
  readonly name: string
  readonly clock: Clock
  readonly runtime: Runtime
  readonly capacityBytes: number
  readonly pods: () => Iterable<PodOfNode>
}

interface CpuSample {
  readonly atMs: number
  readonly cpuNanoSeconds: number
}

/** Two samples, so that one is always old enough to compare with. */
interface CpuSamples {
  readonly older: CpuSample
  readonly newer: CpuSample
}

/**
 * Length of the window for CPU usage; the kernel's counters are too coarse for less. `measure` must be called this
 * often.
 */
export const WINDOW_MS = 10_000

export class UsageSampler {
  readonly #options: UsageSamplerOptions
  readonly #startedMs: number
  /** By container ID; '' is the node. Entries of removed containers are dropped at the next measurement. */
  #samples = new Map<string, CpuSamples>()

  constructor(options: UsageSamplerOptions) {
    this.#options = options
    this.#startedMs = options.clock.now()
  }

  async measure(): Promise<MeasuredNode> {
    const { runtime, name, capacityBytes, pods } = this.#options
    const { stats } = await runtime.listContainerStats({})
    const before = this.#samples
    this.#samples = new Map()
    const byPod = Map.groupBy(stats, ({ attributes }) => attributes?.labels.get(LABELS.podUid) ?? '')
    const measured = Array.from(pods()).flatMap((view): MeasuredPod[] => {
      const found = byPod.get(view.pod.metadata.uid ?? '') ?? []
      const containers = found.map((one) => this.#containerOf(one, view, before))
      return containers.length === 0 ? [] : [{ pod: view.pod, containers, all: sumOfMeasures(containers) }]
    })
    return { name, capacityBytes, pods: measured, all: await this.#nodeOf(before) }
  }

  #containerOf(
    { attributes, cpu, memory, swap, writableLayer }: ContainerStats,
    { containers }: PodOfNode,
    before: ReadonlyMap<string, CpuSamples>,
  ): MeasuredContainer {
    const name = attributes?.labels.get(LABELS.containerName) ?? ''
    const cpuNanoSeconds = Number(cpu?.usageCoreNanoSeconds?.value ?? 0)
    const startedMs = containers.get(name)?.record.run?.startedMs
    const id = attributes?.id ?? ''
    return {
      name,
      startedMs: startedMs ?? this.#startedMs,
      cpuNanoSeconds,
      cpuNanoCores: this.#rate(id, cpuNanoSeconds, before.get(id) ?? this.#samplesSinceStart(startedMs)),
      memoryBytes: figure(memory?.workingSetBytes),
      memory: memoryUse(memory),
      ...optionalStats({ swap, writableLayer }),
    }
  }

  /** A new container is measured from its start. */
  #samplesSinceStart(startedMs: number | undefined): CpuSamples | undefined {
    if (startedMs === undefined) return undefined
    const { clock } = this.#options
    const start = { atMs: clock.elapsed() - Math.max(0, clock.now() - startedMs), cpuNanoSeconds: 0 }
    return { older: start, newer: start }
  }

  async #nodeOf(before: ReadonlyMap<string, CpuSamples>): Promise<Measure> {
    const [stat = '', memory = '', faults = ''] = await Promise.all(
      ['/proc/stat', '/proc/meminfo', '/proc/vmstat'].map((path) => readFile(path, 'utf8')),
    )
    const cpuNanoSeconds = busyNanoSeconds(stat)
    const memoryBytes = usedBytes(memory)
    return {
      startedMs: this.#startedMs,
      cpuNanoSeconds,
      cpuNanoCores: this.#rate('', cpuNanoSeconds, before.get('')),
      memoryBytes,
      ...memoryOfNode(memory, faults),
    }
  }

  /** 0 for new entries. The result does not depend on how often it is called. */
  #rate(id: string, cpuNanoSeconds: number, last: CpuSamples | undefined): number {
    const now = { atMs: this.#options.clock.elapsed(), cpuNanoSeconds }
    const { older, newer } = last ?? { older: now, newer: now }
    const isDue = now.atMs - newer.atMs >= WINDOW_MS
    this.#samples.set(id, isDue ? { older: newer, newer: now } : { older, newer })
    const { atMs, cpuNanoSeconds: spent } = isDue ? newer : older
    if (now.atMs <= atMs) return 0
    return Math.max(0, Math.round(((cpuNanoSeconds - spent) / (now.atMs - atMs)) * 1000))
  }
}

/** Linux counts in hundredths of a second: user, nice, system, idle, iowait, irq, softirq, steal. */
export function busyNanoSeconds(procStat: string): number {
  const ticks = /^cpu\s+(.*)$/m.exec(procStat)?.[1]?.split(' ').map(Number) ?? []
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = ticks
  return (user + nice + system + irq + softirq) * 1e7
}

const figure = (value: UInt64Value | undefined): number => Number(value?.value ?? 0)

/** Values that not every runtime reports. */
function optionalStats({
  swap,
  writableLayer,
}: Pick<ContainerStats, 'swap' | 'writableLayer'>): Pick<MeasuredContainer, 'swap' | 'layer'> {
  return {
    ...(swap?.swapUsageBytes !== undefined && {
      swap: { usageBytes: figure(swap.swapUsageBytes), availableBytes: figure(swap.swapAvailableBytes) },
    }),
    ...(writableLayer !== undefined && {
      layer: { bytes: figure(writableLayer.usedBytes), inodes: figure(writableLayer.inodesUsed) },
    }),
  }
}

/** Undefined when the runtime does not report it. */
function memoryUse(memory: MemoryUsage | undefined): MemoryUse | undefined {
  if (memory?.usageBytes === undefined) return undefined
  const { usageBytes, rssBytes, pageFaults, majorPageFaults, availableBytes } = memory
  const left = figure(availableBytes)
  return {
    usageBytes: figure(usageBytes),
    rssBytes: figure(rssBytes),
    pageFaults: figure(pageFaults),
    majorPageFaults: figure(majorPageFaults),
    // Without a limit, runtimes report either nothing or a huge number.
    ...(left > 0 && left < UNLIMITED && { availableBytes: left }),
  }
}

const UNLIMITED = 2 ** 60

export function memoryOfNode(meminfo: string, vmstat: string): Pick<Measure, 'memory' | 'swap'> {
  const bytes = (name: string): number => field(meminfo, name) * 1024
  const count = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(vmstat)?.[1] ?? 0)
  return {
    memory: {
      usageBytes: bytes('MemTotal') - bytes('MemFree'),
      rssBytes: bytes('AnonPages'),
      pageFaults: count('pgfault'),
      majorPageFaults: count('pgmajfault'),
    },
    swap: { usageBytes: bytes('SwapTotal') - bytes('SwapFree'), availableBytes: bytes('SwapFree') },
  }
}

const field = (meminfo: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(meminfo)?.[1] ?? 0)

/** Memory that is not available without reclaim. */
export function usedBytes(meminfo: string): number {
  return (field(meminfo, 'MemTotal') - field(meminfo, 'MemAvailable')) * 1024
}
