/** A node leaves the network: what flannel has made in the kernel of this machine goes, by the names that only it gives. */
import type { Commands, IpRoute, LinkState, RouteState } from '#lib/iproute.ts'
import { deleteNftTable } from '#lib/nft.ts'

import { flannelTable } from './flannel.ts'
import { removeForwarding } from './forwarding.ts'
import { ROUTE_PROTOCOL } from './peers.ts'

/** Harmless where there is nothing, or not all of it. */
export async function removeFlannel(ip: IpRoute): Promise<void> {
  const links = await ip.links()
  const routes = await Promise.all(([4, 6] as const).map((family) => ip.routes(family)))
  await ip.ip(planRemoval(links, routes.flat()))
  for (const family of [4, 6] as const) {
    const table = flannelTable(family)
    await deleteNftTable(table.family, table.name)
  }
  for (const program of ['iptables', 'ip6tables'] as const) await removeForwarding(program)
}

/** Links whatever their number is, as the file that said it may have changed since; their routes and neighbours go with them. Pure. */
export function planRemoval(links: readonly LinkState[], routes: readonly RouteState[]): Commands {
  const overlays = links
    .filter(({ ifname, linkinfo }) => linkinfo?.info_kind === 'vxlan' && /^flannel(?:-v6)?\.\d+$/.test(ifname))
    .map(({ ifname }) => ifname)
  const direct = routes.filter(({ protocol, dev = '' }) => protocol === ROUTE_PROTOCOL && !overlays.includes(dev))
  return [
    ...direct.map(({ dst, dev = '' }) => ['route', 'delete', dst, 'dev', dev, 'proto', ROUTE_PROTOCOL]),
    ...overlays.map((name) => ['link', 'delete', 'dev', name]),
  ]
}
