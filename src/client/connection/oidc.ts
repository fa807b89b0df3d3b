/**
 * The `oidc` auth provider of kubeconfigs: an ID token that is renewed with a refresh token before it expires. New
 * tokens are saved in the kubeconfig, because a refresh token may work only once.
 */
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { parseJson } from '#lib/json/json.ts'
import { isJsonObject, type JsonObject } from '#lib/json/value.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import type { ClientConfig, ReadText } from '#model/kubeconfig/reading.ts'

type ProviderConfig = Readonly<Record<string, string>>

export interface OidcTools {
  readonly clock: Clock
  readonly readFile: ReadText
  /** Saves new tokens. Default: they live as long as the process. */
  readonly persist?: ((config: ProviderConfig) => Promise<void>) | undefined
}

export interface OidcSource {
  /** A valid token. Rejects with ConfigError. */
  token(): Promise<string>
  close(): void
}

/** Renews a token this long before it expires. */
const EARLY_MS = 10_000
const MAX_BYTES = 1 << 20

/** Undefined if the user has no auth provider. Throws ConfigError for an unsupported one. */
export async function createOidcSource({ user }: ClientConfig, tools: OidcTools): Promise<OidcSource | undefined> {
  const provider = user['auth-provider']
  if (provider === undefined) return undefined
  const { name = '' } = provider
  const config = provider.config ?? {}
  if (name !== 'oidc') throw new ConfigError(`no Auth Provider found for name ${goQuote(name)}`)
  for (const field of ['idp-issuer-url', 'client-id']) {
    if (!config[field]) throw new ConfigError(`Must provide ${field}`)
  }
  const data = config['idp-certificate-authority-data'] ?? ''
  const file = config['idp-certificate-authority'] ?? ''
  const ca = data !== '' ? Buffer.from(data, 'base64').toString() : file !== '' ? await tools.readFile(file) : undefined
  const client = createHttpClient({ clock: tools.clock, tls: ca === undefined ? {} : { ca } })
  const source = new Source(config, client, tools)
  return { token: () => source.token(), close: () => client.close() }
}

class Source {
  readonly #client: HttpClient
  readonly #tools: OidcTools
  #config: ProviderConfig
  #refreshing: Promise<string> | undefined

  constructor(config: ProviderConfig, client: HttpClient, tools: OidcTools) {
    this.#config = config
    this.#client = client
    this.#tools = tools
  }

  /** Concurrent callers share one refresh. */
  async token(): Promise<string> {
    const known = this.#config['id-token'] ?? ''
    if (known !== '' && expiryMs(known) > this.#tools.clock.now() + EARLY_MS) return known
    this.#refreshing ??= this.#refresh().finally(() => (this.#refreshing = undefined))
    return this.#refreshing
  }

  async #refresh(): Promise<string> {
    const refreshToken = this.#config['refresh-token'] ?? ''
    if (refreshToken === '') throw new ConfigError('No valid id-token, and cannot refresh without refresh-token')
    const endpoint = await this.#tokenEndpoint()
    const answer = await this.#exchange(endpoint, refreshToken).catch((cause: Error) => {
      throw new ConfigError(`failed to refresh token: ${cause.message}`, { cause })
    })
    const { id_token: idToken, refresh_token: next } = answer
    if (typeof idToken !== 'string') {
      throw new ConfigError(
        'token response did not contain an id_token, either the scope "openid" wasn\'t requested upon login, or the provider doesn\'t support id_tokens as part of the refresh response',
      )
    }
    const renewed = typeof next === 'string' && next !== '' ? { 'refresh-token': next } : {}
    const config = { ...this.#config, ...renewed, 'id-token': idToken }
    await this.#tools.persist?.(config).catch((cause: Error) => {
      throw new ConfigError(`could not persist new tokens: ${cause.message}`, { cause })
    })
    this.#config = config
    return idToken
  }

  async #tokenEndpoint(): Promise<string> {
    const issuer = (this.#config['idp-issuer-url'] ?? '').replace(/\/$/, '')
    const response = await this.#client.request({ url: `${issuer}/.well-known/openid-configuration` })
    const text = await response.text(MAX_BYTES)
    if (response.status !== 200) {
      const shown = text.length > 80 ? `${text.slice(0, 80)}...` : text
      throw new ConfigError(`oidc: failed to query metadata endpoint ${response.status}: ${goQuote(shown)}`)
    }
    const endpoint = parsed(text, 'oidc: failed to decode provider discovery object')['token_endpoint']
    if (typeof endpoint !== 'string' || endpoint === '') {
      throw new ConfigError("oidc: discovery object doesn't contain a token_endpoint")
    }
    return endpoint
  }

  /** Sends the client credentials in the Authorization header, then in the body for providers that need them there. */
  async #exchange(url: string, refreshToken: string): Promise<JsonObject> {
    const { 'client-id': id = '', 'client-secret': secret = '' } = this.#config
    const form = { grant_type: 'refresh_token', refresh_token: refreshToken }
    const basic = Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')
    const first = await this.#post(url, form, { authorization: `Basic ${basic}` })
    if (first.status < 300) return parsed(await first.text(MAX_BYTES), 'oauth2: cannot parse json')
    first.discard()
    const second = await this.#post(
      url,
      { ...form, client_id: id, ...(secret !== '' && { client_secret: secret }) },
      {},
    )
    const text = await second.text(MAX_BYTES)
    if (second.status >= 300) throw new Error(refusalText(second.status, text))
    return parsed(text, 'oauth2: cannot parse json')
  }

  #post(url: string, form: Record<string, string>, more: Record<string, string>): Promise<HttpResponse> {
    const headers = { 'content-type': 'application/x-www-form-urlencoded', ...more }
    return this.#client.request({ method: 'POST', url, headers, body: new URLSearchParams(form).toString() })
  }
}

function refusalText(status: number, body: string): string {
  try {
    const { error, error_description: description } = parsed(body, '')
    if (typeof error === 'string') {
      return `oauth2: ${goQuote(error)}${typeof description === 'string' ? ` ${goQuote(description)}` : ''}`
    }
  } catch {
    // Not JSON: show the body itself.
  }
  return `oauth2: cannot fetch token: ${status}\nResponse: ${body}`
}

function parsed(text: string, problem: string): JsonObject {
  try {
    const value = parseJson(text)
    if (isJsonObject(value)) return value
    throw new Error('it is no object')
  } catch (cause) {
    throw new ConfigError(`${problem}: ${(cause as Error).message}`, { cause })
  }
}

/** Does not verify the signature: the server does. */
function expiryMs(token: string): number {
  const parts = token.split('.')
  if (parts.length !== 3) throw new ConfigError('ID Token is not a valid JWT')
  const { exp } = parsed(Buffer.from(parts[1] ?? '', 'base64url').toString(), 'parsing claims')
  return typeof exp === 'number' ? Math.trunc(exp) * 1000 : 0
}
