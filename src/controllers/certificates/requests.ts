/** What controllers of certificates agree on. */
import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import type { Growth } from '#lib/backoff.ts'

/** Slower than others: what people decide is not decided in milliseconds. */
export const CERTIFICATE_RETRY: Growth = { baseMs: 200, capMs: 1_000_000 }

/** Who was both approved and denied was denied. */
export function decisionOn({ status }: CertificateSigningRequest): 'approved' | 'denied' | 'none' {
  const has = (type: string): boolean => (status.conditions ?? []).some((condition) => condition.type === type)
  if (has('Denied')) return 'denied'
  return has('Approved') ? 'approved' : 'none'
}
