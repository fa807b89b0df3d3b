/** The authenticators in the order in which they are asked: connections first, then tokens; and all of them as one. */
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { unauthorizedError } from '#meta/status-errors.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import { aggregatedText } from '../authorizers/authorizer.ts'
import { TOKEN_PROTOCOL } from '../credentials/protocol-token.ts'
import { type Authenticate, authenticated } from '../filters/access.ts'
import type { User } from '../registry/resource.ts'
import {
  CredentialError,
  type RequestAuthenticator,
  type TokenAuthenticator,
  type TokenIdentity,
} from './authenticator.ts'
import { createBootstrapTokenAuthenticator } from './bootstrap-token.ts'
import { type ClientCertOptions, createClientCertAuthenticator } from './client-cert.ts'
import type { LiveObjects } from './live-objects.ts'
import { createOidcAuthenticator, type OidcOptions } from './oidc.ts'
import { createRequestHeaderAuthenticator, hiderOf, type RequestHeaderOptions } from './request-header.ts'
import { createServiceAccountAuthenticator, type ServiceAccountTokenOptions } from './service-account.ts'
import { createStaticTokenAuthenticator } from './static-token.ts'
import { createWebhookTokenAuthenticator, type WebhookTokenOptions } from './webhook.ts'

/** What the flags set up; what is left out is not there. */
export interface AuthenticatorSettings {
  readonly clock: Clock
  readonly objects: LiveObjects
  /** `--api-audiences`: whom a token must be good for. */
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
  /** Notes on secrets when the tokens in them are used. */
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

/** Issuers whose tokens are accepted, which may be others tomorrow. */
export interface LiveIssuers {
  readonly first: readonly JwtIssuer[]
  /** Hands over further ones as they come. */
  follow(apply: (next: readonly JwtIssuer[]) => void): void
}

/** The authenticators that are set up, in upstream's order. Throws for settings that make no sense. */
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

/** Each issuer knows its own tokens; one that is replaced is asked no more. */
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
  /** `--api-audiences`: whom a token must be good for. */
  readonly apiAudiences: readonly string[]
  /** Told of credentials that were refused, for the log. */
  readonly onRefusal?: (why: string) => void
  /** Takes from a request what a front proxy said of the user, once it has been looked at: nobody behind us is to hear it. */
  readonly hide?: ((exchange: Exchange) => void) | undefined
}

export interface Authenticator {
  /** For the server. Throws StatusError 401. */
  readonly authenticate: Authenticate
  /** For TokenReview. Rejects with CredentialError. */
  readonly authenticateToken: (token: string, audiences: readonly string[]) => Promise<TokenIdentity>
}

export function createAuthenticator(parts: AuthenticatorParts): Authenticator {
  const { requests, apiAudiences, onRefusal, hide } = parts
  return {
    authenticate(exchange) {
      const problems: string[] = []
      const user = askConnection(requests, exchange, problems)
      hide?.(exchange)
      if (user !== undefined) return authenticated(user)
      const token = bearerToken(exchange) ?? websocketToken(exchange)
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

/** What is said of tokens that nobody knows. */
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

/** One that vouches is enough; what the others say counts only if none does. Without promises as long as possible. */
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

/** Whatever goes wrong with credentials ends as a refusal: a webhook that is away lets nobody in, and breaks nothing. */
function note(error: unknown, problems: string[]): undefined {
  problems.push(error instanceof Error ? error.message : String(error))
}

function refuseAny(problems: readonly string[], onRefusal: ((why: string) => void) | undefined): undefined {
  if (problems.length === 0) return undefined
  onRefusal?.(aggregatedText(problems))
  throw unauthorizedError('Unauthorized')
}

/** `Authorization: Bearer <token>`. Other schemes are none of ours. */
function bearerToken({ headers }: Exchange): string | undefined {
  const [scheme = '', token = ''] = (headers.authorization ?? '').trim().split(' ')
  return scheme.toLowerCase() === 'bearer' && token !== '' ? token : undefined
}

/** Browsers cannot set headers on WebSockets: there the token comes as a subprotocol beside the real one. */
function websocketToken({ headers, upgradeProtocol }: Exchange): string | undefined {
  if (upgradeProtocol !== 'websocket') return undefined
  const protocols = (headers['sec-websocket-protocol'] ?? '').split(',').map((one) => one.trim())
  const ours = protocols.filter((one) => one.startsWith(TOKEN_PROTOCOL))
  const encoded = ours[0]?.slice(TOKEN_PROTOCOL.length)
  if (encoded === undefined || ours.length > 1 || protocols.length === 1) return undefined
  return Buffer.from(encoded, 'base64url').toString()
}
