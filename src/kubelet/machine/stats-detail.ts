/**
 * Collects file systems, networks and processes for `/stats/summary` on request. Volume sizes are cached, because
 * measuring them takes long.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { NetworkInterfaceUsage, PodSandboxStats, UInt64Value } from '#apis/wire/cri.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'

import { cgroupParent } from '../pod/linux-resources.ts'
import type { PodFacts, PodOfNode } from '../pod/pod-of-node.ts'
import { podLogDirectory } from '../pod/sandbox-config.ts'
import { type Disk, readDisk, readImageDisk, shareOf, wholeDisk } from './disks.ts'
import { type Size, sizeOf } from './file-sizes.ts'
import { maxProcesses } from './machine.ts'
import { readNetwork } from './network-use.ts'
import type {
  FsUse,
  InterfaceUse,
  Measure,
  MeasuredContainer,
  MeasuredNode,
  MeasuredPod,
  NetworkUse,
  VolumeFsUse,
} from './node-stats.ts'
import { fileUse, tasksOf } from './node-usage.ts'

export interface StatsDetailOptions {
  readonly runtime: Runtime
  readonly clock: Clock
  readonly facts: Pick<PodFacts, 'rootDir' | 'podLogsDir' | 'cgroupDriver' | 'cgroupRoot'>
  readonly cgroupVersion: 1 | 2
  readonly pods: () => Iterable<PodOfNode>
  /** Usage of the volumes of one pod. */
  readonly volumes: (uid: string) => Promise<readonly VolumeFsUse[]>
  /** Maximum age of volume sizes; 0 disables them. */
  readonly volumeStatsMs: number
}

export interface LogUse {
  readonly pod: PodOfNode['pod']
  readonly container: string
  readonly bytes: number
}

interface Counted {
  readonly atMs: number
  readonly volumes: Promise<readonly VolumeFsUse[]>
}

/** The disks of a node. */
interface Disks {
  readonly node: Disk
  readonly images: Disk
}

export class StatsDetail {
  readonly #options: StatsDetailOptions
  /** By pod. */
  readonly #counted = new Map<string, Counted>()

  constructor(options: StatsDetailOptions) {
    this.#options = options
  }

  /** Adds the details to the measured node. */
  async of(measured: MeasuredNode): Promise<MeasuredNode> {
    const { runtime, clock, facts, pods } = this.#options
    const [node, images, network, processes, sandboxes] = await Promise.all([
      readDisk(facts.rootDir, clock),
      readImageDisk(runtime, clock),
      clock.during(readNetwork()),
      clock.during(readProcesses()),
      runtime.listPodSandboxStats({}).then(
        ({ stats }) => stats,
        // A runtime without sandbox stats reports no network counters.
        () => [],
      ),
    ])
    const byUid = new Map(Array.from(pods(), (view) => [view.pod.metadata.uid, view]))
    const detailed: MeasuredPod[] = []
    for (const one of measured.pods) {
      const view = byUid.get(one.pod.metadata.uid)
      const sandbox = sandboxes.find(({ attributes }) => attributes?.id === view?.sandboxId)
      detailed.push(view === undefined ? one : await this.#pod(one, view, { disks: { node, images }, sandbox }))
    }
    return {
      ...measured,
      pods: detailed,
      fs: wholeDisk(node),
      ...(images.capacityBytes > 0 && { imageFs: wholeDisk(images) }),
      ...(network !== undefined && { network }),
      ...(processes !== undefined && { processes }),
      parts: partsOf(measured, clock),
    }
  }

  /** Volumes of all pods, for `/metrics`. */
  async volumes(): Promise<readonly VolumeFsUse[]> {
    const uids = Array.from(this.#options.pods(), ({ pod }) => pod.metadata.uid ?? '')
    for (const uid of this.#counted.keys()) if (!uids.includes(uid)) this.#counted.delete(uid)
    return (await Promise.all(uids.map((uid) => this.#volumesOf(uid)))).flat()
  }

  /** Size of container logs, for `/metrics`. */
  async logs(): Promise<readonly LogUse[]> {
    const { clock, facts, pods } = this.#options
    const uses: LogUse[] = []
    for (const { pod, containers } of pods()) {
      const dir = podLogDirectory(pod, facts.podLogsDir)
      for (const container of containers.keys()) {
        uses.push({ pod, container, bytes: (await clock.during(sizeOf(join(dir, container)))).bytes })
      }
    }
    return uses
  }

  #volumesOf(uid: string): Promise<readonly VolumeFsUse[]> {
    const { clock, volumes, volumeStatsMs } = this.#options
    if (volumeStatsMs <= 0) return Promise.resolve([])
    const nowMs = clock.elapsed()
    const before = this.#counted.get(uid)
    if (before !== undefined && nowMs - before.atMs < volumeStatsMs) return before.volumes
    const counting = volumes(uid).catch(() => [])
    this.#counted.set(uid, { atMs: nowMs, volumes: counting })
    return counting
  }

  async #pod(
    measured: MeasuredPod,
    { pod }: PodOfNode,
    { disks, sandbox }: { readonly disks: Disks; readonly sandbox: PodSandboxStats | undefined },
  ): Promise<MeasuredPod> {
    const { clock, facts } = this.#options
    const { uid = '' } = pod.metadata
    const logsDir = podLogDirectory(pod, facts.podLogsDir)
    const containers: MeasuredContainer[] = []
    for (const own of measured.containers) {
      const logs = await clock.during(sizeOf(join(logsDir, own.name)))
      const { layer } = own
      const rootfs = layer === undefined ? {} : { rootfs: shareOf(disks.images, layer) }
      containers.push({ ...own, ...rootfs, logs: shareOf(disks.node, logs) })
    }
    const volumes = await this.#volumesOf(uid)
    const files = await clock.during(fileUse(join(facts.rootDir, 'pods', uid)))
    const network = networkOf(sandbox)
    return {
      ...measured,
      containers,
      volumes,
      ephemeralStorage: shareOf(disks.node, ephemeralUse(pod, containers, volumes, files)),
      ...(network !== undefined && { network }),
      processes: await this.#processesOf(pod, sandbox),
    }
  }

  /** From the kernel, otherwise from the runtime. */
  async #processesOf(pod: PodOfNode['pod'], sandbox: PodSandboxStats | undefined): Promise<number | undefined> {
    const { facts, cgroupVersion, clock } = this.#options
    const path = join('/sys/fs/cgroup', cgroupVersion === 1 ? 'pids' : '', cgroupParent(pod, facts), 'pids.current')
    const text = await clock.during(readFile(path, 'utf8').catch(() => undefined))
    return text === undefined ? numberOf(sandbox?.linux?.process?.processCount) : Number(text)
  }
}

/** Local ephemeral storage of a pod. */
function ephemeralUse(
  { spec }: PodOfNode['pod'],
  containers: readonly MeasuredContainer[],
  volumes: readonly VolumeFsUse[],
  files: Size,
): Size {
  const isEphemeral = (name: string): boolean => {
    const volume = spec.volumes?.find((one) => one.name === name)
    if (volume?.emptyDir !== undefined) return volume.emptyDir.medium !== 'Memory'
    return volume?.configMap !== undefined || volume?.downwardAPI !== undefined
  }
  const parts = [
    ...containers.flatMap(({ layer, logs }) => [layer ?? NOTHING, usedOf(logs)]),
    ...volumes.filter(({ name }) => isEphemeral(name)).map(usedOf),
    files,
  ]
  return {
    bytes: parts.reduce((all, { bytes }) => all + bytes, 0),
    inodes: parts.reduce((all, { inodes }) => all + inodes, 0),
  }
}

const NOTHING: Size = { bytes: 0, inodes: 0 }

const usedOf = (use: FsUse | undefined): Size =>
  use === undefined ? NOTHING : { bytes: use.usedBytes, inodes: use.inodesUsed }

const numberOf = (value: UInt64Value | undefined): number | undefined =>
  value === undefined ? undefined : Number(value.value)

function networkOf(sandbox: PodSandboxStats | undefined): NetworkUse | undefined {
  const { network } = sandbox?.linux ?? {}
  if (network === undefined) return undefined
  const { defaultInterface, interfaces } = network
  const outward = defaultInterface === undefined ? undefined : interfaceOf(defaultInterface)
  const others = interfaces.filter(({ name }) => name !== outward?.name).map(interfaceOf)
  return { outward, interfaces: outward === undefined ? others : [outward, ...others] }
}

const interfaceOf = ({ name, rxBytes, rxErrors, txBytes, txErrors }: NetworkInterfaceUsage): InterfaceUse => ({
  name,
  rxBytes: numberOf(rxBytes) ?? 0,
  rxErrors: numberOf(rxErrors) ?? 0,
  txBytes: numberOf(txBytes) ?? 0,
  txErrors: numberOf(txErrors) ?? 0,
})

/** Maximum and current number of processes. */
async function readProcesses(): Promise<MeasuredNode['processes']> {
  const [most, load] = await Promise.all([maxProcesses(), readFile('/proc/loadavg', 'utf8').catch(() => '')])
  return most === undefined ? undefined : { most, now: tasksOf(load) }
}

/** System containers: this process, and all pods. */
function partsOf({ pods, all }: MeasuredNode, clock: Clock): NonNullable<MeasuredNode['parts']> {
  const { user, system } = process.cpuUsage()
  const upMs = process.uptime() * 1000
  const cpuNanoSeconds = (user + system) * 1000
  const { rss } = process.memoryUsage()
  const own: Measure = {
    startedMs: clock.now() - upMs,
    cpuNanoCores: Math.round((cpuNanoSeconds / upMs) * 1000),
    cpuNanoSeconds,
    memoryBytes: rss,
  }
  const sum = (read: (measure: Measure) => number): number => pods.reduce((total, pod) => total + read(pod.all), 0)
  return [
    { name: 'kubelet', ...own },
    {
      name: 'pods',
      startedMs: all.startedMs,
      cpuNanoCores: sum(({ cpuNanoCores }) => cpuNanoCores),
      cpuNanoSeconds: sum(({ cpuNanoSeconds }) => cpuNanoSeconds),
      memoryBytes: sum(({ memoryBytes }) => memoryBytes),
    },
  ]
}
