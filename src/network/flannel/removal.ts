/** Removes flannel's links, routes and tables from this machine. */
import type { Commands, IpRoute, LinkState, RouteState } from '#lib/net/iproute.ts'
import { deleteNftTable } from '#lib/net/nft.ts'

import { flannelTable } from './flannel.ts'
import { removeForwarding } from './forwarding.ts'
import { ROUTE_PROTOCOL } from './peers.ts'

/** Does nothing where nothing exists. */
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

/** Links with any VNI, because the configuration may have changed; their routes and neighbours go with them. Pure. */
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
