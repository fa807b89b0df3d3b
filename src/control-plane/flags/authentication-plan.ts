/** Validation of the authentication flags. */
import { createGates } from '#component/flags/gates.ts'

import type { Settings } from './flags.ts'

/** `changed` are the flags that were given. */
export function authenticationErrors(flags: Settings, changed: ReadonlySet<string>): string[] {
  const hasFile = flags['authentication-config'] !== ''
  const oidc = hasFile ? fileErrors(changed) : oidcErrors(flags)
  return [...accountErrors(flags), ...oidc, ...proxyErrors(flags)]
}

function fileErrors(changed: ReadonlySet<string>): string[] {
  const isClash = [...changed].some((name) => name.startsWith('oidc-'))
  return isClash ? ['authentication-config file and oidc-* flags are mutually exclusive'] : []
}

/** The limits of token lifetimes, as upstream: an hour and 2^32 seconds. */
const MIN_TOKEN_MS = 3_600_000
const MAX_TOKEN_MS = 2 ** 32 * 1000

function accountErrors(flags: Settings): string[] {
  const issuers = flags['service-account-issuer']
  const errors: string[] = []
  if (issuers.length === 0 || flags['service-account-signing-key-file'] === '') {
    errors.push('--service-account-signing-key-file and --service-account-issuer are required flags')
  }
  if (issuers.includes('')) errors.push('service-account-issuer should not be an empty string')
  for (const [at, issuer] of issuers.entries()) {
    if (issuers.indexOf(issuer) < at) errors.push(`service-account-issuer "${issuer}" is already specified`)
    if (issuer.includes(':') && URL.parse(issuer) === null) {
      errors.push(`service-account-issuer "${issuer}" contained a ':' but was not a valid URL`)
    }
  }
  const maxMs = flags['service-account-max-token-expiration']
  if (maxMs !== 0 && (maxMs < MIN_TOKEN_MS || maxMs > MAX_TOKEN_MS)) {
    errors.push('the service-account-max-token-expiration must be between 1 hour and 2^32 seconds')
  }
  return [...errors, ...keySetErrors(flags['service-account-jwks-uri'])]
}

function keySetErrors(address: string): string[] {
  if (address === '') return []
  const url = URL.parse(address)
  if (url === null) return [`service-account-jwks-uri must be a valid URL: "${address}"`]
  return url.protocol === 'https:' ? [] : [`service-account-jwks-uri requires https scheme, parsed as: ${url.href}`]
}

const ALGORITHMS: ReadonlySet<string> = new Set(
  ['RS', 'ES', 'PS'].flatMap((kind) => ['256', '384', '512'].map((bits) => kind + bits)),
)

function oidcErrors(flags: Settings): string[] {
  const issuer = flags['oidc-issuer-url']
  const client = flags['oidc-client-id']
  const others = [
    flags['oidc-ca-file'],
    flags['oidc-groups-claim'],
    flags['oidc-groups-prefix'],
    flags['oidc-username-prefix'],
  ]
  const isUsed =
    issuer !== '' || client !== '' || others.some((value) => value !== '') || flags['oidc-required-claim'].size > 0
  if (!isUsed) return []
  if (issuer === '' || client === '') {
    return ['oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set']
  }
  const errors = flags['oidc-signing-algs']
    .filter((name) => !ALGORITHMS.has(name))
    .map((name) => `oidc-signing-algs: "${name}" is not a supported signing algorithm`)
  if (URL.parse(issuer)?.protocol !== 'https:') errors.push(`oidc-issuer-url: "${issuer}" must be an https URL`)
  return errors
}

const PROXY_HEADERS = [
  'requestheader-username-headers',
  'requestheader-uid-headers',
  'requestheader-group-headers',
  'requestheader-extra-headers-prefix',
] as const

function proxyErrors(flags: Settings): string[] {
  const errors = PROXY_HEADERS.filter((name) => flags[name].some((header) => header.trim() === '')).map(
    (name) => `--${name} must not hold an empty name`,
  )
  const hasAuthority = flags['requestheader-client-ca-file'] !== ''
  if (hasAuthority && flags['requestheader-username-headers'].length === 0) {
    errors.push('--requestheader-username-headers is needed with --requestheader-client-ca-file')
  }
  const gate = 'RemoteRequestHeaderUID'
  if (flags['requestheader-uid-headers'].length > 0 && !createGates(flags['feature-gates'])(gate)) {
    errors.push(`--requestheader-uid-headers requires the "${gate}" feature to be enabled`)
  }
  return errors
}
