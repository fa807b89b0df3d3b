/** A fake OpenID provider for tests. Its ID tokens can be changed to attack the client. */
import { createHmac, hash, type KeyObject } from 'node:crypto'

import type { Clock } from '#lib/clock.ts'
import type { HttpRequest } from '#lib/http/client.ts'
import { wholeResponse } from '#lib/http/response.ts'
import { keyIdOf, toKeySet, verifyingKey } from '#lib/jwt/key.ts'
import { type Claims, createSigner } from '#lib/jwt/token.ts'
import { createKey } from '#lib/x509/key.ts'
import type { ProviderClient } from '#management/people/oidc/provider.ts'

export interface FakeProviderOptions {
  readonly clock: Clock
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
}

interface IssuedCode {
  readonly redirectUri: string
  readonly challenge: string
  readonly claims: Claims
}

interface ProviderAnswer {
  readonly status: number
  readonly body: object | string
}

const ACCESS_TOKEN = 'access-token'

export class FakeProvider {
  readonly #options: FakeProviderOptions
  readonly #codes = new Map<string, IssuedCode>()
  readonly key: KeyObject = createKey('ecdsa-p256')
  /** Changed by tests: other claims, another signature, another document. */
  claims: (claims: Claims) => Claims = (claims) => claims
  sign: (claims: Claims) => string = (claims) => createSigner(this.key).sign(claims)
  document: (document: object) => unknown = (document) => document
  tokens: (answer: object) => unknown = (answer) => answer
  /** `<method> <path>` of each request. */
  readonly requests: string[] = []
  #count = 0

  constructor(options: FakeProviderOptions) {
    this.#options = options
  }

  /** In memory. */
  get client(): ProviderClient {
    return {
      request: async (request) => {
        const { status, body } = this.answer(request)
        const text = typeof body === 'string' ? body : JSON.stringify(body)
        return wholeResponse(Buffer.from(text), { status, headers: {}, version: '1.1' })
      },
      retire: () => undefined,
      close: () => undefined,
    }
  }

  /** Logs the user in, as a browser, and returns the query of the redirect. */
  authorize(location: string, claims: Claims = { sub: 'jane-1', preferred_username: 'Jane' }): URLSearchParams {
    const query = new URL(location).searchParams
    const code = `code-${++this.#count}`
    const nonce = query.get('nonce')
    this.#codes.set(code, {
      redirectUri: query.get('redirect_uri') ?? '',
      challenge: query.get('code_challenge') ?? '',
      claims: { nonce, ...claims },
    })
    return new URLSearchParams({ code, state: query.get('state') ?? '' })
  }

  answer({ url, method = 'GET', headers = {}, body = '' }: HttpRequest): ProviderAnswer {
    const { pathname } = new URL(url)
    this.requests.push(`${method} ${pathname}`)
    if (pathname === '/.well-known/openid-configuration') return { status: 200, body: this.#document() }
    if (pathname === '/keys') return { status: 200, body: toKeySet([verifyingKey(this.key)]) }
    if (pathname !== '/token' || method !== 'POST') return { status: 404, body: {} }
    const { clientId, clientSecret } = this.#options
    const expected = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`
    if (headers['authorization'] !== expected) return { status: 401, body: { error: 'invalid_client' } }
    return this.#exchange(new URLSearchParams(typeof body === 'string' ? body : ''))
  }

  #exchange(form: URLSearchParams): ProviderAnswer {
    const code = form.get('code') ?? ''
    const issued = this.#codes.get(code)
    this.#codes.delete(code)
    const challenge = hash('sha256', form.get('code_verifier') ?? '', 'base64url')
    if (issued?.redirectUri !== form.get('redirect_uri') || issued?.challenge !== challenge) {
      return { status: 400, body: { error: 'invalid_grant' } }
    }
    const { issuer, clientId, clock } = this.#options
    const iat = Math.floor(clock.now() / 1000)
    const usual = { iss: issuer, aud: clientId, iat, exp: iat + 300, at_hash: accessTokenHash(), ...issued.claims }
    const idToken = this.sign(this.claims(usual))
    return { status: 200, body: this.tokens({ id_token: idToken, access_token: ACCESS_TOKEN }) as object }
  }

  #document(): object {
    const { issuer } = this.#options
    return this.document({
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
    }) as object
  }
}

function accessTokenHash(): string {
  return hash('sha256', ACCESS_TOKEN, 'buffer').subarray(0, 16).toString('base64url')
}

/** A token with this header and a signature that `sign` makes of its text. */
export function forgedToken(header: object, claims: Claims, sign: (text: string) => string): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part(header)}.${part(claims)}`
  return `${text}.${sign(text)}`
}

/** HS256 with the public key as the secret. */
export function signedWithPublicKey(key: KeyObject, claims: Claims): string {
  const secret = verifyingKey(key).publicKey.export({ type: 'spki', format: 'pem' })
  return forgedToken({ alg: 'HS256', kid: keyIdOf(key) }, claims, (text) =>
    createHmac('sha256', secret).update(text).digest('base64url'),
  )
}
