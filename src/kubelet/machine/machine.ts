/** Reads the facts about the machine for the Node object. */
import { readFile, statfs } from 'node:fs/promises'
import { arch, cpus, hostname, networkInterfaces, release } from 'node:os'
import { join } from 'node:path'

export interface Machine {
  readonly hostname: string
  /** The first is the primary address of the node. */
  readonly addresses: readonly string[]
  readonly capacity: Readonly<Record<string, string>>
  readonly memoryBytes: number
  /** Maximum number of processes, including threads. */
  readonly maxPids?: number
  readonly machineId: string
  readonly systemUuid: string
  readonly bootId: string
  readonly kernel: string
  readonly osImage: string
  readonly architecture: string
  readonly cgroupVersion: 1 | 2
  /** Cgroups have a swap limit that is independent of the memory limit. */
  readonly limitsSwap: boolean
}

export interface MachineOptions {
  /** The directory of pod files, whose file system is the node's storage. */
  readonly rootDir: string
  readonly maxPods: number
  /** Default: the address of the interface with the default route. */
  readonly address?: string
}

export async function readMachine({ rootDir, maxPods, address }: MachineOptions): Promise<Machine> {
  const [memory, os, machineId, product, bootId] = await Promise.all(
    ['/proc/meminfo', '/etc/os-release', '/etc/machine-id', PRODUCT_UUID, '/proc/sys/kernel/random/boot_id'].map(text),
  )
  const id = (machineId ?? '').trim()
  const maxPids = await maxProcesses()
  const storage = await statfs(rootDir)
  const memoryKi = memoryKiOf(memory ?? '')
  return {
    hostname: hostname().toLowerCase(),
    addresses: [address ?? (await ownAddress())],
    capacity: {
      cpu: String(cpus().length),
      'ephemeral-storage': `${Math.floor((storage.blocks * storage.bsize) / 1024)}Ki`,
      ...(await hugePages()),
      memory: `${memoryKi}Ki`,
      pods: String(maxPods),
    },
    memoryBytes: memoryKi * 1024,
    ...(maxPids !== undefined && { maxPids }),
    machineId: id,
    systemUuid: (product ?? '').trim() || id,
    bootId: (bootId ?? '').trim(),
    kernel: release(),
    osImage: prettyName(os ?? ''),
    architecture: ARCHITECTURES[arch()] ?? arch(),
    cgroupVersion: (await text('/sys/fs/cgroup/cgroup.controllers')) === undefined ? 1 : 2,
    limitsSwap: await limitsSwap(text),
  }
}

/**
 * Read from our own cgroup, because the root cgroup has no limits and version 1 has no such file. Lines of
 * `/proc/self/cgroup` have number, controllers and path; version 2 has number 0 and no controllers.
 */
export async function limitsSwap(read: typeof text): Promise<boolean> {
  const own = /^0::(.*)$/m.exec((await read('/proc/self/cgroup')) ?? '')?.[1]
  return own !== undefined && (await read(join('/sys/fs/cgroup', own, 'memory.swap.max'))) !== undefined
}

const PRODUCT_UUID = '/sys/class/dmi/id/product_uuid'

/** Go's architecture names. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', arm64: 'arm64' }

/** Undefined when the kernel does not report it. */
export async function maxProcesses(): Promise<number | undefined> {
  const texts = await Promise.all(['/proc/sys/kernel/pid_max', '/proc/sys/kernel/threads-max'].map(text))
  const most = Math.min(...texts.map((value) => Number(value) || Infinity))
  return most === Infinity ? undefined : most
}

/** Undefined when the file is missing or not readable. */
async function text(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined)
}

export function memoryKiOf(meminfo: string): number {
  return Number(/^MemTotal:\s+(\d+) kB$/m.exec(meminfo)?.[1] ?? 0)
}

export function prettyName(osRelease: string): string {
  return /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(osRelease)?.[1] ?? 'Linux'
}

const HUGE_PAGES: readonly (readonly [name: string, kB: number])[] = [
  ['1Gi', 1_048_576],
  ['2Mi', 2048],
]

async function hugePages(): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const [name, kB] of HUGE_PAGES) {
    const count = await text(join('/sys/kernel/mm/hugepages', `hugepages-${kB}kB`, 'nr_hugepages'))
    if (count === undefined) continue
    const total = Number(count) * kB
    found[`hugepages-${name}`] = total === 0 ? '0' : `${total}Ki`
  }
  return found
}

/** The address of the interface with the default route; otherwise of any other interface, or the loopback. */
async function ownAddress(): Promise<string> {
  const outward = defaultInterface((await text('/proc/net/route')) ?? '')
  const all = Object.entries(networkInterfaces()).flatMap(([name, addresses]) =>
    (addresses ?? []).filter(({ family }) => family === 'IPv4').map((found) => ({ name, ...found })),
  )
  const best = all.find(({ name }) => name === outward) ?? all.find(({ internal }) => !internal) ?? all[0]
  return best?.address ?? '127.0.0.1'
}

/** Columns of `/proc/net/route`: interface, destination, gateway and so on, in hexadecimal. */
export function defaultInterface(routes: string): string | undefined {
  return routes
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t'))
    .find(([, destination, , , , , , mask]) => destination === '00000000' && mask === '00000000')?.[0]
}
