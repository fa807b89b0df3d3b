/** Records the runtime and the address ranges of a cluster in a file, so that a restart uses the same. */
import { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'

import { containerdPaths } from '#containerd/paths.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { contains, nthAddress, parseCidr, parseIp } from '#lib/net/cidr.ts'
import type { FlannelBackend } from '#network/flannel/net-conf.ts'

import { rangesOf } from './address-ranges.ts'
import type { NodeRuntime } from './runtime-choice.ts'

export interface RuntimeFile {
  readonly runtime: NodeRuntime
  /**
   * Ranges are IPv4, or dual stack separated by a comma. The pod range is fixed, because running pods keep their
   * addresses.
   */
  readonly podCidr: string
  /** The number of nodes with containers, including the machine. */
  readonly nodes?: number
  /** The Service range. Absent in clusters of early releases. */
  readonly serviceCidr?: string
  /** The node range, private to this machine: the API server has the first address. Absent without containers. */
  readonly nodeCidr?: string
  /** flannel's backend, if the user chose one. */
  readonly backend?: FlannelBackend
}

export const RUNTIME_FILE = 'runtime.json'

/** Undefined: there is no file. */
export async function readRuntimeFile(dataDir: string): Promise<RuntimeFile | undefined> {
  try {
    return JSON.parse(await readFile(join(dataDir, RUNTIME_FILE), 'utf8')) as RuntimeFile
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export function writeRuntimeFile(dataDir: string, file: RuntimeFile): Promise<void> {
  return writeFileAtomically(join(dataDir, RUNTIME_FILE), `${JSON.stringify(file)}\n`, { mode: 0o600 })
}

/** Separate for each cluster on a machine, on links and in kernel rules. */
export interface Ranges {
  readonly podCidr: string
  readonly serviceCidr: string
  readonly nodeCidr: string
}

/** kubeadm's usual ranges, or the next ones that no interface of this machine uses. */
export function freeRanges(own: readonly string[] = ownAddresses()): Ranges {
  const taken = own.flatMap((address) => parseIp(address) ?? [])
  const isFree = (text: string): boolean => {
    const block = parseCidr(text)
    return block !== undefined && !taken.some((address) => contains(block, address))
  }
  for (let at = 0; at < MANY; at++) {
    const found = rangesAt(at)
    if (Object.values(found).every(isFree)) return found
  }
  return rangesAt(0)
}

const MANY = 12

const rangesAt = (at: number): Ranges => ({
  podCidr: `10.${244 + at}.0.0/16`,
  serviceCidr: `10.${96 + at}.0.0/16`,
  nodeCidr: `10.${108 + at}.0.0/24`,
})

/** Addresses of links and destinations of routes: Node does not list a bridge without ports. */
export function ownAddresses(): readonly string[] {
  const links = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))
  return [...links, ...destinations(existsSync(ROUTES) ? readFileSync(ROUTES, 'latin1') : '')]
}

const ROUTES = '/proc/net/route'

/** IPv4 routes of `/proc/net/route`: the second column, little-endian. */
export function destinations(routes: string): string[] {
  return routes
    .split('\n')
    .slice(1)
    .flatMap((line) => /^\S+\t([0-9A-F]{8})\t/.exec(line)?.[1] ?? [])
    .map((word) => [6, 4, 2, 0].map((at) => Number.parseInt(word.slice(at, at + 2), 16)).join('.'))
}

/** One address of each node range; the first is the machine's. */
export function nodeAddresses(nodeCidr: string, nth = 1): readonly string[] {
  return rangesOf(nodeCidr).flatMap((text) => {
    const cidr = parseCidr(text)
    return cidr === undefined ? [] : [nthAddress(cidr, nth)]
  })
}

/** The address of the first family, used between nodes. */
export function nodeAddress(nodeCidr: string, nth = 1): string {
  return nodeAddresses(nodeCidr, nth)[0] ?? ''
}

/** The default: VXLAN with a 24-bit VNI far from usual ones. */
export function backendFor(dataDir: string): FlannelBackend {
  const vni = 0x10_00_00 | Number.parseInt(containerdPaths(dataDir).id.slice(0, 5), 16)
  return { type: 'vxlan', vni, port: VXLAN_PORT, directRouting: false, learning: false, gbp: false }
}

const VXLAN_PORT = 8472
