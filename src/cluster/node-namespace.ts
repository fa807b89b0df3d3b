/**
 * The place of a further node on its machine: a network namespace with one link to the bridge of nodes, and a name of its own.
 * Processes, mounts and cgroups are the machine's. All names follow from the node's data directory.
 */
import { execFile } from 'node:child_process'
import { access, mkdir, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { type Places, placesOf } from '#kubelet/containerd/places.ts'
import { type Commands, createIpRoute, type LinkState } from '#lib/iproute.ts'

import { rangesOf } from './asked-ranges.ts'
import { nodeAddress } from './runtime-file.ts'

const run = promisify(execFile)

/** The link inside. */
export const NODE_LINK = 'eth0'

export interface NodePlace {
  /** The second node of a machine is 2: the machine itself is the first. */
  readonly number: number
  readonly name: string
  /** What it keeps. */
  readonly dataDir: string
  readonly places: Places
  readonly netns: string
  /** The end of its link on the machine. */
  readonly link: string
  /** Holds its host name. */
  readonly utsFile: string
  /** Put before a program that is to run as if on the node. */
  readonly within: readonly string[]
}

export function nodesFolder(dataDir: string): string {
  return join(dataDir, 'nodes')
}

export function nodePlace(dataDir: string, number: number, machine: string = hostname().toLowerCase()): NodePlace {
  const own = join(nodesFolder(dataDir), String(number))
  const places = placesOf(own)
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

export interface NamespaceWish {
  readonly nodeBridge: string
  readonly nodeCidr: string
}

/** Made, or mended: pods in it go on. */
export async function ensureNamespace(place: NodePlace, { nodeBridge, nodeCidr }: NamespaceWish): Promise<void> {
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
  const wishes = rangesOf(nodeCidr).map((range) => ({
    address: `${nodeAddress(range, number)}/${range.split('/')[1]}`,
    gateway: nodeAddress(range),
  }))
  await inside.ip(planInside(wishes, await inside.links()))
}

interface Outside {
  readonly link: string
  readonly netns: string
  readonly nodeBridge: string
}

export function planOutside({ link, netns, nodeBridge }: Outside, found: LinkState | undefined): Commands {
  const made = ['link', 'add', 'name', link, 'type', 'veth', 'peer', 'name', NODE_LINK, 'netns', netns]
  const isUp = found?.flags.includes('UP') === true
  const isHairpin = found?.master === nodeBridge && found.linkinfo?.info_slave_data?.hairpin === true
  return [
    ...(found === undefined ? [made] : []),
    ...(found?.master === nodeBridge ? [] : [['link', 'set', 'dev', link, 'master', nodeBridge]]),
    // Without it, the bridge drops what a node sends to itself through a node port of another node.
    ...(isHairpin ? [] : [['link', 'set', 'dev', link, 'type', 'bridge_slave', 'hairpin', 'on']]),
    ...(isUp ? [] : [['link', 'set', 'dev', link, 'up']]),
  ]
}

/** One of each family. */
export function planInside(
  wishes: readonly { readonly address: string; readonly gateway: string }[],
  links: readonly LinkState[],
): Commands {
  const named = (name: string): LinkState | undefined => links.find(({ ifname }) => ifname === name)
  const isUp = (name: string): boolean => named(name)?.flags.includes('UP') === true
  const has = (address: string): boolean =>
    named(NODE_LINK)?.addr_info.some(({ local, prefixlen }) => `${local}/${prefixlen}` === address) === true
  const missing = wishes.filter(({ address }) => !has(address))
  return [
    ...(isUp('lo') ? [] : [['link', 'set', 'dev', 'lo', 'up']]),
    ...missing.map(({ address }) => ['address', 'add', address, 'dev', NODE_LINK, ...noDad(address)]),
    ...(isUp(NODE_LINK) ? [] : [['link', 'set', 'dev', NODE_LINK, 'up']]),
    ...wishes.map(({ gateway }) => ['route', 'replace', 'default', 'via', gateway, 'dev', NODE_LINK]),
  ]
}

/** Nobody else has it: it may be used at once. */
const noDad = (address: string): readonly string[] => (address.includes(':') ? ['nodad'] : [])

/** Whatever is in it must have ended. Harmless when there is none. */
export async function removeNamespace({ netns, utsFile }: NodePlace): Promise<void> {
  if (await isThere(`/run/netns/${netns}`)) await run('ip', ['netns', 'delete', netns])
  await run('umount', [utsFile]).catch(() => undefined)
}

export async function hasNamespace({ netns, utsFile }: NodePlace): Promise<boolean> {
  return (await isThere(`/run/netns/${netns}`)) && (await isNamed(utsFile))
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

/** The file may be there without what it stood for: after a reboot. */
function isNamed(utsFile: string): Promise<boolean> {
  return run('nsenter', [`--uts=${utsFile}`, 'true']).then(
    () => true,
    () => false,
  )
}
