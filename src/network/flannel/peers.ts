/**
 * The ways to the pods of other nodes: through the overlay a route, the MAC of its far end and where packets for that MAC go;
 * or a plain route to the node where one network holds both. What is there is compared with what should be, so that
 * whatever somebody took away comes back, and of a node that has gone nothing stays. Pure.
 */
import { contains, parseCidr, parseIp } from '#lib/cidr.ts'
import type { Commands, ForwardingState, NeighbourState, RouteState } from '#lib/iproute.ts'

import type { Lease } from './lease.ts'
import type { ExternalInterface } from './link.ts'
import type { FlannelBackend } from './net-conf.ts'

/** Routes on an interface that others use too: by this number we know ours again. */
export const ROUTE_PROTOCOL = '84'

export interface Around {
  readonly node: string
  readonly backend: FlannelBackend
  readonly external: ExternalInterface
  /** Name of the link into the overlay of this family. */
  readonly overlay: string
}

/** Of one family. */
export interface FoundPaths {
  /** On the overlay; empty where there is none. */
  readonly overlayRoutes: readonly RouteState[]
  readonly neighbours: readonly NeighbourState[]
  readonly forwarding: readonly ForwardingState[]
  /** On the interface to other nodes. */
  readonly directRoutes: readonly RouteState[]
}

export interface PathChanges {
  readonly ip: Commands
  readonly bridge: Commands
}

/** Leases are those of one family, of all nodes. A node that says nothing usable has no way to it. */
export function planPaths(around: Around, leases: readonly Lease[], found: FoundPaths): PathChanges {
  const others = leases.filter(({ node, backendType }) => node !== around.node && backendType === around.backend.type)
  const direct = others.filter((lease) => isDirect(around, lease))
  const through = others.filter((lease) => isThrough(around, lease) && !direct.includes(lease))
  const straight = planDirect(around.external.name, direct, found.directRoutes)
  if (around.backend.type !== 'vxlan') return { ip: straight, bridge: [] }
  const { overlay } = around
  const routes = planOverlayRoutes(overlay, through, found.overlayRoutes)
  return {
    // A packet that finds its route finds the MAC, too.
    ip: [...planNeighbours(overlay, through, found.neighbours), ...routes, ...straight],
    bridge: planForwarding(overlay, through, found.forwarding),
  }
}

function isDirect({ backend, external }: Around, { publicIp }: Lease): boolean {
  if (backend.type === 'host-gw') return true
  if (backend.type !== 'vxlan' || !backend.directRouting) return false
  const ip = parseIp(publicIp)
  return external.networks.some((text) => {
    const block = parseCidr(text)
    return block !== undefined && ip !== undefined && contains(block, ip)
  })
}

function isThrough({ backend }: Around, { mac, vni }: Lease): boolean {
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
    // The kernel's own have no gateway.
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

/** Where a MAC had two ends, packets would go to either: the old one goes before the new one comes. */
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
