/** Plans the VXLAN link: its settings, and whether an existing link fits. Pure. */
import type { Commands, LinkState } from '#lib/net/iproute.ts'

import { planAddresses } from '../bridge.ts'
import type { VxlanBackend } from './net-conf.ts'

/** The overhead of VXLAN: outer Ethernet, IP, UDP and VXLAN headers. */
const OVERHEAD = { 4: 50, 6: 70 } as const

/** The interface to other nodes. */
export interface ExternalInterface {
  readonly name: string
  readonly mtu: number
  /** Its networks, whose nodes are reachable directly. */
  readonly networks: readonly string[]
}

export interface VxlanSpec {
  readonly name: string
  readonly family: 4 | 6
  readonly backend: VxlanBackend
  readonly external: ExternalInterface
  /** The source address of the tunnel. */
  readonly local: string
  /** The first address of the node's range. */
  readonly address: string
  /** Used for a new link. */
  readonly mac: string
}

export function vxlanMtu({ family, backend, external }: Pick<VxlanSpec, 'family' | 'backend' | 'external'>): number {
  return backend.mtu ?? external.mtu - OVERHEAD[family]
}

/** Keeps a fitting link with its MAC; replaces another link of that name. */
export function planVxlan(spec: VxlanSpec, found: LinkState | undefined): Commands {
  const { name, family, address } = spec
  const fits = found !== undefined && isSame(spec, found)
  const mtu = vxlanMtu(spec)
  const kept = fits ? found : undefined
  const isUp = kept?.flags.includes('UP') === true
  return [
    ...(found !== undefined && !fits ? [['link', 'delete', 'dev', name]] : []),
    ...(fits ? [] : [newLink(spec)]),
    ...(kept === undefined || kept.mtu === mtu ? [] : [['link', 'set', 'dev', name, 'mtu', String(mtu)]]),
    ...planAddresses(name, [`${address}/${family === 4 ? 32 : 128}`], kept),
    ...(isUp ? [] : [['link', 'set', 'dev', name, 'up']]),
  ]
}

function newLink(spec: VxlanSpec): string[] {
  const { name, backend, external, local, mac } = spec
  const what = ['link', 'add', 'name', name, 'address', mac, 'mtu', String(vxlanMtu(spec)), 'type', 'vxlan']
  const where = ['id', String(backend.vni), 'local', local, 'dev', external.name, 'dstport', String(backend.port)]
  return [...what, ...where, backend.learning ? 'learning' : 'nolearning', ...(backend.gbp ? ['gbp'] : [])]
}

function isSame({ backend, external, local, family }: VxlanSpec, { linkinfo }: LinkState): boolean {
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
