/** Plans the HCN network and its remote subnet policies. Pure. */
import type { HcnNetwork, HcnPolicy } from '#lib/hns/hcn.ts'

import type { Lease } from '../lease.ts'

export interface NetworkSpec {
  readonly name: string
  readonly vni: number
  /** The range of this node's pods, and its gateway. */
  readonly subnet: string
  readonly gateway: string
  /** The name of the external adapter. */
  readonly adapter: string
}

export function wantedNetwork({ name, vni, subnet, gateway, adapter }: NetworkSpec): Omit<HcnNetwork, 'ID'> {
  return {
    Name: name,
    Type: 'Overlay',
    Policies: [{ Type: 'NetAdapterName', Settings: { NetworkAdapterName: adapter } }],
    Ipams: [
      {
        Type: 'Static',
        Subnets: [
          {
            IpAddressPrefix: subnet,
            Policies: [{ Type: 'VSID', Settings: { IsolationId: vni } }],
            Routes: [{ NextHop: gateway, DestinationPrefix: '0.0.0.0/0' }],
          },
        ],
      },
    ],
    SchemaVersion: { Major: 2, Minor: 0 },
  }
}

/** Whether an existing network has the same type and addresses. */
export function isSameNetwork(found: HcnNetwork, { subnet }: NetworkSpec): boolean {
  const prefixes =
    found.Ipams?.flatMap(({ Subnets = [] }) => Subnets.map(({ IpAddressPrefix }) => IpAddressPrefix)) ?? []
  return found.Type.toLowerCase() === 'overlay' && prefixes.length === 1 && prefixes[0] === subnet
}

/** The MAC of the distributed router, for other nodes. Undefined: not assigned yet. */
export function routerMac({ Policies = [] }: HcnNetwork): string | undefined {
  const found = Policies.find(({ Type }) => Type === 'DrMacAddress')?.Settings?.['Address']
  return typeof found === 'string' ? macOf(found) : undefined
}

/** The management address of the network. Undefined: not assigned yet. */
export function managementIp({ Policies = [] }: HcnNetwork): string | undefined {
  const found = Policies.find(({ Type }) => Type === 'ProviderAddress')?.Settings?.['ProviderAddress']
  return typeof found === 'string' && found !== '' ? found : undefined
}

export function hasHostRoute({ Policies = [] }: HcnNetwork): boolean {
  return Policies.some(({ Type }) => Type === 'HostRoute')
}

const LEAST_VNI = 4096

export interface RemoteChanges {
  readonly take: readonly HcnPolicy[]
  readonly add: readonly HcnPolicy[]
}

/** `leases` are those of all nodes. Removes the old policy of a range before it adds the new one. */
export function planRemoteSubnets(node: string, leases: readonly Lease[], found: HcnNetwork): RemoteChanges {
  const wanted = leases
    .filter((lease) => lease.node !== node && lease.family === 4 && lease.backendType === 'vxlan')
    .flatMap(({ subnet, publicIp, mac, vni = 0 }) =>
      mac === undefined || vni < LEAST_VNI ? [] : [remoteSubnetPolicy(subnet, publicIp, mac, vni)],
    )
  const there = (found.Policies ?? []).filter(({ Type }) => Type === 'RemoteSubnetRoute')
  const keys = (policies: readonly HcnPolicy[]): Set<string> => new Set(policies.map(keyOf))
  const [wantedKeys, thereKeys] = [keys(wanted), keys(there)]
  return {
    take: there.filter((policy) => !wantedKeys.has(keyOf(policy))),
    add: wanted.filter((policy) => !thereKeys.has(keyOf(policy))),
  }
}

function remoteSubnetPolicy(subnet: string, publicIp: string, mac: string, vni: number): HcnPolicy {
  return {
    Type: 'RemoteSubnetRoute',
    Settings: {
      DestinationPrefix: subnet,
      IsolationId: vni,
      ProviderAddress: publicIp,
      DistributedRouterMacAddress: mac,
    },
  }
}

/** Equal for equal policies, in any MAC notation. */
function keyOf({ Settings = {} }: HcnPolicy): string {
  const { DestinationPrefix, IsolationId, ProviderAddress, DistributedRouterMacAddress: mac } = Settings
  return JSON.stringify([DestinationPrefix, IsolationId, ProviderAddress, typeof mac === 'string' ? macOf(mac) : mac])
}

/** Treats `00-15-5D-01-02-03` and `00:15:5d:01:02:03` as equal. */
function macOf(text: string): string {
  return text.replaceAll('-', ':').toLowerCase()
}
