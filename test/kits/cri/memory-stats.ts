/** Constant usage values of the in-memory runtime's containers. Pure. */
import type { ContainerStats, FilesystemUsage, PodSandboxStats } from '#apis/wire/cri.ts'
import { CONTAINER_STATE, SANDBOX_STATE } from '#cri/codes.ts'

import type { MemoryContainer } from './memory-container.ts'
import type { MemorySandbox } from './memory-sandbox.ts'
import { nanosOf } from './nanos.ts'

const CORES = 0.01
const MEMORY_BYTES = 10 * 2 ** 20
const LAYER_BYTES = 4096

export function containerStatsOf(container: MemoryContainer, nowMs: number): ContainerStats {
  const { id, config, state, startedMs } = container
  const { metadata, labels, annotations } = config
  const attributes = { id, metadata, labels, annotations }
  const writableLayer = filesystemOf(LAYER_BYTES, nowMs)
  const isRunning = state === CONTAINER_STATE.running
  const { cpu, memory } = isRunning ? usageOf(1, nowMs - startedMs, nowMs) : { cpu: undefined, memory: undefined }
  return { attributes, cpu, memory, writableLayer, swap: undefined, io: undefined }
}

export function sandboxStatsOf(
  { id, config, state, createdMs }: MemorySandbox,
  containers: readonly MemoryContainer[],
  nowMs: number,
): PodSandboxStats {
  const { metadata, labels, annotations } = config
  const running = containers.filter((one) => one.state === CONTAINER_STATE.running)
  const timestamp = nanosOf(nowMs)
  const bytes = { rxBytes: { value: 0 }, rxErrors: { value: 0 }, txBytes: { value: 0 }, txErrors: { value: 0 } }
  const linux = {
    ...usageOf(running.length, nowMs - createdMs, nowMs),
    network: { timestamp, defaultInterface: { name: 'eth0', ...bytes }, interfaces: [] },
    process: { timestamp, processCount: { value: running.length + 1 } },
    containers: running.map((one) => containerStatsOf(one, nowMs)),
    io: undefined,
  }
  return {
    attributes: { id, metadata, labels, annotations },
    linux: state === SANDBOX_STATE.ready ? linux : undefined,
    windows: undefined,
  }
}

function usageOf(count: number, ranMs: number, nowMs: number): Pick<Required<ContainerStats>, 'cpu' | 'memory'> {
  const timestamp = nanosOf(nowMs)
  const nanos = Math.round(CORES * count * ranMs * 1e6)
  const bytes = { value: MEMORY_BYTES * count }
  return {
    cpu: {
      timestamp,
      usageCoreNanoSeconds: { value: nanos },
      usageNanoCores: { value: CORES * count * 1e9 },
      psi: undefined,
    },
    memory: {
      timestamp,
      workingSetBytes: bytes,
      availableBytes: { value: 0 },
      usageBytes: bytes,
      rssBytes: bytes,
      pageFaults: { value: 0 },
      majorPageFaults: { value: 0 },
      psi: undefined,
    },
  }
}

export function filesystemOf(usedBytes: number, nowMs: number): FilesystemUsage {
  const fsId = { mountpoint: '/memory' }
  return { timestamp: nanosOf(nowMs), fsId, usedBytes: { value: usedBytes }, inodesUsed: { value: 1 } }
}
