/** The HTTP routes below `/v3-public`: log-in with a password or with an OpenID provider. */
import { isFromOtherOrigin } from '#component/console/csrf.ts'
import { escapeHtml } from '#component/console/html.ts'
import type { LoginProvider } from '#component/console/session-view.ts'
import { badRequestError, unauthorizedError } from '#meta/status-errors.ts'

import type { Token } from '../../kinds/token.ts'
import type { Reply, Route, RouteCall } from '../../port/route.ts'
import type { LdapLogin } from '../ldap/login.ts'
import type { LoginThrottle } from '../login-throttle.ts'
import { ENDED_LOGIN } from '../oidc/login-cookie.ts'
import type { OidcLogin } from '../oidc/login.ts'
import type { Providers } from '../oidc/providers.ts'
import { checkProviderLogin, type CheckedLogin, checkLogin } from '../password-login.ts'
import type { Sessions } from '../sessions.ts'
import { MAX_API_TOKEN_MS, type Tokens } from '../tokens.ts'
import type { Users } from '../users.ts'
import { forbidden } from './caller.ts'
import { readFields } from './fields.ts'
import { reply, userView } from './views.ts'

export interface LoginParts {
  readonly users: Users
  readonly tokens: Tokens
  readonly sessions: Sessions
  readonly throttle: LoginThrottle
  readonly providers: Providers
  readonly oidc: OidcLogin
  readonly ldap: LdapLogin
}

const WRONG = 'The username or the password is wrong'

const FIELDS = {
  /** Of a provider of type ldap; absent: a local user. */
  provider: 'string?',
  username: 'string',
  password: 'string',
  newPassword: 'string?',
  responseType: 'string?',
  description: 'string?',
  ttlSeconds: 'count?',
} as const

export function loginRoutes(parts: LoginParts): Route[] {
  return [
    {
      method: 'GET',
      path: '/v3-public/providers',
      access: 'anyone',
      serve: () => reply(200, { items: loginProviders(parts) }),
    },
    { method: 'POST', path: '/v3-public/login', access: 'anyone', serve: (call) => logIn(parts, call) },
    {
      method: 'GET',
      path: '/v3-public/oidc/:provider/login',
      access: 'anyone',
      serve: (call) => leaveForProvider(parts, call),
    },
    {
      method: 'GET',
      path: '/v3-public/oidc/:provider/callback',
      access: 'anyone',
      serve: (call) => comeBack(parts, call),
    },
  ]
}

/** The ways to log in: the passwords of this server, and identity providers. */
export function loginProviders({ providers }: Pick<LoginParts, 'providers'>): readonly LoginProvider[] {
  const others = providers.list().map(({ metadata: { name = '' }, spec }) => ({
    name,
    type: spec.type,
    displayName: spec.displayName ?? name,
  }))
  return [{ name: 'local', type: 'local', displayName: 'Local' }, ...others]
}

async function logIn(parts: LoginParts, call: RouteCall): Promise<Reply> {
  if (isFromOtherOrigin(call.exchange, 'https')) throw forbidden('Log-ins must come from a page of this server')
  const fields = await readFields(call, FIELDS)
  const { responseType = 'cookie', description, ttlSeconds } = fields
  const isToken = responseType === 'token'
  if (!isToken && responseType !== 'cookie') throw badRequestError('"responseType" must be "cookie" or "token"')
  if (!isToken && (description !== undefined || ttlSeconds !== undefined)) {
    throw badRequestError('"description" and "ttlSeconds" need "responseType": "token"')
  }
  const login = await (fields.provider === undefined
    ? checkedLogin(parts, call, fields)
    : providerLogin(parts, call, { ...fields, provider: fields.provider }))
  const { user } = login
  const { name = '' } = user.metadata
  const mustChangePassword = user.spec.mustChangePassword === true
  // Otherwise an attacker who has seen the initial password could keep a token after the password changes.
  if (isToken && mustChangePassword) throw forbidden('Set another password first, with the field "newPassword"')
  await parts.users.noteLogin(name)
  if (!isToken) return startSession(parts, call, login)
  const lifetimeMs = ttlSeconds === undefined ? MAX_API_TOKEN_MS : ttlSeconds * 1000
  const { text, token } = await parts.tokens.create({ user: name, type: 'api', lifetimeMs, description })
  await requireCurrent(parts, login, token)
  return reply(200, { token: text, user: userView(user), mustChangePassword })
}

interface LoginFields {
  readonly username: string
  readonly password: string
  /** Replaces an initial password, which users must change at their first log-in. */
  readonly newPassword?: string | undefined
}

/** Throws StatusError. */
async function checkedLogin(
  { users, throttle }: LoginParts,
  { address }: RouteCall,
  { username, password, newPassword }: LoginFields,
): Promise<CheckedLogin> {
  const login = await checkLogin(users, throttle, { username, password, address })
  if (login === undefined) throw unauthorizedError(WRONG)
  if (newPassword === undefined) return login
  if (newPassword === password) throw badRequestError('The new password must be another one')
  await users.setPassword(login.user.metadata.name ?? '', newPassword, false)
  const again = await checkLogin(users, throttle, { username, password: newPassword, address })
  if (again === undefined) throw unauthorizedError(WRONG)
  return again
}

/** Throws StatusError. */
async function providerLogin(
  { users, throttle, ldap }: LoginParts,
  { address }: RouteCall,
  { provider, username, password, newPassword }: LoginFields & { readonly provider: string },
): Promise<CheckedLogin> {
  if (newPassword !== undefined) throw badRequestError('Passwords of a provider change there')
  const attempt = { username, password, address }
  const login = await checkProviderLogin(users, throttle, {
    ...attempt,
    provider,
    check: () => ldap.check(provider, attempt),
  })
  if (login === undefined) throw unauthorizedError(WRONG)
  return login
}

/** Always a new secret: one that was planted in the browser before is worth nothing. */
async function startSession(parts: LoginParts, call: RouteCall, login: CheckedLogin): Promise<Reply> {
  await parts.sessions.endSent(call.exchange.headers.cookie, call.address)
  const { user } = login
  const { cookie, token } = await parts.sessions.start(user)
  await requireCurrent(parts, login, token)
  const body = { user: userView(user), mustChangePassword: user.spec.mustChangePassword === true }
  return reply(200, body, ['Set-Cookie', cookie])
}

/** Another request may have changed the password or disabled the user, and ended the tokens that it found. */
async function requireCurrent({ tokens }: LoginParts, login: CheckedLogin, token: Token): Promise<void> {
  if (login.isCurrent()) return
  await tokens.end(token)
  throw unauthorizedError(WRONG)
}

async function leaveForProvider({ oidc }: LoginParts, { params, query }: RouteCall): Promise<Reply> {
  const { location, cookie } = await oidc.begin(params['provider'] ?? '', query.get('returnTo'))
  return reply(303, undefined, ['Location', location, 'Set-Cookie', cookie])
}

async function comeBack({ oidc, sessions }: LoginParts, call: RouteCall): Promise<Reply> {
  const { params, query, exchange } = call
  const { user, returnTo } = await oidc.complete(params['provider'] ?? '', query, exchange.headers.cookie ?? '')
  await sessions.endSent(exchange.headers.cookie, call.address)
  const { cookie } = await sessions.start(user)
  return reply(200, continuePage(returnTo), ['Set-Cookie', cookie, 'Set-Cookie', ENDED_LOGIN, ...PAGE_HEADERS])
}

/** No referrer: the address has the code of the provider. */
const PAGE_HEADERS = Object.entries({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': "default-src 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
}).flat()

/**
 * A redirect would still be a request of the provider's site, without the cookie, which is `SameSite=Strict`. The
 * request after this page is one of ours.
 */
function continuePage(path: string): string {
  const escaped = escapeHtml(path)
  return `<!doctype html><meta http-equiv="refresh" content="0;url=${escaped}"><title>hyperkube</title><a href="${escaped}">Continue</a>`
}
