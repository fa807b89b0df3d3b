/** Selects the certificate for each server name. Pure except for the check of key pairs. */
import { createSecureContext } from 'node:tls'

import type { Secret } from '#apis/core/v1.ts'
import type { Ingress } from '#apis/networking/v1.ts'
import type { CertificateAndKey } from '#lib/http/tls.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'

import { oldestFirst } from './ages.ts'

export type NamedPair = CertificateAndKey & { readonly names: readonly string[] }

/** Undefined: missing or mismatched. */
export function pairOf(secret: Secret | undefined): CertificateAndKey | undefined {
  const text = (key: string): string => Buffer.from(secret?.data?.[key] ?? '', 'base64').toString()
  const pair = { certificate: text('tls.crt'), key: text('tls.key') }
  if (pair.certificate === '' || pair.key === '') return undefined
  try {
    createSecureContext({ cert: pair.certificate, key: pair.key })
    return pair
  } catch {
    return undefined
  }
}

/** The oldest Ingress with a pair for a name provides it. An entry without hosts uses the names of its certificate. */
export function namedPairs(
  ingresses: readonly Ingress[],
  pairFor: (namespace: string, secret: string) => CertificateAndKey | undefined,
  refuse: (ingress: Ingress, reason: string) => void = () => undefined,
): readonly NamedPair[] {
  const taken = new Set<string>()
  const pairs: NamedPair[] = []
  for (const ingress of oldestFirst(ingresses)) {
    for (const { hosts = [], secretName = '' } of ingress.spec.tls ?? []) {
      // Without a Secret, the hosts use the default certificate.
      if (secretName === '') continue
      const pair = pairFor(ingress.metadata.namespace ?? '', secretName)
      if (pair === undefined) {
        refuse(ingress, `Secret "${secretName}" has no certificate with its key`)
        continue
      }
      const names = (hosts.length > 0 ? hosts : namesOf(pair)).map((name) => name.toLowerCase())
      const free = names.filter((name) => !taken.has(name))
      for (const name of free) taken.add(name)
      if (free.length > 0) pairs.push({ ...pair, names: free })
    }
  }
  return pairs
}

function namesOf({ certificate }: CertificateAndKey): readonly string[] {
  try {
    return parseCertificate(certificate).names.dns
  } catch {
    return []
  }
}

/** All TLS hosts, with or without a Secret. */
export function secureHosts(ingresses: readonly Ingress[]): ReadonlySet<string> {
  const hosts = ingresses.flatMap(({ spec }) => (spec.tls ?? []).flatMap((each) => each.hosts ?? []))
  return new Set(hosts.map((host) => host.toLowerCase()))
}
