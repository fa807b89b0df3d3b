/** Measures the free resources of the node and the usage of its pods for eviction. */
import { lstat, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { ContainerStats } from '#apis/wire/cri.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'

import type { PodOfNode } from '../pod/pod-of-node.ts'
import { LABELS, podLogDirectory } from '../pod/sandbox-config.ts'
import { readDisk, readImageDisk } from './disks.ts'
import { BLOCK, type Size, sizeOf } from './file-sizes.ts'
import type { ContainerUse, NodeUse, PodUse, VolumeUse } from './node-use.ts'

export interface UseOptions {
  readonly runtime: Runtime
  readonly clock: Clock
  readonly rootDir: string
  readonly podLogsDir: string
  readonly pods: () => Iterable<PodOfNode>
}

export async function readNodeUse(options: UseOptions): Promise<NodeUse> {
  const { runtime, clock, rootDir, pods } = options
  const [{ stats }, nodeDisk, imageDisk, texts] = await Promise.all([
    runtime.listContainerStats({}),
    readDisk(rootDir, clock),
    readImageDisk(runtime, clock),
    clock.during(Promise.all(PROC.map((path) => readFile(path, 'utf8')))),
  ])
  const [meminfo = '', pidMax = '', load = ''] = texts
  const byPod = Map.groupBy(stats, ({ attributes }) => attributes?.labels.get(LABELS.podUid) ?? '')
  const uses: PodUse[] = []
  for (const { pod } of pods()) uses.push(await podUse(options, pod, byPod.get(pod.metadata.uid ?? '') ?? []))
  const memory = memoryOf(meminfo)
  const capacity = Number(pidMax)
  return {
    memory,
    nodeDisk,
    ...(imageDisk.capacityBytes > 0 && { imageDisk }),
    hasImageDisk: imageDisk.capacityBytes > 0 && imageDisk.capacityBytes !== nodeDisk.capacityBytes,
    ...(capacity > 0 && { processes: { capacity, available: capacity - tasksOf(load) } }),
    pods: uses,
  }
}

const PROC = ['/proc/meminfo', '/proc/sys/kernel/pid_max', '/proc/loadavg']

/** Upstream's available memory: capacity minus the working set. */
export function memoryOf(meminfo: string): NonNullable<NodeUse['memory']> {
  const bytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(meminfo)?.[1] ?? 0) * 1024
  return { capacityBytes: bytes('MemTotal'), availableBytes: bytes('MemFree') + bytes('Inactive\\(file\\)') }
}

/** The number of tasks in `0.00 0.01 0.05 1/230 4242`: 230. */
export const tasksOf = (loadavg: string): number => Number(/\/(\d+) /.exec(loadavg)?.[1] ?? 0)

type PodWithStatus = PodOfNode['pod']

async function podUse(options: UseOptions, pod: PodWithStatus, stats: readonly ContainerStats[]): Promise<PodUse> {
  const logs = podLogDirectory(pod, options.podLogsDir)
  const containers: ContainerUse[] = []
  for (const one of stats) containers.push(await containerUse(options, one, logs))
  const volumes = await volumeUses(options, pod)
  const memoryBytes = containers.reduce((sum, one) => sum + one.memoryBytes, 0)
  const files = await options.clock.during(fileUse(join(options.rootDir, 'pods', pod.metadata.uid ?? '')))
  return { pod, isKnown: stats.length > 0, memoryBytes, processes: 0, containers, volumes, files }
}

/** Files of a pod's directory other than volumes. */
export async function fileUse(podDir: string): Promise<Size> {
  const hosts = await lstat(join(podDir, 'etc-hosts')).catch(() => undefined)
  const messages = await sizeOf(join(podDir, 'containers'))
  return {
    bytes: messages.bytes + (hosts?.blocks ?? 0) * BLOCK,
    inodes: messages.inodes + (hosts === undefined ? 0 : 1),
  }
}

const numberOf = (figure: { readonly value: number | bigint } | undefined): number => Number(figure?.value ?? 0)

async function containerUse({ clock }: UseOptions, stats: ContainerStats, logs: string): Promise<ContainerUse> {
  const { attributes, memory, writableLayer } = stats
  const name = attributes?.labels.get(LABELS.containerName) ?? ''
  const log = await clock.during(sizeOf(join(logs, name)))
  return {
    name,
    memoryBytes: numberOf(memory?.workingSetBytes),
    rootfsBytes: numberOf(writableLayer?.usedBytes),
    rootfsInodes: numberOf(writableLayer?.inodesUsed),
    logBytes: log.bytes,
    logInodes: log.inodes,
  }
}

async function volumeUses({ clock, rootDir }: UseOptions, { metadata, spec }: PodWithStatus): Promise<VolumeUse[]> {
  const volumes: VolumeUse[] = []
  for (const { name, emptyDir } of spec.volumes ?? []) {
    // Memory-backed volumes count as memory.
    if (emptyDir === undefined || emptyDir.medium === 'Memory') continue
    const path = join(rootDir, 'pods', metadata.uid ?? '', 'volumes', 'kubernetes.io~empty-dir', name)
    volumes.push({ name, ...(await clock.during(sizeOf(path))) })
  }
  return volumes
}
