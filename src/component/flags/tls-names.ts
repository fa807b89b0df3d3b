/** Maps Go's names of TLS versions and cipher suites, as flags use them, to OpenSSL's. */
import type { SecureVersion } from 'node:tls'

/** 1.0 and 1.1 are rejected: no client of a cluster needs them. */
export const TLS_VERSIONS: ReadonlyMap<string, SecureVersion> = new Map([
  ['VersionTLS12', 'TLSv1.2'],
  ['VersionTLS13', 'TLSv1.3'],
])

/** Without those that are broken or not forward secret. */
export const CIPHER_SUITES: ReadonlyMap<string, string> = new Map([
  ['TLS_AES_128_GCM_SHA256', 'TLS_AES_128_GCM_SHA256'],
  ['TLS_AES_256_GCM_SHA384', 'TLS_AES_256_GCM_SHA384'],
  ['TLS_CHACHA20_POLY1305_SHA256', 'TLS_CHACHA20_POLY1305_SHA256'],
  ['TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA', 'ECDHE-ECDSA-AES128-SHA'],
  ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA', 'ECDHE-ECDSA-AES256-SHA'],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384', 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA', 'ECDHE-RSA-AES128-SHA'],
  ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA', 'ECDHE-RSA-AES256-SHA'],
  ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-RSA-CHACHA20-POLY1305'],
])

/** The three suites of TLS 1.3 are not configurable in Go: they are always offered. */
const ALWAYS = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256']

/** OpenSSL's names. Throws upstream's text for an unknown one. */
export function cipherNames(suites: readonly string[]): string[] {
  const names = suites.map((suite) => {
    const name = CIPHER_SUITES.get(suite)
    if (name === undefined) throw new Error(`Cipher suite ${suite} not supported or doesn't exist`)
    return name
  })
  return [...new Set([...ALWAYS, ...names])]
}

/** Throws upstream's text for an unknown one. */
export function tlsVersion(name: string): SecureVersion {
  const version = TLS_VERSIONS.get(name === '' ? 'VersionTLS12' : name)
  if (version === undefined) throw new Error(`unknown tls version "${name}"`)
  return version
}
