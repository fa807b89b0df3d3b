/** The client certificate of this machine's kubelet, signed by the cluster and renewed long before it expires. */
import type { Clock } from '#lib/clock.ts'
import type { CertificateAndKey } from '#lib/http/tls.ts'
import { type PeriodicTask, runPeriodically } from '#lib/periodic.ts'
import type { Authority } from '#lib/x509/authority.ts'

export interface KubeletNames {
  readonly node: string
  readonly ips: readonly string[]
}

/** Certificates are valid for a year. */
const RENEW_EVERY_MS = 7 * 24 * 3_600_000

export function issueFor(authority: Authority, { node, ips }: KubeletNames): CertificateAndKey {
  const names = { dns: [node], ips: [...ips] }
  const issued = authority.issue({ commonName: `system:node:${node}`, names, purpose: 'server' })
  return { certificate: issued.certificatePem, key: issued.keyPem }
}

/** Calls `changed` with a new certificate every week until it is stopped. */
export function keepIssuing(
  authority: Authority,
  names: KubeletNames,
  { clock, onError }: { readonly clock: Clock; readonly onError: (error: unknown) => void },
  changed: (next: CertificateAndKey) => void,
): PeriodicTask {
  return runPeriodically({ clock, periodMs: RENEW_EVERY_MS, onError }, async () => changed(issueFor(authority, names)))
}
