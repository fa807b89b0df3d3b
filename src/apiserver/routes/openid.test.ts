import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Call, WholeAnswer } from '#component/requests/call.ts'
import { verifyingKey } from '#lib/jwt/key.ts'
import { createKey } from '#lib/x509/key.ts'

import { createOpenIdRoutes } from './openid.ts'

const keys = [verifyingKey(createKey())]
const ask = (issuer: string, path: string, method = 'GET'): WholeAnswer | undefined => {
  const route = createOpenIdRoutes({ issuer, externalAddress: '10.0.0.1:6443', keys: () => keys })
  return route({ method, info: { path } } as Call) as WholeAnswer | undefined
}

describe('OpenID discovery of service account tokens', () => {
  it('serves the discovery document and the public keys', () => {
    const found = ask('https://k.example', '/.well-known/openid-configuration')
    assert.equal(
      found?.body,
      '{"issuer":"https://k.example","jwks_uri":"https://10.0.0.1:6443/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}',
    )
    assert.deepEqual(
      [found?.contentType, found?.headers],
      ['application/json', { 'Cache-Control': 'public, max-age=3600' }],
    )
    const set = ask('https://k.example', '/openid/v1/jwks')
    assert.equal(set?.contentType, 'application/jwk-set+json')
    assert.equal((JSON.parse(set?.body as string) as { keys: { kid: string }[] }).keys[0]?.kid, keys[0]?.kid)
  })

  it('serves no other paths, and nothing for an issuer that is not an https URL', () => {
    assert.equal(ask('https://k.example', '/openid/v1'), undefined)
    assert.equal(ask('https://k.example', '/openid/v1/jwks', 'POST'), undefined)
    for (const issuer of ['kubernetes/serviceaccount', 'http://k', 'https://k?x=1', 'https://k#x']) {
      assert.equal(ask(issuer, '/openid/v1/jwks'), undefined)
    }
  })
})
