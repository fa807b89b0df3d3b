/** What is counted of the certificates that a kubelet renews by itself. */
import type { Clock } from '#lib/clock.ts'
import { createMeters } from '#lib/metrics-table.ts'
import type { Registry } from '#lib/metrics.ts'
import type { Certificate } from '#lib/x509/certificate.ts'

export const CERTIFICATE_BUCKETS: Readonly<Record<'rotation', readonly number[]>> = {
  /** From a minute to four years. */
  rotation: [60, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000],
}

export const CERTIFICATE_FAMILIES = {
  kubelet_certificate_manager_client_expiration_renew_errors: [
    'counter',
    'ALPHA',
    '',
    'Counter of certificate renewal errors.',
  ],
  kubelet_certificate_manager_client_ttl_seconds: [
    'gauge',
    'ALPHA',
    '',
    "Gauge of the TTL (time-to-live) of the Kubelet's client certificate. The value is in seconds until certificate expiry (negative if already expired). If client certificate is invalid or unused, the value will be +INF.",
  ],
  kubelet_certificate_manager_server_rotation_seconds: [
    'histogram',
    'ALPHA',
    '',
    'Histogram of the number of seconds the previous certificate lived before being rotated.',
    { buckets: 'rotation' },
  ],
  kubelet_certificate_manager_server_ttl_seconds: [
    'gauge',
    'ALPHA',
    '',
    "Gauge of the shortest TTL (time-to-live) of the Kubelet's serving certificate. The value is in seconds until certificate expiry (negative if already expired). If serving certificate is invalid or unused, the value will be +INF.",
  ],
  kubelet_server_expiration_renew_errors: ['counter', 'ALPHA', '', 'Counter of certificate renewal errors.'],
} as const

/** Told by whoever renews a certificate. */
export interface CertificateCounts {
  failed(): void
  /** There is another. `before`: the one that it was until now. */
  rotated(before: Certificate | undefined): void
  /** The one in use is asked for at each scrape. */
  follow(current: () => Certificate | undefined): void
}

export function countClientCertificate(registry: Registry, clock: Clock): CertificateCounts {
  const meters = createMeters(registry, CERTIFICATE_FAMILIES, CERTIFICATE_BUCKETS)
  const errors = meters.family('kubelet_certificate_manager_client_expiration_renew_errors').labels()
  return {
    failed: () => errors.inc(),
    rotated: () => undefined,
    follow: (current) =>
      meters.collect('kubelet_certificate_manager_client_ttl_seconds', (emit) => emit(leftSeconds(current(), clock))),
  }
}

export function countServerCertificate(registry: Registry, clock: Clock): CertificateCounts {
  const meters = createMeters(registry, CERTIFICATE_FAMILIES, CERTIFICATE_BUCKETS)
  const errors = meters.family('kubelet_server_expiration_renew_errors').labels()
  const ages = meters.family('kubelet_certificate_manager_server_rotation_seconds').labels()
  return {
    failed: () => errors.inc(),
    rotated: (before) => void (before !== undefined && ages.observe((clock.now() - before.notBeforeMs) / 1000)),
    follow: (current) =>
      meters.collect('kubelet_certificate_manager_server_ttl_seconds', (emit) => emit(leftSeconds(current(), clock))),
  }
}

function leftSeconds(leaf: Certificate | undefined, clock: Clock): number {
  return leaf === undefined ? Infinity : Math.trunc((leaf.notAfterMs - clock.now()) / 1000)
}
