/**
 * `/metrics/cadvisor`: usage of the machine and its cgroups, read from the kernel on request. Without a cgroup, the
 * kubelet uses the runtime's stats.
 */
import { readFileSync, statSync } from 'node:fs'
import { readFile, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import type { ContainerStats, NetworkInterfaceUsage, UInt64Value } from '#apis/wire/cri.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'

import type { Machine } from '../machine/machine.ts'
import { type DeviceCounts, deviceCountsIn } from '../machine/network-use.ts'
import { isRunning } from '../pod/container-runs.ts'
import { cgroupParent, containerCgroup } from '../pod/linux-resources.ts'
import type { PodFacts, PodOfNode } from '../pod/pod-of-node.ts'
import { readCpus } from '../topology/cpu-topology.ts'
import { deviceIoOf, type Figures, figuresOf, PROCS_FILE, type ReadText } from './cgroup-figures.ts'
import { deviceNames, diskCounts, disksIn } from './disk-figures.ts'
import { cadvisorText } from './exposition.ts'
import { openFilesLimit, processFigures } from './process-figures.ts'
import {
  type FsFigures,
  type Labels,
  labelsOf,
  type MachineFigures,
  type Subject,
  type SubjectIdentity,
} from './subject.ts'

export interface CadvisorOptions {
  readonly runtime: Pick<Runtime, 'listContainerStats' | 'listPodSandboxStats'>
  readonly clock: Clock
  readonly facts: Pick<PodFacts, 'cgroupDriver' | 'cgroupRoot'>
  readonly machine: Pick<Machine, 'cgroupVersion' | 'memoryBytes' | 'machineId' | 'systemUuid' | 'bootId'>
  readonly pods: () => Iterable<PodOfNode>
  /** Mount point of the cgroups. */
  readonly root?: string
}

/** Stats of the runtime, by ID. */
interface RuntimeStats {
  readonly containers: ReadonlyMap<string, ContainerStats>
  readonly interfaces: ReadonlyMap<string, readonly DeviceCounts[]>
}

/** A cgroup to read. */
interface CgroupCandidate {
  readonly identity: SubjectIdentity
  /** True if open files of its processes are counted. */
  readonly isContainer: boolean
  readonly more: (pids: readonly number[]) => Partial<Omit<Subject, 'labels' | 'io'>>
}

export class Cadvisor {
  readonly #options: CadvisorOptions
  readonly #root: string
  #cpus: Promise<Pick<MachineFigures, 'cores' | 'physicalCores' | 'sockets'>> | undefined

  constructor(options: CadvisorOptions) {
    this.#options = options
    this.#root = options.root ?? '/sys/fs/cgroup'
  }

  async page(): Promise<string> {
    const { clock, machine } = this.#options
    const [stats, diskstats, meminfo] = await Promise.all([
      this.#stats(),
      ...['/proc/diskstats', '/proc/meminfo'].map((path) => clock.during(readFile(path, 'utf8').catch(() => ''))),
    ])
    const filesystems = await clock.during(readFilesystems(diskstats ?? ''))
    const names = deviceNames(diskstats ?? '')
    const subjects: Subject[] = []
    for (const candidate of [...this.#above(filesystems), ...this.#ofPods(stats)]) {
      const subject = this.#read(candidate, names)
      if (subject !== undefined) subjects.push(subject)
      await clock.during(new Promise((resolve) => setImmediate(resolve)))
    }
    const swapBytes = Number(/^SwapTotal:\s+(\d+) kB$/m.exec(meminfo ?? '')?.[1] ?? 0) * 1024
    return cadvisorText({
      subjects,
      machine: { ...(await this.#processors()), memoryBytes: machine.memoryBytes, swapBytes },
      machineLabels: machineLabels(machine),
      nowMs: clock.now(),
    })
  }

  #processors(): Promise<Pick<MachineFigures, 'cores' | 'physicalCores' | 'sockets'>> {
    this.#cpus ??= this.#options.clock.during(readCpus()).then((cpus) => ({
      cores: cpus.length,
      physicalCores: new Set(cpus.map(({ core }) => core)).size,
      sockets: new Set(cpus.map(({ socket }) => socket)).size,
    }))
    return this.#cpus
  }

  /** A runtime without sandbox stats reports no network counters. */
  async #stats(): Promise<RuntimeStats> {
    const { runtime } = this.#options
    const [{ stats: containers }, { stats: sandboxes }] = await Promise.all([
      runtime.listContainerStats({}),
      runtime.listPodSandboxStats({}).catch(() => ({ stats: [] })),
    ])
    return {
      containers: new Map(containers.map((each) => [each.attributes?.id ?? '', each])),
      interfaces: new Map(
        sandboxes.map(({ attributes, linux }) => {
          const { defaultInterface, interfaces = [] } = linux?.network ?? {}
          const all = defaultInterface === undefined ? interfaces : [defaultInterface, ...interfaces]
          return [attributes?.id ?? '', all.map(countsOf)] as const
        }),
      ),
    }
  }

  /** The machine, all pods, and the QoS classes with cgroups. */
  *#above(filesystems: readonly FsFigures[]): Iterable<CgroupCandidate> {
    const { facts } = this.#options
    const ofMachine = (): Partial<Subject> => ({ filesystems, interfaces: interfacesAt('/proc/net/dev') })
    yield { identity: { id: '/' }, isContainer: false, more: ofMachine }
    for (const qos of ['Guaranteed', 'Burstable', 'BestEffort']) {
      yield { identity: { id: classCgroup(qos, facts) }, isContainer: false, more: () => ({}) }
    }
  }

  *#ofPods({ containers: stats, interfaces }: RuntimeStats): Iterable<CgroupCandidate> {
    const { facts, pods } = this.#options
    for (const { pod, sandboxId, containers } of pods()) {
      const { name: podName = '', namespace = '' } = pod.metadata
      const parent = cgroupParent(pod, facts)
      const own = { pod: podName, namespace }
      if (sandboxId === undefined) continue
      yield { identity: { id: parent, ...own }, isContainer: false, more: () => ({}) }
      yield {
        identity: { id: containerCgroup(parent, sandboxId, facts), name: sandboxId, ...own },
        isContainer: true,
        more: ([pid]) => ({
          interfaces: pid === undefined ? (interfaces.get(sandboxId) ?? []) : interfacesAt(`/proc/${pid}/net/dev`),
        }),
      }
      for (const [container, { record, current }] of containers) {
        if (current === undefined || !isRunning(record)) continue
        const { containerId: name } = current
        const identity = { id: containerCgroup(parent, name, facts), name, container, image: record.spec.image ?? '' }
        const figures = runtimeFigures(stats.get(name), record.run?.startedMs)
        yield { identity: { ...identity, ...own }, isContainer: true, more: () => ({ figures }) }
      }
    }
  }

  /** Undefined when neither the cgroup nor other stats exist. */
  #read({ identity, isContainer, more }: CgroupCandidate, names: ReadonlyMap<string, string>): Subject | undefined {
    const { cgroupVersion: version, memoryBytes } = this.#options.machine
    const read: ReadText = (file) => textOf(this.#fileOf(identity.id, file))
    const procs = read(PROCS_FILE[version])
    const pids = (procs ?? '').split('\n').filter(Boolean).map(Number)
    const { figures: runtimeStats = {}, interfaces = [], filesystems = [] } = more(pids)
    const hasOther = Object.keys(runtimeStats).length > 0 || interfaces.length > 0
    if (procs === undefined && !hasOther) return undefined
    const opened = isContainer ? processFigures(pids) : { processes: pids.length }
    const startedSeconds = procs === undefined ? {} : madeAt(this.#fileOf(identity.id, PROCS_FILE[version]))
    const [pid] = pids
    // The root cgroup has no limit, but the machine's memory is one.
    const whole = identity.id === '/' ? { specMemory: memoryBytes } : {}
    return {
      labels: labelsOf(identity),
      figures: {
        ...startedSeconds,
        ...runtimeStats,
        ...figuresOf(version, read),
        ...whole,
        ...(procs !== undefined && opened),
      },
      io: deviceIoOf(version, read).map((io) => ({ ...io, device: names.get(`${io.major}:${io.minor}`) ?? '' })),
      interfaces,
      filesystems,
      ...(isContainer && pid !== undefined && { openFilesLimit: openFilesLimit(pid) }),
    }
  }

  /** In version 1 a file name includes its hierarchy. */
  #fileOf(id: string, file: string): string {
    const slash = file.indexOf('/')
    return slash < 0 ? join(this.#root, id, file) : join(this.#root, file.slice(0, slash), id, file.slice(slash + 1))
  }
}

/** The cgroup of a QoS class; Guaranteed is that of all pods. */
function classCgroup(qosClass: string, facts: CadvisorOptions['facts']): string {
  return dirname(cgroupParent({ metadata: {}, spec: { containers: [] }, status: { qosClass } }, facts))
}

const machineLabels = ({ bootId, machineId, systemUuid }: CadvisorOptions['machine']): Labels => [
  ['boot_id', bootId],
  ['machine_id', machineId],
  ['system_uuid', systemUuid],
]

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function madeAt(path: string): Figures {
  try {
    return { startedSeconds: Math.trunc(statSync(path).mtimeMs / 1000) }
  } catch {
    return {}
  }
}

const interfacesAt = (path: string): DeviceCounts[] => deviceCountsIn(textOf(path) ?? '')

/** File systems that cannot be read are omitted. */
async function readFilesystems(diskstats: string): Promise<FsFigures[]> {
  const counts = diskCounts(diskstats)
  const mounted = disksIn(await readFile('/proc/self/mounts', 'utf8').catch(() => ''))
  const found: FsFigures[] = []
  for (const { device, path } of mounted) {
    const stat = await statfs(path).catch(() => undefined)
    if (stat === undefined) continue
    const { blocks, bfree, bsize, files: inodes, ffree: inodesFree } = stat
    const sizes = { limitBytes: blocks * bsize, usedBytes: (blocks - bfree) * bsize, inodes, inodesFree }
    found.push({ device, ...sizes, counts: counts.get(device) })
  }
  return found
}

const numberOf = (value: UInt64Value | undefined): number | undefined =>
  value === undefined ? undefined : Number(value.value)

/** The runtime's stats of a container; values of the kernel take precedence. */
function runtimeFigures(stats: ContainerStats | undefined, startedMs: number | undefined): Figures {
  const { cpu, memory, writableLayer } = stats ?? {}
  const nanoseconds = numberOf(cpu?.usageCoreNanoSeconds)
  const all = {
    startedSeconds: startedMs === undefined ? undefined : startedMs / 1000,
    cpuUsage: nanoseconds === undefined ? undefined : nanoseconds / 1e9,
    memoryUsage: numberOf(memory?.usageBytes),
    memoryRss: numberOf(memory?.rssBytes),
    workingSet: numberOf(memory?.workingSetBytes),
    faults: numberOf(memory?.pageFaults),
    majorFaults: numberOf(memory?.majorPageFaults),
    layerBytes: numberOf(writableLayer?.usedBytes),
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

/** Runtimes do not report packets. */
const countsOf = ({ name, rxBytes, rxErrors, txBytes, txErrors }: NetworkInterfaceUsage): DeviceCounts => ({
  name,
  rxBytes: numberOf(rxBytes) ?? 0,
  rxPackets: 0,
  rxErrors: numberOf(rxErrors) ?? 0,
  rxDropped: 0,
  txBytes: numberOf(txBytes) ?? 0,
  txPackets: 0,
  txErrors: numberOf(txErrors) ?? 0,
  txDropped: 0,
})
