/** Reads health, Kubernetes version and node capacity of a managed cluster. */
import { type Node, Namespaces, Nodes } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { addQuantities, parseQuantity, type Quantity, quantityText } from '#meta/quantity.ts'

import type { ClusterStatus } from '../kinds/cluster.ts'

/** The result of a health check. Everything except `uid` and `version` depends on the nodes. */
export type ClusterHealth = Required<Pick<ClusterStatus, 'uid' | 'version' | 'nodes' | 'capacity' | 'allocatable'>>

const MAX_VERSION_BYTES = 64 << 10
/** Characters that are kept. */
const MAX_VERSION = 128
/** Sums of other resources mean little to people. */
const RESOURCES = ['cpu', 'memory', 'pods']

/** Rejects if the API server of the cluster does not answer. */
export async function probeCluster(client: ApiClient, signal: AbortSignal): Promise<ClusterHealth> {
  const { metadata } = await client.get(Namespaces, { name: 'kube-system' }, { signal })
  const version = await client.ask({ method: 'GET', path: '/version', signal })
  const { gitVersion } = JSON.parse(await version.text(MAX_VERSION_BYTES)) as { readonly gitVersion?: unknown }
  const { items } = await client.list(Nodes, { signal, resourceVersion: '0' })
  return {
    uid: metadata.uid ?? '',
    version: typeof gitVersion === 'string' ? gitVersion.slice(0, MAX_VERSION) : '',
    nodes: { total: items.length, ready: items.filter(isReady).length },
    capacity: sums(items.map(({ status }) => status?.capacity ?? {})),
    allocatable: sums(items.map(({ status }) => status?.allocatable ?? {})),
  }
}

function isReady({ status }: Node): boolean {
  return (status?.conditions ?? []).some((condition) => condition.type === 'Ready' && condition.status === 'True')
}

function sums(lists: readonly Readonly<Record<string, string>>[]): Record<string, string> {
  const totals: Record<string, string> = {}
  for (const name of RESOURCES) {
    let total: Quantity | undefined
    for (const list of lists) {
      if (list[name] === undefined) continue
      const quantity = parseQuantity(list[name])
      total = total === undefined ? quantity : addQuantities(total, quantity)
    }
    if (total !== undefined) totals[name] = quantityText(total)
  }
  return totals
}
