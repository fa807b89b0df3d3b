/**
 * Windows' Host Networking Service: one call with a method, a path and a document; collections of networks, endpoints and
 * policy lists. What it answers is in an envelope, which may hold an error beside what was asked for.
 */
import type { PodNetwork, PodNetworks } from '../host.ts'

export interface HnsAnswer {
  readonly Success?: boolean
  readonly Error?: string
  readonly Output?: unknown
}

export type HnsCall = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) => Promise<HnsAnswer>

export interface HnsNetwork {
  readonly ID: string
  readonly Name: string
  /** `Overlay`, `L2Bridge`, `NAT` … */
  readonly Type: string
  readonly NetworkAdapterName?: string
  readonly Subnets?: readonly {
    readonly AddressPrefix?: string
    readonly GatewayAddress?: string
    readonly Policies?: readonly object[]
  }[]
}

export function hnsPodNetworks(call: HnsCall): PodNetworks {
  return {
    async list() {
      return documentsOf<HnsNetwork>(await call('GET', '/networks')).map(toPodNetwork)
    },
    async remove(id) {
      await call('DELETE', `/networks/${id}`)
    },
    async removeServicePolicies() {
      const lists = documentsOf<{ readonly ID: string }>(await call('GET', '/policylists'))
      for (const { ID } of lists) await call('DELETE', `/policylists/${ID}`)
    },
  }
}

function toPodNetwork({ ID, Name, Type, Subnets }: HnsNetwork): PodNetwork {
  return { id: ID, name: Name, type: Type.toLowerCase(), prefix: Subnets?.[0]?.AddressPrefix }
}

/** One document comes without a list around it. */
function documentsOf<T>({ Output }: HnsAnswer): T[] {
  if (Output === undefined || Output === null) return []
  return (Array.isArray(Output) ? Output : [Output]) as T[]
}
