/** Metrics of the certificates that a kubelet rotates. */
import type { Clock } from '#lib/clock.ts'
import type { Registry } from '#lib/metrics/metrics.ts'
import { createMeters } from '#lib/metrics/table.ts'
import type { Certificate } from '#lib/x509/certificate.ts'

export const CERTIFICATE_BUCKETS: Readonly<Record<'rotation', readonly number[]>> = {
  /** From one minute to four years. */
  rotation: [60, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000],
}

export const CERTIFICATE_FAMILIES = {
  kubelet_certificate_manager_client_expiration_renew_errors: `counter ALPHA [] Failed renewals of the client certificate.`,
  kubelet_certificate_manager_client_ttl_seconds: `gauge ALPHA [] Seconds until the client certificate expires, negative afterwards; +Inf without a valid certificate.`,
  kubelet_certificate_manager_server_rotation_seconds: `histogram:rotation ALPHA [] Age of serving certificates at their rotation.`,
  kubelet_certificate_manager_server_ttl_seconds: `gauge ALPHA [] Seconds until the first serving certificate expires, negative afterwards; +Inf without a valid certificate.`,
  kubelet_server_expiration_renew_errors: `counter ALPHA [] Failed renewals of the serving certificate.`,
} as const

/** Callbacks of certificate rotation. */
export interface CertificateCounts {
  failed(): void
  /** A new certificate is in use. `before` is the previous one. */
  rotated(before: Certificate | undefined): void
  /** Registers a getter of the current certificate, called at each scrape. */
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
