/**
 * What `/stats/summary` tells beside processors and memory: file systems, networks, processes. Asked for by whoever reads it, and
 * by nobody else; what takes long, the files of volumes, is counted anew only when the last count is old.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { Clock } from '#lib/clock.ts'

import type { Runtime } from '../cri/runtime.ts'
import type { NetworkInterfaceUsage, PodSandboxStats, UInt64Value } from '../cri/stats-messages.ts'
import type { Disk } from '../gc/image-garbage.ts'
import type {
  FsUse,
  InterfaceUse,
  Measure,
  MeasuredContainer,
  MeasuredNode,
  MeasuredPod,
  NetworkUse,
  VolumeFsUse,
} from '../node-stats.ts'
import { cgroupParent } from '../pods/linux-resources.ts'
import type { PodFacts, PodOfNode } from '../pods/pod-of-node.ts'
import { podLogDirectory } from '../pods/sandbox-config.ts'
import { readDisk, readImageDisk, shareOf, wholeDisk } from './disks.ts'
import { type Size, sizeOf } from './file-sizes.ts'
import { mostProcesses } from './machine.ts'
import { readNetwork } from './network-use.ts'
import { fileUse, tasksOf } from './use-of-node.ts'

export interface NodeDetailOptions {
  readonly runtime: Runtime
  readonly clock: Clock
  readonly facts: Pick<PodFacts, 'rootDir' | 'podLogsDir' | 'cgroupDriver' | 'cgroupRoot'>
  readonly cgroupVersion: 1 | 2
  readonly pods: () => Iterable<PodOfNode>
  /** Of the volumes of one pod. */
  readonly volumes: (uid: string) => Promise<readonly VolumeFsUse[]>
  /** How old a count of volumes may be; 0: they are not counted. */
  readonly volumesMs: number
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

export class NodeDetail {
  readonly #options: NodeDetailOptions
  /** By pod. */
  readonly #counted = new Map<string, Counted>()

  constructor(options: NodeDetailOptions) {
    this.#options = options
  }

  /** With what is known beside it. */
  async of(measured: MeasuredNode): Promise<MeasuredNode> {
    const { runtime, clock, facts, pods } = this.#options
    const [node, images, network, processes, sandboxes] = await Promise.all([
      readDisk(facts.rootDir, clock),
      readImageDisk(runtime, clock),
      clock.during(readNetwork()),
      clock.during(readProcesses()),
      runtime.listPodSandboxStats({}).then(
        ({ stats }) => stats,
        // A runtime that does not count them says nothing of their network.
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

  /** Of all pods, for `/metrics`. */
  async volumes(): Promise<readonly VolumeFsUse[]> {
    const uids = Array.from(this.#options.pods(), ({ pod }) => pod.metadata.uid ?? '')
    for (const uid of this.#counted.keys()) if (!uids.includes(uid)) this.#counted.delete(uid)
    return (await Promise.all(uids.map((uid) => this.#volumesOf(uid)))).flat()
  }

  /** How much the logs of containers take, for `/metrics`. */
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
    const { clock, volumes, volumesMs } = this.#options
    if (volumesMs <= 0) return Promise.resolve([])
    const nowMs = clock.elapsed()
    const before = this.#counted.get(uid)
    if (before !== undefined && nowMs - before.atMs < volumesMs) return before.volumes
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

  /** By the kernel, or else by the runtime. */
  async #processesOf(pod: PodOfNode['pod'], sandbox: PodSandboxStats | undefined): Promise<number | undefined> {
    const { facts, cgroupVersion, clock } = this.#options
    const path = join('/sys/fs/cgroup', cgroupVersion === 1 ? 'pids' : '', cgroupParent(pod, facts), 'pids.current')
    const text = await clock.during(readFile(path, 'utf8').catch(() => undefined))
    return text === undefined ? numberOf(sandbox?.linux?.process?.processCount) : Number(text)
  }
}

/** All that a pod has on the disk of its node and that goes with it. */
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

/** How many there may be, and how many there are. */
async function readProcesses(): Promise<MeasuredNode['processes']> {
  const [most, load] = await Promise.all([mostProcesses(), readFile('/proc/loadavg', 'utf8').catch(() => '')])
  return most === undefined ? undefined : { most, now: tasksOf(load) }
}

/** This process, and all pods together. */
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
