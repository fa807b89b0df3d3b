/** Applies plans of links, routes and neighbours to the kernel: reads the current ones, compares and changes them. */
import type { IpRoute } from '#lib/net/iproute.ts'
import { applyNft, listNftTable } from '#lib/net/nft.ts'

import type { Lease } from './lease.ts'
import { planVxlan, type VxlanSpec } from './link.ts'
import { masqueradeRules, type MasqueradeSpec, type NftTable } from './masquerade.ts'
import { type PathOptions, planPaths } from './peers.ts'

/** Returns the link's MAC. Keeps a fitting link. */
export async function ensureVxlan(ip: IpRoute, spec: VxlanSpec): Promise<string> {
  const found = await ip.link(spec.name)
  const commands = planVxlan(spec, found)
  if (commands.length === 0 && found?.address !== undefined) return found.address
  await ip.ip(commands)
  return (await ip.link(spec.name))?.address ?? spec.mac
}

/** Returns whether anything changed. */
export async function ensurePaths(
  ip: IpRoute,
  around: PathOptions,
  family: 4 | 6,
  leases: readonly Lease[],
): Promise<boolean> {
  const { backend, overlay, external } = around
  const isOverlaid = backend.type === 'vxlan'
  const [overlayRoutes, neighbours, forwarding, directRoutes] = await Promise.all([
    isOverlaid ? ip.routes(family, overlay) : [],
    isOverlaid ? ip.neighbours(overlay) : [],
    isOverlaid ? ip.forwarding(overlay) : [],
    mayBeDirect(around) ? ip.routes(family, external.name) : [],
  ])
  const changes = planPaths(around, leases, { overlayRoutes, neighbours, forwarding, directRoutes })
  await ip.bridge(changes.bridge)
  await ip.ip(changes.ip)
  return changes.ip.length + changes.bridge.length > 0
}

function mayBeDirect({ backend }: PathOptions): boolean {
  return backend.type === 'host-gw' || (backend.type === 'vxlan' && backend.directRouting)
}

/** Keeps existing rules. */
export async function ensureMasquerade(spec: MasqueradeSpec, isNew: boolean): Promise<void> {
  if (!isNew && (await isWhole(spec.table))) return
  await applyNft(masqueradeRules(spec))
}

async function isWhole({ family, name }: NftTable): Promise<boolean> {
  return (await listNftTable(family, name))?.some((one) => 'rule' in one) === true
}
