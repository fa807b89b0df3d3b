/**
 * Plans the paths to the pods of other nodes: a direct route within one network, otherwise a route, a neighbour and a
 * forwarding entry. Restores missing entries, and removes those of deleted nodes. Pure.
 */
import { contains, parseCidr, parseIp } from '#lib/net/cidr.ts'
import type { Commands, ForwardingState, NeighbourState, RouteState } from '#lib/net/iproute.ts'

import type { Lease } from './lease.ts'
import type { ExternalInterface } from './link.ts'
import type { FlannelBackend } from './net-conf.ts'

/** The protocol number that identifies our routes on a shared interface. */
export const ROUTE_PROTOCOL = '84'

export interface PathOptions {
  readonly node: string
  readonly backend: FlannelBackend
  readonly external: ExternalInterface
  /** The name of the family's overlay link. */
  readonly overlay: string
}

/** The existing state of one family. */
export interface FoundPaths {
  /** Routes on the overlay link; empty without one. */
  readonly overlayRoutes: readonly RouteState[]
  readonly neighbours: readonly NeighbourState[]
  readonly forwarding: readonly ForwardingState[]
  /** Routes on the external interface. */
  readonly directRoutes: readonly RouteState[]
}

export interface PathChanges {
  readonly ip: Commands
  readonly bridge: Commands
}

/** `leases` are those of all nodes in one family. Nodes with unusable leases get no path. */
export function planPaths(around: PathOptions, leases: readonly Lease[], found: FoundPaths): PathChanges {
  const others = leases.filter(({ node, backendType }) => node !== around.node && backendType === around.backend.type)
  const direct = others.filter((lease) => isDirect(around, lease))
  const through = others.filter((lease) => isThrough(around, lease) && !direct.includes(lease))
  const straight = planDirect(around.external.name, direct, found.directRoutes)
  if (around.backend.type !== 'vxlan') return { ip: straight, bridge: [] }
  const { overlay } = around
  const routes = planOverlayRoutes(overlay, through, found.overlayRoutes)
  return {
    // The neighbour entry exists before the route.
    ip: [...planNeighbours(overlay, through, found.neighbours), ...routes, ...straight],
    bridge: planForwarding(overlay, through, found.forwarding),
  }
}

function isDirect({ backend, external }: PathOptions, { publicIp }: Lease): boolean {
  if (backend.type === 'host-gw') return true
  if (backend.type !== 'vxlan' || !backend.directRouting) return false
  const ip = parseIp(publicIp)
  return external.networks.some((text) => {
    const block = parseCidr(text)
    return block !== undefined && ip !== undefined && contains(block, ip)
  })
}

function isThrough({ backend }: PathOptions, { mac, vni }: Lease): boolean {
  return backend.type === 'vxlan' && mac !== undefined && (vni === undefined || vni === backend.vni)
}

function planDirect(dev: string, leases: readonly Lease[], found: readonly RouteState[]): Commands {
  const isThere = ({ subnet, publicIp }: Lease): boolean =>
    found.some(({ dst, gateway }) => dst === subnet && gateway === publicIp)
  const wanted = new Set(leases.map(({ subnet }) => subnet))
  return [
    ...leases
      .filter((lease) => !isThere(lease))
      .map(({ subnet, publicIp }) => [
        'route',
        'replace',
        subnet,
        'via',
        publicIp,
        'dev',
        dev,
        'proto',
        ROUTE_PROTOCOL,
      ]),
    ...found
      .filter(({ dst, protocol }) => protocol === ROUTE_PROTOCOL && !wanted.has(dst))
      .map(({ dst }) => ['route', 'delete', dst, 'dev', dev, 'proto', ROUTE_PROTOCOL]),
  ]
}

function planOverlayRoutes(dev: string, leases: readonly Lease[], found: readonly RouteState[]): Commands {
  const isThere = ({ subnet, gateway }: Lease): boolean =>
    found.some((route) => route.dst === subnet && route.gateway === gateway)
  const wanted = new Set(leases.map(({ subnet }) => subnet))
  return [
    ...leases
      .filter((lease) => !isThere(lease))
      .map(({ subnet, gateway }) => ['route', 'replace', subnet, 'via', gateway, 'dev', dev, 'onlink']),
    // Routes of the kernel have no gateway.
    ...found
      .filter(({ dst, gateway }) => gateway !== undefined && !wanted.has(dst))
      .map(({ dst }) => ['route', 'delete', dst, 'dev', dev]),
  ]
}

function planNeighbours(dev: string, leases: readonly Lease[], found: readonly NeighbourState[]): Commands {
  const permanent = found.filter(({ state = [] }) => state.includes('PERMANENT'))
  const wanted = new Set(leases.map(({ gateway }) => gateway))
  return [
    ...leases
      .filter(({ gateway, mac }) => !permanent.some(({ dst, lladdr }) => dst === gateway && lladdr === mac))
      .map(({ gateway, mac = '' }) => ['neigh', 'replace', gateway, 'lladdr', mac, 'dev', dev, 'nud', 'permanent']),
    ...permanent.filter(({ dst }) => !wanted.has(dst)).map(({ dst }) => ['neigh', 'delete', dst, 'dev', dev]),
  ]
}

/** Removes the old entry of a MAC first; with two, packets would go to either. */
function planForwarding(dev: string, leases: readonly Lease[], found: readonly ForwardingState[]): Commands {
  const isThere = ({ mac, publicIp }: Lease): boolean =>
    found.some((entry) => entry.mac === mac && entry.dst === publicIp)
  const isWanted = (entry: ForwardingState): boolean =>
    leases.some(({ mac, publicIp }) => entry.mac === mac && entry.dst === publicIp)
  return [
    ...found
      .filter((entry) => entry.dst !== undefined && !isWanted(entry))
      .map(({ mac, dst = '' }) => ['fdb', 'delete', mac, 'dev', dev, 'dst', dst, 'self']),
    ...leases
      .filter((lease) => !isThere(lease))
      .map(({ mac = '', publicIp }) => ['fdb', 'append', mac, 'dev', dev, 'dst', publicIp, 'self', 'permanent']),
  ]
}
