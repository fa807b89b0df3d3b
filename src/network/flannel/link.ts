/** The link into the overlay: what it must be like, and whether one that is there already will do. Pure. */
import type { Commands, LinkState } from '#lib/iproute.ts'

import { planAddresses } from '../bridge.ts'
import type { VxlanBackend } from './net-conf.ts'

/** What VXLAN puts around a packet: outer Ethernet, IP, UDP and its own header. */
const OVERHEAD = { 4: 50, 6: 70 } as const

/** The interface over which other nodes are reached. */
export interface ExternalInterface {
  readonly name: string
  readonly mtu: number
  /** What nodes of its network are reached directly by. */
  readonly networks: readonly string[]
}

export interface VxlanWish {
  readonly name: string
  readonly family: 4 | 6
  readonly backend: VxlanBackend
  readonly external: ExternalInterface
  /** Where packets leave from. */
  readonly local: string
  /** The first address of the node's pods. */
  readonly address: string
  /** Taken when there is no link yet. */
  readonly mac: string
}

export function vxlanMtu({ family, backend, external }: Pick<VxlanWish, 'family' | 'backend' | 'external'>): number {
  return backend.mtu ?? external.mtu - OVERHEAD[family]
}

/** A link that fits stays, with its MAC and whatever goes through it; another that has the name makes room. */
export function planVxlan(wish: VxlanWish, found: LinkState | undefined): Commands {
  const { name, family, address } = wish
  const fits = found !== undefined && isSame(wish, found)
  const mtu = vxlanMtu(wish)
  const kept = fits ? found : undefined
  const isUp = kept?.flags.includes('UP') === true
  return [
    ...(found !== undefined && !fits ? [['link', 'delete', 'dev', name]] : []),
    ...(fits ? [] : [newLink(wish)]),
    ...(kept === undefined || kept.mtu === mtu ? [] : [['link', 'set', 'dev', name, 'mtu', String(mtu)]]),
    ...planAddresses(name, [`${address}/${family === 4 ? 32 : 128}`], kept),
    ...(isUp ? [] : [['link', 'set', 'dev', name, 'up']]),
  ]
}

function newLink(wish: VxlanWish): string[] {
  const { name, backend, external, local, mac } = wish
  const what = ['link', 'add', 'name', name, 'address', mac, 'mtu', String(vxlanMtu(wish)), 'type', 'vxlan']
  const where = ['id', String(backend.vni), 'local', local, 'dev', external.name, 'dstport', String(backend.port)]
  return [...what, ...where, backend.learning ? 'learning' : 'nolearning', ...(backend.gbp ? ['gbp'] : [])]
}

function isSame({ backend, external, local, family }: VxlanWish, { linkinfo }: LinkState): boolean {
  if (linkinfo?.info_kind !== 'vxlan') return false
  const data = linkinfo.info_data ?? {}
  const wanted: readonly (readonly [unknown, unknown])[] = [
    [data['id'], backend.vni],
    [data['port'], backend.port],
    [data[family === 4 ? 'local' : 'local6'], local],
    [data['link'], external.name],
    [data['learning'] ?? false, backend.learning],
    [data['gbp'] ?? false, backend.gbp],
  ]
  return wanted.every(([has, wants]) => has === wants)
}
