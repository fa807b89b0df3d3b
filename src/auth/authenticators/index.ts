/** Combines the authenticators into one, in upstream's order: first for connections, then for tokens. */
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { unauthorizedError } from '#meta/status-errors.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import { type Authenticate, authenticated } from '../access.ts'
import {
  CredentialError,
  type RequestAuthenticator,
  type TokenAuthenticator,
  type TokenIdentity,
} from '../authenticator.ts'
import { aggregatedText } from '../authorizer.ts'
import { TOKEN_PROTOCOL } from '../credentials/protocol-token.ts'
import type { LiveObjects } from '../live-objects.ts'
import type { User } from '../user.ts'
import { createBootstrapTokenAuthenticator } from './bootstrap-token.ts'
import { type ClientCertOptions, createClientCertAuthenticator } from './client-cert.ts'
import { createOidcAuthenticator, type OidcOptions } from './oidc.ts'
import { createRequestHeaderAuthenticator, hiderOf, type RequestHeaderOptions } from './request-header.ts'
import { createServiceAccountAuthenticator, type ServiceAccountTokenOptions } from './service-account.ts'
import { createStaticTokenAuthenticator } from './static-token.ts'
import { createWebhookTokenAuthenticator, type WebhookTokenOptions } from './webhook.ts'

/** The settings of the authenticators. An absent member disables its authenticator. */
export interface AuthenticatorSettings {
  readonly clock: Clock
  readonly objects: LiveObjects
  /** `--api-audiences`: the audiences that a token must be valid for. */
  readonly apiAudiences: readonly string[]
  readonly metrics?: ServerMeters | undefined
  /** `--requestheader-*`. */
  readonly requestHeader?: Settings<RequestHeaderOptions>
  /** `--client-ca-file`. */
  readonly clientCert?: Settings<ClientCertOptions>
  /** The text of `--token-auth-file`. */
  readonly staticTokens?: string
  /** `--service-account-*`. */
  readonly serviceAccounts?: Settings<ServiceAccountTokenOptions>
  /** Records on a Secret that its token was used. */
  readonly markUse?: ServiceAccountTokenOptions['markUse']
  /** `--enable-bootstrap-token-auth`. */
  readonly bootstrapTokens?: boolean
  /** `--oidc-*`. */
  readonly oidc?: Settings<OidcOptions>
  /** `--authentication-config`. */
  readonly jwt?: LiveIssuers
  /** `--authentication-token-webhook-*`. */
  readonly webhook?: Settings<WebhookTokenOptions>
}

type Settings<T> = Omit<T, 'clock' | 'objects' | 'apiAudiences'>

export type JwtIssuer = Settings<OidcOptions>

/** The issuers whose tokens are accepted. The list can change at run time. */
export interface LiveIssuers {
  readonly first: readonly JwtIssuer[]
  /** Calls back with each later list. */
  follow(apply: (next: readonly JwtIssuer[]) => void): void
}

/** The enabled authenticators, in upstream's order. Throws for invalid settings. */
export function authenticatorsFor(settings: AuthenticatorSettings): AuthenticatorParts {
  const { clock, objects, apiAudiences } = settings
  const given = { clock, objects, apiAudiences, metrics: settings.metrics }
  const { requestHeader, clientCert, staticTokens, serviceAccounts, bootstrapTokens, oidc, jwt, webhook } = settings
  const known = <T>(list: readonly (T | undefined)[]): T[] => list.filter((one) => one !== undefined)
  return {
    requests: known([
      requestHeader && createRequestHeaderAuthenticator({ ...given, ...requestHeader }),
      clientCert && createClientCertAuthenticator({ ...given, ...clientCert }),
    ]),
    tokens: known([
      staticTokens === undefined ? undefined : createStaticTokenAuthenticator(staticTokens, given),
      serviceAccounts && createServiceAccountAuthenticator({ ...given, markUse: settings.markUse, ...serviceAccounts }),
      bootstrapTokens === true ? createBootstrapTokenAuthenticator(given) : undefined,
      oidc && createOidcAuthenticator({ ...given, ...oidc }),
      jwt && followIssuers(jwt, (issuer) => createOidcAuthenticator({ ...given, ...issuer })),
      webhook && createWebhookTokenAuthenticator({ ...given, ...webhook }),
    ]),
    apiAudiences,
    hide: requestHeader && hiderOf(requestHeader),
  }
}

/** Each issuer accepts its own tokens. A replaced issuer is no longer consulted. */
function followIssuers(issuers: LiveIssuers, create: (issuer: JwtIssuer) => TokenAuthenticator): TokenAuthenticator {
  let current = issuers.first.map(create)
  issuers.follow((next) => {
    current = next.map(create)
  })
  return async (token, audiences) => {
    for (const authenticator of current) {
      const found = await authenticator(token, audiences)
      if (found !== undefined) return found
    }
    return undefined
  }
}

export interface AuthenticatorParts {
  /** Front proxy, then client certificates: upstream's order. */
  readonly requests: readonly RequestAuthenticator[]
  /** Static tokens, service accounts, bootstrap tokens, OpenID, webhook. */
  readonly tokens: readonly TokenAuthenticator[]
  /** `--api-audiences`: the audiences that a token must be valid for. */
  readonly apiAudiences: readonly string[]
  /** Receives the reason of each refusal, for the log. */
  readonly onRefusal?: (why: string) => void
  /** Removes the front proxy's user headers after authentication, so that no server behind this one receives them. */
  readonly hide?: ((exchange: Exchange) => void) | undefined
}

export interface Authenticator {
  /** For the server. Throws StatusError 401. */
  readonly authenticate: Authenticate
  /** For TokenReview. Rejects with CredentialError. */
  readonly authenticateToken: (token: string, audiences: readonly string[]) => Promise<TokenIdentity>
}

export function createAuthenticator(parts: AuthenticatorParts): Authenticator {
  const { requests, tokens, apiAudiences, onRefusal, hide } = parts
  return {
    authenticate(exchange) {
      const problems: string[] = []
      const user = askConnection(requests, exchange, problems)
      hide?.(exchange)
      if (user !== undefined) return authenticated(user)
      // Without authenticators of tokens, a token counts as no credentials.
      const token = tokens.length === 0 ? undefined : (bearerToken(exchange) ?? websocketToken(exchange))
      if (token !== undefined) return byToken(parts, token, problems)
      return refuseAny(problems, onRefusal)
    },
    async authenticateToken(token, audiences) {
      const problems: string[] = []
      const wanted = audiences.length === 0 ? apiAudiences : audiences
      const found = await askInTurn(parts.tokens, [token, wanted], problems)
      if (found !== undefined) return { ...found, user: authenticated(found.user) }
      throw new CredentialError(problems.length === 0 ? INVALID : aggregatedText(problems))
    },
  }
}

function askConnection(
  authenticators: readonly RequestAuthenticator[],
  exchange: Exchange,
  problems: string[],
): User | undefined {
  for (const authenticator of authenticators) {
    const user = attempt(() => authenticator(exchange), problems)
    if (user !== undefined) return user
  }
  return undefined
}

/** The error for tokens that no authenticator recognizes. */
export const INVALID = 'invalid bearer token'

function byToken(
  parts: AuthenticatorParts,
  token: string,
  problems: string[],
): User | undefined | Promise<User | undefined> {
  const { tokens, apiAudiences, onRefusal } = parts
  const settle = (found: TokenIdentity | undefined): User | undefined => {
    if (found !== undefined) return authenticated(found.user)
    return refuseAny(problems.length === 0 ? [INVALID] : problems, onRefusal)
  }
  const found = askInTurn(tokens, [token, apiAudiences], problems)
  return found instanceof Promise ? found.then(settle) : settle(found)
}

/**
 * One successful authenticator suffices; errors of the others count only if none succeeds. Avoids promises where
 * possible.
 */
function askInTurn(
  authenticators: readonly TokenAuthenticator[],
  question: readonly [string, readonly string[]],
  problems: string[],
): TokenIdentity | undefined | Promise<TokenIdentity | undefined> {
  for (let at = 0; at < authenticators.length; at++) {
    const found = attempt(() => authenticators[at]?.(...question), problems)
    if (found instanceof Promise) {
      const rest = authenticators.slice(at + 1)
      const noting = found.catch((error: unknown) => note(error, problems))
      return noting.then((later) => later ?? askInTurn(rest, question, problems))
    }
    if (found !== undefined) return found
  }
  return undefined
}

function attempt<T>(ask: () => T | undefined, problems: string[]): T | undefined {
  try {
    return ask()
  } catch (error) {
    return note(error, problems)
  }
}

/** Turns every error into a refusal: an unreachable webhook authenticates no user, but does not cause a 500. */
function note(error: unknown, problems: string[]): undefined {
  problems.push(error instanceof Error ? error.message : String(error))
}

function refuseAny(problems: readonly string[], onRefusal: ((why: string) => void) | undefined): undefined {
  if (problems.length === 0) return undefined
  onRefusal?.(aggregatedText(problems))
  throw unauthorizedError('Unauthorized')
}

/** The token of `Authorization: Bearer <token>`. Other schemes are ignored. */
function bearerToken({ headers }: Exchange): string | undefined {
  const [scheme = '', token = ''] = (headers.authorization ?? '').trim().split(' ')
  return scheme.toLowerCase() === 'bearer' && token !== '' ? token : undefined
}

/** Browsers cannot set headers on WebSockets and send the token as an additional subprotocol. */
function websocketToken({ headers, upgradeProtocol }: Exchange): string | undefined {
  if (upgradeProtocol !== 'websocket') return undefined
  const protocols = (headers['sec-websocket-protocol'] ?? '').split(',').map((one) => one.trim())
  const ours = protocols.filter((one) => one.startsWith(TOKEN_PROTOCOL))
  const encoded = ours[0]?.slice(TOKEN_PROTOCOL.length)
  if (encoded === undefined || ours.length > 1 || protocols.length === 1) return undefined
  return Buffer.from(encoded, 'base64url').toString()
}
