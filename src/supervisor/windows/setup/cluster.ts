/** The cluster that a worker joins, through its API. */
import { Nodes, Services } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { isNotFound } from '#meta/status.ts'

import { CrashError } from '../../outcome.ts'
import type { ClusterView } from './context.ts'

export function clusterBehind(client: ApiClient, signal: AbortSignal): ClusterView {
  return {
    async dnsServiceIp() {
      const { items } = await client.list(Services, { namespace: 'kube-system', signal })
      const found = items.find(({ metadata }) => metadata.name?.includes('dns'))
      const address = found?.spec.clusterIP
      if (address === undefined || address === '' || address === 'None')
        throw new CrashError(
          'The cluster has no Service for DNS in kube-system: install one before its Windows workers',
        )
      return address
    },
    isNodeThere: (name) =>
      client.get(Nodes, { name }, { signal }).then(
        () => true,
        (error: unknown) => {
          if (isNotFound(error)) return false
          throw error
        },
      ),
    async deleteNode(name) {
      await client.delete(Nodes, { name }, { signal }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error
      })
    },
  }
}
