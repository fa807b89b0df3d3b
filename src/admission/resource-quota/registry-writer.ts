/** Stores what is used of quotas through the registry. */
import { type ResourceQuota, ResourceQuotas } from '#apis/core/v1.ts'
import { systemRequest } from '#apiserver/bootstrap/ensure.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { deepCopy } from '#meta/object.ts'

import type { QuotaWriter } from './ledger.ts'

export function createRegistryQuotaWriter(registry: Registry): QuotaWriter {
  return {
    async updateStatus({ metadata, status }) {
      const { namespace = '', name = '', resourceVersion } = metadata
      const request = { ...systemRequest(ResourceQuotas, namespace), subresource: 'status' }
      const change = (live: object): ResourceQuota => ({ ...deepCopy(live as ResourceQuota), status })
      await registry.storeOf(ResourceQuotas)?.update(request, name, change, { resourceVersion })
    },
  }
}
