/**
 * The network namespace of an extra node, with one link to the node bridge and its own host name. Processes, mounts and
 * cgroups are the machine's. All names derive from the node's data directory.
 */
import { execFile } from 'node:child_process'
import { access, mkdir, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { type ContainerdPaths, containerdPaths } from '#containerd/paths.ts'
import { type Commands, createIpRoute, type LinkState } from '#lib/net/iproute.ts'

import { rangesOf } from '../address-ranges.ts'
import { nodeAddress } from '../runtime-file.ts'

const run = promisify(execFile)

/** The link inside of the namespace. */
export const NODE_LINK = 'eth0'

export interface ExtraNode {
  /** The first extra node is 2: the machine is node 1. */
  readonly number: number
  readonly name: string
  /** The node's directory. */
  readonly dataDir: string
  readonly places: ContainerdPaths
  readonly netns: string
  /** The machine's end of the link. */
  readonly link: string
  /** The UTS namespace with its host name. */
  readonly utsFile: string
  /** The prefix of programs that run on the node. */
  readonly within: readonly string[]
}

export function nodesFolder(dataDir: string): string {
  return join(dataDir, 'nodes')
}

export function extraNode(dataDir: string, number: number, machine: string = hostname().toLowerCase()): ExtraNode {
  const own = join(nodesFolder(dataDir), String(number))
  const places = containerdPaths(own)
  const netns = `hyperkube-${places.id}`
  const utsFile = join(places.stateFolder, 'uts')
  return {
    number,
    name: `${machine}-${number}`,
    dataDir: own,
    places,
    netns,
    link: `hkl-${places.id}`,
    utsFile,
    within: ['nsenter', `--net=/run/netns/${netns}`, `--uts=${utsFile}`],
  }
}

export interface NamespaceOptions {
  readonly nodeBridge: string
  readonly nodeCidr: string
}

/** Creates or repairs the namespace; running pods are not disturbed. */
export async function ensureNamespace(place: ExtraNode, { nodeBridge, nodeCidr }: NamespaceOptions): Promise<void> {
  const { netns, link, utsFile, name, places, number } = place
  if (!(await isThere(`/run/netns/${netns}`))) await run('ip', ['netns', 'add', netns])
  if (!(await isNamed(utsFile))) {
    await mkdir(places.stateFolder, { recursive: true, mode: 0o711 })
    await writeFile(utsFile, '')
    await run('unshare', [`--uts=${utsFile}`, 'hostname', name])
  }
  const outside = createIpRoute()
  await outside.ip(planOutside({ link, netns, nodeBridge }, await outside.link(link)))
  const inside = createIpRoute(netns)
  const addresses = rangesOf(nodeCidr).map((range) => ({
    address: `${nodeAddress(range, number)}/${range.split('/')[1]}`,
    gateway: nodeAddress(range),
  }))
  await inside.ip(planInside(addresses, await inside.links()))
}

interface MachineLink {
  readonly link: string
  readonly netns: string
  readonly nodeBridge: string
}

export function planOutside({ link, netns, nodeBridge }: MachineLink, found: LinkState | undefined): Commands {
  const made = ['link', 'add', 'name', link, 'type', 'veth', 'peer', 'name', NODE_LINK, 'netns', netns]
  const isUp = found?.flags.includes('UP') === true
  const isHairpin = found?.master === nodeBridge && found.linkinfo?.info_slave_data?.hairpin === true
  return [
    ...(found === undefined ? [made] : []),
    ...(found?.master === nodeBridge ? [] : [['link', 'set', 'dev', link, 'master', nodeBridge]]),
    // Otherwise the bridge drops packets that a node sends to itself through another node's port.
    ...(isHairpin ? [] : [['link', 'set', 'dev', link, 'type', 'bridge_slave', 'hairpin', 'on']]),
    ...(isUp ? [] : [['link', 'set', 'dev', link, 'up']]),
  ]
}

/** One address of each family. */
export function planInside(
  addresses: readonly { readonly address: string; readonly gateway: string }[],
  links: readonly LinkState[],
): Commands {
  const named = (name: string): LinkState | undefined => links.find(({ ifname }) => ifname === name)
  const isUp = (name: string): boolean => named(name)?.flags.includes('UP') === true
  const has = (address: string): boolean =>
    named(NODE_LINK)?.addr_info.some(({ local, prefixlen }) => `${local}/${prefixlen}` === address) === true
  const missing = addresses.filter(({ address }) => !has(address))
  return [
    ...(isUp('lo') ? [] : [['link', 'set', 'dev', 'lo', 'up']]),
    ...missing.map(({ address }) => ['address', 'add', address, 'dev', NODE_LINK, ...noDad(address)]),
    ...(isUp(NODE_LINK) ? [] : [['link', 'set', 'dev', NODE_LINK, 'up']]),
    ...addresses.map(({ gateway }) => ['route', 'replace', 'default', 'via', gateway, 'dev', NODE_LINK]),
  ]
}

/** Skips duplicate address detection, so that the address is usable at once. */
const noDad = (address: string): readonly string[] => (address.includes(':') ? ['nodad'] : [])

/** Everything in it must have stopped. Does nothing if it does not exist. */
export async function removeNamespace({ netns, utsFile }: ExtraNode): Promise<void> {
  if (await isThere(`/run/netns/${netns}`)) await run('ip', ['netns', 'delete', netns])
  await run('umount', [utsFile]).catch(() => undefined)
}

export async function hasNamespace({ netns, utsFile }: ExtraNode): Promise<boolean> {
  return (await isThere(`/run/netns/${netns}`)) && (await isNamed(utsFile))
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

/** After a reboot the file exists without a namespace. */
function isNamed(utsFile: string): Promise<boolean> {
  return run('nsenter', [`--uts=${utsFile}`, 'true']).then(
    () => true,
    () => false,
  )
}
