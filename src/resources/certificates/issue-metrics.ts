/** Metrics of issued certificates: whether signers grant the requested duration. */
import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import { parseBundle } from '#lib/x509/certificate.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

/** The tolerance of the duration: certificates are backdated, and durations are rounded. */
const TOLERANCE_MS = 5 * 60_000
const TOLERANCE_PART = 1 / 20

/** Called for every stored change; counts a new certificate if a duration was requested. */
export function createIssueMeter(
  meters: ServerMeters,
): (next: CertificateSigningRequest, old: CertificateSigningRequest | undefined) => void {
  const requested = meters.family('apiserver_certificates_registry_csr_requested_duration_total')
  const honored = meters.family('apiserver_certificates_registry_csr_honored_duration_total')
  return (next, old) => {
    const { expirationSeconds, signerName = '' } = old?.spec ?? {}
    const certificate = certificateOf(next)
    const hadOne = old !== undefined && certificateOf(old) !== ''
    if (expirationSeconds === undefined || certificate === '' || hadOne) return
    const signer = signerName.startsWith('kubernetes.io/') ? signerName : 'other'
    requested.labels(signer).inc()
    if (isHonored(certificate, expirationSeconds * 1000)) honored.labels(signer).inc()
  }
}

/** A new request has no status. */
function certificateOf({ status }: Partial<CertificateSigningRequest>): string {
  return status?.certificate ?? ''
}

function isHonored(certificate: string, wantedMs: number): boolean {
  const [leaf] = parseBundle(Buffer.from(certificate, 'base64').toString())
  if (leaf === undefined) return false
  const gotMs = leaf.notAfterMs - leaf.notBeforeMs
  return Math.abs(wantedMs - gotMs) < TOLERANCE_MS + wantedMs * TOLERANCE_PART
}
