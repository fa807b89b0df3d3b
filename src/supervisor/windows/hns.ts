/** Creates pod networks on Windows, through its Host Networking Service. */
import { documentsOf, type HnsCall, type HnsNetwork } from '#lib/hns/hns.ts'

import type { PodNetwork, PodNetworks } from '../host.ts'

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
