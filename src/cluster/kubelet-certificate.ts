/** What the kubelet of this machine shows the API server: signed by the cluster itself, and anew long before it ends. */
import type { Clock } from '#lib/clock.ts'
import type { CertificateAndKey } from '#lib/http/tls.ts'
import { type Rounds, startRounds } from '#lib/rounds.ts'
import type { Authority } from '#lib/x509/authority.ts'

export interface KubeletNames {
  readonly node: string
  readonly ips: readonly string[]
}

/** A year is what it is good for. */
const RENEW_EVERY_MS = 7 * 24 * 3_600_000

export function issueFor(authority: Authority, { node, ips }: KubeletNames): CertificateAndKey {
  const names = { dns: [node], ips: [...ips] }
  const issued = authority.issue({ commonName: `system:node:${node}`, names, purpose: 'server' })
  return { certificate: issued.certificatePem, key: issued.keyPem }
}

/** `changed` is called with a new one every week, until it is stopped. */
export function keepIssuing(
  authority: Authority,
  names: KubeletNames,
  { clock, onError }: { readonly clock: Clock; readonly onError: (error: unknown) => void },
  changed: (next: CertificateAndKey) => void,
): Rounds {
  return startRounds({ clock, periodMs: RENEW_EVERY_MS, onError }, async () => changed(issueFor(authority, names)))
}
