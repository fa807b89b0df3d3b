/**
 * The client of an OpenID provider: fetches its discovery document, signing keys and tokens. Responses are bounded in
 * size and time, and it follows no redirects.
 */
import { createProviderKeys, type FetchJson, type ProviderKeys } from '#auth/credentials/provider-keys.ts'
import type { Clock } from '#lib/clock.ts'
import type { HttpClient, HttpRequest } from '#lib/http/client.ts'

import type { OidcProviderSpec } from '../../kinds/auth-provider.ts'
import { ProviderError } from '../provider-error.ts'

export type ProviderClient = Pick<HttpClient, 'request' | 'retire' | 'close'>

export interface ProviderOptions {
  readonly spec: OidcProviderSpec
  readonly clock: Clock
  /** Trusts the authority of the provider. */
  readonly client: ProviderClient
  /** Empty for public clients. */
  readonly clientSecret: string
}

export interface CodeExchange {
  readonly code: string
  readonly verifier: string
  readonly redirectUri: string
}

export interface ProviderTokens {
  readonly idToken: string
  readonly accessToken: string | undefined
}

interface Discovery {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly isBasicSupported: boolean
}

const MAX_ANSWER_BYTES = 1 << 20
const TIMEOUT_MS = 10_000

export class Provider {
  readonly spec: OidcProviderSpec
  readonly keys: ProviderKeys
  readonly #options: ProviderOptions
  readonly #discoveryUrl: string
  #document: Promise<unknown> | undefined

  constructor(options: ProviderOptions) {
    const { spec, clock } = options
    this.spec = spec
    this.#options = options
    this.#discoveryUrl = `${spec.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
    const fetchJson: FetchJson = (url) => (url === this.#discoveryUrl ? this.#discover() : this.#fetch({ url }))
    this.keys = createProviderKeys({ clock, fetchJson, issuerUrl: spec.issuer })
  }

  /** The address at which people log in. Throws ProviderError. */
  async authorizationUrl(params: Readonly<Record<string, string>>): Promise<string> {
    const url = new URL((await this.#discovery()).authorizationEndpoint)
    for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
    return url.href
  }

  /** Throws ProviderError. The tokens are not verified. */
  async exchange({ code, verifier, redirectUri }: CodeExchange): Promise<ProviderTokens> {
    const { tokenEndpoint, isBasicSupported } = await this.#discovery()
    const { clientSecret } = this.#options
    const { clientID } = this.spec
    const form = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    })
    const isBasic = clientSecret !== '' && isBasicSupported
    if (!isBasic) form.set('client_id', clientID)
    if (!isBasic && clientSecret !== '') form.set('client_secret', clientSecret)
    const answer = await this.#fetch({
      url: tokenEndpoint,
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        ...(isBasic && { authorization: basicAuthorization(clientID, clientSecret) }),
      },
      body: form.toString(),
    })
    const { id_token: idToken, access_token: accessToken } = (answer ?? {}) as Record<string, unknown>
    if (typeof idToken !== 'string') throw new ProviderError('The provider sent no ID token')
    return { idToken, accessToken: typeof accessToken === 'string' ? accessToken : undefined }
  }

  async #discovery(): Promise<Discovery> {
    const document = (await this.#discover()) as Readonly<Record<string, unknown>> | null
    const { issuer } = document ?? {}
    if (issuer !== this.spec.issuer) {
      throw new ProviderError(`The issuer is ${JSON.stringify(issuer)}, not "${this.spec.issuer}"`)
    }
    const methods = document?.['token_endpoint_auth_methods_supported']
    return {
      authorizationEndpoint: secureUrl(document?.['authorization_endpoint'], 'authorization_endpoint'),
      tokenEndpoint: secureUrl(document?.['token_endpoint'], 'token_endpoint'),
      // The default of the specification.
      isBasicSupported: !Array.isArray(methods) || methods.includes('client_secret_basic'),
    }
  }

  /** Fetched once; a failure is not remembered. */
  #discover(): Promise<unknown> {
    this.#document ??= this.#fetch({ url: this.#discoveryUrl }).catch((error: unknown) => {
      this.#document = undefined
      throw error
    })
    return this.#document
  }

  async #fetch(request: HttpRequest & { readonly url: string }): Promise<unknown> {
    const { client } = this.#options
    const headers = { accept: 'application/json', ...request.headers }
    secureUrl(request.url, 'issuer')
    try {
      const response = await client.request({ ...request, headers, timeoutMs: TIMEOUT_MS })
      const text = await response.text(MAX_ANSWER_BYTES)
      if (response.status !== 200) throw new ProviderError(`"${request.url}" answered ${response.status}`)
      return JSON.parse(text) as unknown
    } catch (cause) {
      if (cause instanceof ProviderError) throw cause
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new ProviderError(`Failed to read "${request.url}": ${why}`, { cause })
    }
  }
}

function secureUrl(value: unknown, field: string): string {
  const url = typeof value === 'string' ? URL.parse(value) : null
  if (url?.protocol !== 'https:') throw new ProviderError(`The field "${field}" of the provider is no https address`)
  return url.href
}

/** Both parts are form-encoded first: RFC 6749, 2.3.1. */
function basicAuthorization(id: string, secret: string): string {
  const encode = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)
  return `Basic ${Buffer.from(`${encode(id)}:${encode(secret)}`).toString('base64')}`
}
