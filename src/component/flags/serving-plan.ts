/** Validates the flags of a secure port and turns them into a plan. Every program with a port uses it. Pure. */
import type { SecureVersion } from 'node:tls'

import type { NamedCertificate } from './flag-kinds.ts'
import type { ServingValues } from './serving-flags.ts'
import { cipherNames, tlsVersion } from './tls-names.ts'

export interface ServingPlan {
  readonly host: string
  /** 0: any. */
  readonly port: number
  readonly reusePort: boolean
  /** Both or neither; without them they are in `certDir`, or will be created there. */
  readonly certFile: string
  readonly keyFile: string
  readonly certDir: string
  readonly sni: readonly NamedCertificate[]
  readonly minVersion: SecureVersion
  /** OpenSSL's names; absent: the default. */
  readonly ciphers?: readonly string[]
  /** Absent: the default. */
  readonly maxStreams?: number
}

export function servingErrors(flags: ServingValues): string[] {
  const port = flags['secure-port']
  const errors = attempt(() => cipherNames(flags['tls-cipher-suites']))
  errors.push(...attempt(() => tlsVersion(flags['tls-min-version'])))
  if (port < 0 || port > 65_535)
    errors.push(`--secure-port ${port} must be between 0 and 65535, inclusive. 0 picks a free port`)
  if ((flags['tls-cert-file'] === '') !== (flags['tls-private-key-file'] === '')) {
    errors.push('--tls-cert-file and --tls-private-key-file should be specified together')
  }
  return errors
}

export function planServing(flags: ServingValues): ServingPlan {
  const suites = flags['tls-cipher-suites']
  const streams = flags['http2-max-streams-per-connection']
  return {
    host: flags['bind-address'],
    port: flags['secure-port'],
    reusePort: flags['permit-port-sharing'],
    certFile: flags['tls-cert-file'],
    keyFile: flags['tls-private-key-file'],
    certDir: flags['cert-dir'],
    sni: flags['tls-sni-cert-key'],
    minVersion: tlsVersion(flags['tls-min-version']),
    ...(suites.length > 0 && { ciphers: cipherNames(suites) }),
    ...(streams > 0 && { maxStreams: streams }),
  }
}

/** The message of the thrown error, if any. */
export function attempt(task: () => unknown): string[] {
  try {
    task()
    return []
  } catch (error) {
    return [(error as Error).message]
  }
}
