/** One node's end of the network as the kernel has it: the thin part that reads, compares and changes. */
import type { IpRoute } from '#lib/iproute.ts'
import { applyNft, listNftTable } from '#lib/nft.ts'

import type { Lease } from './lease.ts'
import { planVxlan, type VxlanWish } from './link.ts'
import { masqueradeRules, type MasqueradeWish, type NftTable } from './masquerade.ts'
import { type Around, planPaths } from './peers.ts'

/** Returns the MAC it has. A link that fits is taken as it is. */
export async function ensureVxlan(ip: IpRoute, wish: VxlanWish): Promise<string> {
  const found = await ip.link(wish.name)
  const commands = planVxlan(wish, found)
  if (commands.length === 0 && found?.address !== undefined) return found.address
  await ip.ip(commands)
  return (await ip.link(wish.name))?.address ?? wish.mac
}

/** Whether anything was not as it should be. */
export async function ensurePaths(
  ip: IpRoute,
  around: Around,
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

function mayBeDirect({ backend }: Around): boolean {
  return backend.type === 'host-gw' || (backend.type === 'vxlan' && backend.directRouting)
}

/** Rules that are there are not touched. */
export async function ensureMasquerade(wish: MasqueradeWish, isNew: boolean): Promise<void> {
  if (!isNew && (await isWhole(wish.table))) return
  await applyNft(masqueradeRules(wish))
}

async function isWhole({ family, name }: NftTable): Promise<boolean> {
  return (await listNftTable(family, name))?.some((one) => 'rule' in one) === true
}
