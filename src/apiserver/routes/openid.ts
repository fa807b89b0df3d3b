/** Issuer discovery: the documents with which other services verify service account tokens. */
import type { WholeAnswer } from '#component/requests/call.ts'
import type { Route } from '#component/requests/server-options.ts'
import { discoveryDocument, toKeySet, type VerifyingKey } from '#lib/jwt/key.ts'

export interface OpenIdOptions {
  /** The first of `--service-account-issuer`. */
  readonly issuer: string
  /** `--service-account-jwks-uri`; by default the address below this server's own. */
  readonly keySetUrl?: string
  /** Host and port under which clients reach this server. */
  readonly externalAddress: string
  /** Returns a new list when keys have changed, otherwise the same list. */
  readonly keys: () => readonly VerifyingKey[]
}

const CONFIGURATION = '/.well-known/openid-configuration'
const KEY_SET = '/openid/v1/jwks'
/** The cache lifetime of the documents; new keys are published this long before their use. */
const CACHE_CONTROL = 'public, max-age=3600'

/** Serves both documents. An issuer that is not an https address has no discovery: nothing is served then. */
export function createOpenIdRoutes({ issuer, keySetUrl, externalAddress, keys }: OpenIdOptions): Route {
  if (!isDiscoverable(issuer)) return () => undefined
  const address = keySetUrl ?? `https://${externalAddress}${KEY_SET}`
  return ({ info, method }) => {
    if (method !== 'GET') return undefined
    if (info.path === CONFIGURATION) {
      return document('application/json', discoveryDocument(issuer, address, keys()))
    }
    return info.path === KEY_SET ? document('application/jwk-set+json', toKeySet(keys())) : undefined
  }
}

function isDiscoverable(issuer: string): boolean {
  const url = URL.parse(issuer)
  return url !== null && url.protocol === 'https:' && url.search === '' && url.hash === ''
}

function document(contentType: string, value: unknown): WholeAnswer {
  return { status: 200, contentType, body: JSON.stringify(value), headers: { 'Cache-Control': CACHE_CONTROL } }
}
