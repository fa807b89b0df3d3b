/** Issuer discovery: where others learn how to verify service account tokens. */
import { discoveryDocument, toKeySet, type VerifyingKey } from '#lib/jwt/key.ts'

import type { WholeAnswer } from '../call.ts'
import type { Route } from '../server.ts'

export interface OpenIdOptions {
  /** The first of `--service-account-issuer`. */
  readonly issuer: string
  /** `--service-account-jwks-uri`; without it the address below our own. */
  readonly keySetUrl?: string
  /** Host and port under which clients reach us. */
  readonly externalAddress: string
  /** A new list when keys have changed, the same one otherwise. */
  readonly keys: () => readonly VerifyingKey[]
}

const CONFIGURATION = '/.well-known/openid-configuration'
const KEY_SET = '/openid/v1/jwks'
/** Keys are announced this long before they are used. */
const CACHE_CONTROL = 'public, max-age=3600'

/** Serves both documents. An issuer that is no https address can have no discovery: nothing is served then. */
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
