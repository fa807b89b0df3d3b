/** Requests an Operation and shows its progress. */
import { go } from '../routing/router.tsx'
import { requestOperation } from './operation-requests.ts'

/** Rejects with RequestError. */
export async function openOperation(cluster: string, body: object): Promise<void> {
  const operation = await requestOperation(cluster, body)
  go({ page: 'server-view', view: 'clusters', item: cluster }, { tab: 'operations', operation })
}
