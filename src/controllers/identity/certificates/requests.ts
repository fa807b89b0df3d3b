/** Functions that the certificate controllers share. */
import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import type { Growth } from '#lib/backoff.ts'

/** Longer than the default of other controllers. */
export const CERTIFICATE_RETRY: Growth = { baseMs: 200, capMs: 1_000_000 }

/** Denied, if both conditions are set. */
export function decisionOn({ status }: CertificateSigningRequest): 'approved' | 'denied' | 'none' {
  const has = (type: string): boolean => (status.conditions ?? []).some((condition) => condition.type === type)
  if (has('Denied')) return 'denied'
  return has('Approved') ? 'approved' : 'none'
}
