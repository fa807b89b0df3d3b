/** Metrics of the root CA certificate publisher and the ClusterTrustBundle publisher. */
import { StatusError } from '#meta/status.ts'

import type { ControllerContext } from './controller.ts'

/** Counts a sync and its duration, by the HTTP code of its error. */
export async function measured(
  { meters, clock }: ControllerContext,
  publisher: 'root_ca_cert_publisher' | 'clustertrustbundle_publisher',
  work: () => Promise<void>,
): Promise<void> {
  const startMs = clock.elapsed()
  let code = '200'
  try {
    await work()
  } catch (error) {
    code = String(error instanceof StatusError ? error.status.code : 500)
    throw error
  } finally {
    meters.family(`${publisher}_sync_total`).labels(code).inc()
    meters
      .family(`${publisher}_sync_duration_seconds`)
      .labels(code)
      .observe((clock.elapsed() - startMs) / 1000)
  }
}
