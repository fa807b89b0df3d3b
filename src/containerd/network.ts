/** CNI configuration of a node's pods: a bridge with addresses of the node's pod CIDRs. Pure. */
import type { ContainerdPaths } from './paths.ts'

/** The CNI plugins it needs. */
export const CNI_PLUGINS = ['bridge', 'host-local', 'loopback', 'portmap'] as const

/** Ethernet's MTU minus the overhead of VXLAN, so that packets to other nodes are not fragmented. */
const MTU = 1450

/** A CNI configuration list with one range per family of `podCidrs`. */
export function networkConfig(podCidrs: readonly string[], { network, addressFolder }: ContainerdPaths): string {
  const isV6 = (cidr: string): boolean => cidr.includes(':')
  const list = {
    cniVersion: '0.4.0',
    name: network,
    plugins: [
      {
        type: 'bridge',
        bridge: network,
        isGateway: true,
        // A re-registered node may get another pod CIDR; the bridge must then change its address.
        forceAddress: true,
        // Flannel masquerades traffic to the outside, since it knows all pod CIDRs.
        ipMasq: false,
        // Pods may reach themselves through a Service.
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
