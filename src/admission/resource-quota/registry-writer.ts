/** Stores the usage of quotas through the registry. */
import { type ResourceQuota, ResourceQuotas } from '#apis/core/v1.ts'
import type { Registry } from '#apiserver/registry/registry.ts'

import type { QuotaWriter } from './ledger.ts'

export function createRegistryQuotaWriter(registry: Registry): QuotaWriter {
  return {
    updateStatus({ metadata, status }) {
      const { namespace = '', name = '', resourceVersion } = metadata
      const change = (live: ResourceQuota): ResourceQuota => ({ ...live, status })
      return registry.writer.updateStatus(ResourceQuotas, { namespace, name }, change, { resourceVersion })
    },
  }
}
