/** Log-in with an OpenID provider: the authorization code flow with PKCE. A cookie binds it to the browser. */
import { hash, timingSafeEqual } from 'node:crypto'

import { badRequestError, notFoundError, serviceUnavailableError, unauthorizedError } from '#meta/status-errors.ts'

import { AuthProviders } from '../../kinds/auth-provider.ts'
import type { User } from '../../kinds/user.ts'
import type { ManagementObjects } from '../../objects.ts'
import { userOfAccount } from '../accounts.ts'
import { ProviderError } from '../provider-error.ts'
import type { Users } from '../users.ts'
import { verifyIdToken } from './id-token.ts'
import { LOGIN_SECONDS, LoginCookies, type LoginState } from './login-cookie.ts'
import type { Provider } from './provider.ts'
import type { Providers } from './providers.ts'
import { returnPath } from './return-to.ts'

export interface OidcLoginOptions {
  readonly objects: ManagementObjects
  readonly providers: Providers
  readonly users: Users
  /** The address at which browsers reach this server, without a path. */
  readonly serverUrl: () => string
}

export interface BegunLogin {
  /** The address of the provider. */
  readonly location: string
  /** The value of `Set-Cookie`. */
  readonly cookie: string
}

export interface CompletedLogin {
  readonly user: User
  /** A path of this server. */
  readonly returnTo: string
}

const SECRET_BYTES = 32
const DEFAULT_SCOPES = ['openid', 'profile', 'email']

export class OidcLogin {
  readonly #options: OidcLoginOptions
  readonly #cookies: LoginCookies

  constructor(options: OidcLoginOptions) {
    this.#options = options
    this.#cookies = new LoginCookies(options.objects.clock, options.objects.random)
  }

  /** Throws StatusError: 400 for a path of another server, 404 for an unknown provider, 503 if it cannot be reached. */
  async begin(name: string, wantedPath: string | null): Promise<BegunLogin> {
    const { clock, random } = this.#options.objects
    const returnTo = returnPath(wantedPath)
    if (returnTo === undefined) throw badRequestError('"returnTo" must be a path of this server')
    const provider = await this.#provider(name)
    const secret = (): string => random.bytes(SECRET_BYTES).toString('base64url')
    const expiresAtMs = clock.now() + LOGIN_SECONDS * 1000
    const login = { provider: name, state: secret(), nonce: secret(), verifier: secret(), returnTo, expiresAtMs }
    const params = {
      response_type: 'code',
      client_id: provider.spec.clientID,
      redirect_uri: this.#redirectUri(name),
      scope: [...new Set(['openid', ...(provider.spec.scopes ?? DEFAULT_SCOPES)])].join(' '),
      state: login.state,
      nonce: login.nonce,
      code_challenge: hash('sha256', login.verifier, 'base64url'),
      code_challenge_method: 'S256',
    }
    const location = await this.#ask(name, () => provider.authorizationUrl(params))
    return { location, cookie: this.#cookies.seal(login) }
  }

  /**
   * Throws StatusError: 401 if the log-in was not begun by this browser, has expired, was completed before, or the
   * provider's answer is not valid; 403 if no user has this identity or the user is disabled.
   */
  async complete(name: string, query: URLSearchParams, cookieHeader: string): Promise<CompletedLogin> {
    const login = this.#cookies.take(cookieHeader)
    if (login?.provider !== name || !isSame(query.getAll('state'), login.state)) {
      throw unauthorizedError('The log-in was not begun in this browser, or has expired; log in again')
    }
    const provider = await this.#provider(name)
    const code = this.#codeOf(name, provider, query)
    const claims = await this.#ask(name, () => this.#exchange(provider, login, code))
    const { users } = this.#options
    const { createsUsers = false, claims: names } = provider.spec
    const user = await userOfAccount(users, {
      provider: name,
      createsUsers,
      subject: String(claims['sub']),
      username: claims[names?.username ?? 'preferred_username'],
      displayName: claims['name'],
      groups: claims[names?.groups ?? 'groups'],
    })
    return { user, returnTo: login.returnTo }
  }

  /** `iss` is RFC 9207: without it, one provider could send the code of another. */
  #codeOf(name: string, provider: Provider, query: URLSearchParams): string {
    const [code, ...others] = query.getAll('code')
    const issuers = query.getAll('iss')
    const error = query.get('error')
    const isFromIssuer = issuers.every((issuer) => issuer === provider.spec.issuer)
    if (error === null && isFromIssuer && code !== undefined && code !== '' && others.length === 0) return code
    this.#options.objects.log.info('Refused log-in', { provider: name, error: error?.slice(0, 100), issuers })
    throw unauthorizedError('The provider refused the log-in')
  }

  async #exchange(provider: Provider, login: LoginState, code: string): ReturnType<typeof verifyIdToken> {
    const redirectUri = this.#redirectUri(login.provider)
    const tokens = await provider.exchange({ code, verifier: login.verifier, redirectUri })
    return verifyIdToken(provider, tokens, login.nonce, this.#options.objects.clock).catch((error: unknown) => {
      this.#options.objects.log.error(error, 'Failed to verify ID token', { provider: login.provider })
      throw unauthorizedError('The answer of the provider is not valid')
    })
  }

  async #provider(name: string): Promise<Provider> {
    const provider = await this.#ask(name, () => this.#options.providers.get(name))
    if (provider !== undefined) return provider
    throw notFoundError({ group: AuthProviders.group, resource: AuthProviders.plural }, name)
  }

  /** The cause goes to the log: the caller is not known yet. */
  async #ask<T>(name: string, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      this.#options.objects.log.error(error, 'Failed to reach identity provider', { provider: name })
      throw serviceUnavailableError(`The identity provider "${name}" cannot be used now`)
    }
  }

  #redirectUri(name: string): string {
    return `${this.#options.serverUrl().replace(/\/+$/, '')}/v3-public/oidc/${encodeURIComponent(name)}/callback`
  }
}

function isSame(sent: readonly string[], wanted: string): boolean {
  const [state, ...others] = sent
  if (state === undefined || others.length > 0) return false
  const [a, b] = [Buffer.from(state), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}
