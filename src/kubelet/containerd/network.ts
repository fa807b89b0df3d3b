/** The network of a node's pods: a bridge of its own, with addresses of the node's pod CIDR. Pure. */
import type { Places } from './places.ts'

/** Programs that make it. */
export const CNI_PLUGINS = ['bridge', 'host-local', 'loopback', 'portmap'] as const

/** Less than Ethernet's by what VXLAN adds: packets go to pods of other nodes whole. */
const MTU = 1450

/** A CNI configuration list. One range for each family of `podCidrs`. */
export function networkConfig(podCidrs: readonly string[], { network, addressFolder }: Places): string {
  const isV6 = (cidr: string): boolean => cidr.includes(':')
  const list = {
    cniVersion: '0.4.0',
    name: network,
    plugins: [
      {
        type: 'bridge',
        bridge: network,
        isGateway: true,
        // A node that is registered anew may have other addresses; without this no pod would start any more.
        forceAddress: true,
        // That pods reach the world as their node is flannel's to say, who knows which addresses are pods'.
        ipMasq: false,
        // They reach themselves through a Service.
        hairpinMode: true,
        mtu: MTU,
        ipam: {
          type: 'host-local',
          dataDir: addressFolder,
          ranges: podCidrs.map((subnet) => [{ subnet }]),
          routes: podCidrs.map((cidr) => ({ dst: isV6(cidr) ? '::/0' : '0.0.0.0/0' })),
        },
      },
      { type: 'portmap', capabilities: { portMappings: true }, snat: true },
    ],
  }
  return `${JSON.stringify(list, undefined, 2)}\n`
}
