/**
 * The provider `local`, for machines without a cloud. Services use the nodes' addresses; this machine gets routes to
 * the pods of other nodes on shared links; node data comes from the kubelets.
 */
import type { Node } from '#apis/core/v1.ts'
import { createIpRoute, type IpRoute, type RouteState } from '#lib/net/iproute.ts'

import { createNodeBalancer } from './node-balancer.ts'
import type { CloudProvider, Instances, Route, Routes } from './provider.ts'

/** The ports of kubelets and API servers. */
const RESERVED = [10_250, 6443]
/** The routing protocol number of our routes. */
const PROTOCOL = '72'

export function createLocalProvider(ip: IpRoute = createIpRoute()): CloudProvider {
  return {
    name: 'local',
    instances: INSTANCES,
    loadBalancer: createNodeBalancer({ reserved: () => RESERVED }),
    routes: createMachineRoutes(ip),
  }
}

/** Always present: no cloud can tell that a machine is gone. */
const INSTANCES: Instances = {
  exists: () => Promise.resolve(true),
  isShutDown: () => Promise.resolve(false),
  metadata: ({ metadata: { name = '' }, status }: Node) =>
    Promise.resolve({ providerId: `local://${name}`, addresses: status?.addresses ?? [] }),
}

type RouteWithProtocol = RouteState & { readonly protocol?: string }

/** Routes in this machine's table. Its own pods need none. */
export function createMachineRoutes(ip: IpRoute): Routes {
  const made = new Map<string, Route>()
  const gatewayFor = ({ destination, addresses }: Route): string | undefined =>
    addresses.find(({ type, address }) => type === 'InternalIP' && address.includes(':') === destination.includes(':'))
      ?.address
  return {
    async list() {
      const all: readonly RouteWithProtocol[] = [...(await ip.routes(4)), ...(await ip.routes(6))]
      return all
        .filter(({ protocol }) => protocol === PROTOCOL)
        .map(({ dst, gateway = '' }) => {
          const { node = '', addresses = [] } = made.get(`${dst} ${gateway}`) ?? {}
          return { name: dst, node, destination: dst, addresses, tellsAddresses: true }
        })
    },
    async create(_, route) {
      const gateway = gatewayFor(route)
      if (gateway === undefined) throw new Error(`node ${route.node} has no address of that family`)
      const links = await ip.links()
      if (links.some(({ addr_info: own }) => own.some(({ local }) => local === gateway))) return
      await ip.ip([['route', 'replace', route.destination, 'via', gateway, 'proto', PROTOCOL]])
      made.set(`${route.destination} ${gateway}`, route)
    },
    async remove(_, { destination }) {
      await ip.ip([['route', 'delete', destination, 'proto', PROTOCOL]])
    },
  }
}
