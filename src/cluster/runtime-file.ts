/** What runs the pods of a cluster, written down beside its state: a cluster that is started again goes on as it was. */
import { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'

import { placesOf } from '#kubelet/containerd/places.ts'
import { writeFileAtomically } from '#lib/atomic-file.ts'
import { contains, nthAddress, parseCidr, parseIp } from '#lib/cidr.ts'
import type { FlannelBackend } from '#network/flannel/net-conf.ts'

import { rangesOf } from './asked-ranges.ts'
import type { NodeRuntime } from './runtime-choice.ts'

export interface RuntimeFile {
  readonly runtime: NodeRuntime
  /** Ranges are of IPv4, or of both families with a comma between. Addresses of pods; chosen once, because pods that run keep theirs. */
  readonly podCidr: string
  /** How many nodes there were, with containers; the machine is one of them. */
  readonly nodes?: number
  /** Of services. Clusters from before pods could reach them say nothing. */
  readonly serviceCidr?: string
  /** Of nodes, private to this machine: the API server has the first, where pods reach it. Clusters without containers have none. */
  readonly nodeCidr?: string
  /** How packets get from node to node, where somebody has said it. */
  readonly backend?: FlannelBackend
}

export const RUNTIME_FILE = 'runtime.json'

/** Undefined: nothing was written yet. */
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

/** One of each: those of two clusters on a machine never meet, neither on its links nor in the rules of its kernel. */
export interface Ranges {
  readonly podCidr: string
  readonly serviceCidr: string
  readonly nodeCidr: string
}

/** What kubeadm's users know, or the next that no interface of this machine is in: other clusters have theirs. */
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

/** Of links, and where they lead: a bridge that nobody is on yet is not among the links that Node tells of. */
export function ownAddresses(): readonly string[] {
  const links = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))
  return [...links, ...destinations(existsSync(ROUTES) ? readFileSync(ROUTES, 'latin1') : '')]
}

const ROUTES = '/proc/net/route'

/** Of IPv4 routes as the kernel lists them: in the second column, with the last byte first. */
export function destinations(routes: string): string[] {
  return routes
    .split('\n')
    .slice(1)
    .flatMap((line) => /^\S+\t([0-9A-F]{8})\t/.exec(line)?.[1] ?? [])
    .map((word) => [6, 4, 2, 0].map((at) => Number.parseInt(word.slice(at, at + 2), 16)).join('.'))
}

/** One of each range of nodes; the first is the machine's. */
export function nodeAddresses(nodeCidr: string, nth = 1): readonly string[] {
  return rangesOf(nodeCidr).flatMap((text) => {
    const cidr = parseCidr(text)
    return cidr === undefined ? [] : [nthAddress(cidr, nth)]
  })
}

/** That of the first family, by which nodes reach each other. */
export function nodeAddress(nodeCidr: string, nth = 1): string {
  return nodeAddresses(nodeCidr, nth)[0] ?? ''
}

/** Where nobody says otherwise: VXLAN, with a number of 24 bits that is far from those that people choose. */
export function backendFor(dataDir: string): FlannelBackend {
  const vni = 0x10_00_00 | Number.parseInt(placesOf(dataDir).id.slice(0, 5), 16)
  return { type: 'vxlan', vni, port: VXLAN_PORT, directRouting: false, learning: false, gbp: false }
}

const VXLAN_PORT = 8472
