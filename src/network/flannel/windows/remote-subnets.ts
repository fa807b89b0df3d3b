/** The network of pods on Windows, and the ways to the pods of other nodes: policies of it. Pure. */
import type { HcnNetwork, HcnPolicy } from '#lib/hns/hcn.ts'

import type { Lease } from '../lease.ts'

export interface NetworkWish {
  readonly name: string
  readonly vni: number
  /** Addresses of this node's pods, and the first that is a gateway. */
  readonly subnet: string
  readonly gateway: string
  /** Of the adapter to other nodes, by its name. */
  readonly adapter: string
}

export function wantedNetwork({ name, vni, subnet, gateway, adapter }: NetworkWish): Omit<HcnNetwork, 'ID'> {
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

/** Whether what is there will do: another type or other addresses would lead packets astray. */
export function isSameNetwork(found: HcnNetwork, { subnet }: NetworkWish): boolean {
  const prefixes =
    found.Ipams?.flatMap(({ Subnets = [] }) => Subnets.map(({ IpAddressPrefix }) => IpAddressPrefix)) ?? []
  return found.Type.toLowerCase() === 'overlay' && prefixes.length === 1 && prefixes[0] === subnet
}

/** Of the router that the machine makes of itself: others send to it. Undefined: the machine does not say yet. */
export function routerMac({ Policies = [] }: HcnNetwork): string | undefined {
  const found = Policies.find(({ Type }) => Type === 'DrMacAddress')?.Settings?.['Address']
  return typeof found === 'string' ? macOf(found) : undefined
}

/** The address by which other nodes reach the network. Undefined: not yet. */
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

/** Leases of all nodes. The old way to a range goes before the new one comes: one range has one way. */
export function planRemoteSubnets(node: string, leases: readonly Lease[], found: HcnNetwork): RemoteChanges {
  const wanted = leases
    .filter((lease) => lease.node !== node && lease.family === 4 && lease.backendType === 'vxlan')
    .flatMap(({ subnet, publicIp, mac, vni = 0 }) =>
      mac === undefined || vni < LEAST_VNI ? [] : [wayTo(subnet, publicIp, mac, vni)],
    )
  const there = (found.Policies ?? []).filter(({ Type }) => Type === 'RemoteSubnetRoute')
  const keys = (policies: readonly HcnPolicy[]): Set<string> => new Set(policies.map(keyOf))
  const [wantedKeys, thereKeys] = [keys(wanted), keys(there)]
  return {
    take: there.filter((policy) => !wantedKeys.has(keyOf(policy))),
    add: wanted.filter((policy) => !thereKeys.has(keyOf(policy))),
  }
}

function wayTo(subnet: string, publicIp: string, mac: string, vni: number): HcnPolicy {
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

/** What makes two the same, however the machine writes a MAC. */
function keyOf({ Settings = {} }: HcnPolicy): string {
  const { DestinationPrefix, IsolationId, ProviderAddress, DistributedRouterMacAddress: mac } = Settings
  return JSON.stringify([DestinationPrefix, IsolationId, ProviderAddress, typeof mac === 'string' ? macOf(mac) : mac])
}

/** `00-15-5D-01-02-03` and `00:15:5d:01:02:03` are one. */
function macOf(text: string): string {
  return text.replaceAll('-', ':').toLowerCase()
}
