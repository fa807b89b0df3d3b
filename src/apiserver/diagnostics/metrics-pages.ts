/** /metrics: all metrics; DELETE resets them. /metrics/slis: only results of health checks. */
import type { Answer, Call } from '#component/requests/call.ts'
import { METRICS_CONTENT_TYPE } from '#lib/metrics/metrics.ts'
import type { ServerMeters } from '#model/metrics/families.ts'
import type { Backend } from '#storage/backend.ts'

export interface MetricsPages {
  readonly meters: ServerMeters
  readonly slis: ServerMeters
  readonly backend: Backend
}

/** Undefined for other paths. */
export function createMetricsPages(pages: MetricsPages): (call: Call) => Promise<Answer> | Answer | undefined {
  return ({ info, method }) => {
    if (info.path === '/metrics/slis') return shown(pages.slis)
    if (info.path !== '/metrics') return undefined
    if (method !== 'DELETE') return withStoreSize(pages)
    pages.meters.registry.reset()
    return { status: 200, contentType: 'text/plain; charset=utf-8', body: 'metrics reset\n' }
  }
}

async function withStoreSize({ meters, backend }: MetricsPages): Promise<Answer> {
  const size = meters.family('apiserver_storage_size_bytes').labels('etcd-0')
  // If the store does not answer, the last known size stays.
  await backend.health().then(
    ({ sizeBytes }) => size.set(sizeBytes),
    () => undefined,
  )
  return shown(meters)
}

function shown({ registry }: ServerMeters): Answer {
  return { status: 200, contentType: METRICS_CONTENT_TYPE, body: Buffer.from(registry.render()) }
}
