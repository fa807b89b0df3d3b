/**
 * The page `/first-login`, on which the first administrator sets a password, and `/v3-public/first-login` for
 * programs. Both require the one-time code in the link.
 */
import { isFromOtherOrigin } from '#component/console/csrf.ts'
import { BodyError } from '#lib/http/exchange.ts'
import { badRequestError, tooManyRequestsError, unauthorizedError } from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'

import type { User } from '../../kinds/user.ts'
import type { Reply, Route, RouteCall } from '../../port/route.ts'
import type { LoginThrottle } from '../login-throttle.ts'
import { forbidden } from '../routes/caller.ts'
import { readFields } from '../routes/fields.ts'
import { reply, userView } from '../routes/views.ts'
import type { Sessions } from '../sessions.ts'
import { MAX_API_TOKEN_MS, type Tokens } from '../tokens.ts'
import type { Users } from '../users.ts'
import type { FirstLogin } from './first-login.ts'
import { donePage, formPage, invalidPage, PAGE_HEADERS, refusedPage } from './page.ts'

export interface FirstLoginParts {
  readonly firstLogin: FirstLogin
  readonly users: Users
  readonly tokens: Tokens
  readonly sessions: Sessions
  readonly throttle: LoginThrottle
  /** After the password is set. */
  readonly onFirstLogin: () => Promise<void>
}

const WRONG = 'The code is wrong, was used or has expired'
const MAX_FORM_BYTES = 8 << 10
const FIELDS = { code: 'string', password: 'string', responseType: 'string?' } as const

export function firstLoginRoutes(parts: FirstLoginParts): Route[] {
  const access = 'anyone'
  return [
    { method: 'GET', path: '/first-login', access, serve: (call) => onPage(() => showForm(parts, call)) },
    { method: 'POST', path: '/first-login', access, serve: (call) => onPage(() => takeForm(parts, call)) },
    { method: 'POST', path: '/v3-public/first-login', access, serve: (call) => takeFields(parts, call) },
  ]
}

/** Errors are pages too. */
async function onPage(serve: () => Promise<Reply>): Promise<Reply> {
  try {
    return await serve()
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.code === 500) throw error
    const { code = 400, message = '' } = error.status
    return pageReply(code, code === 401 ? invalidPage() : refusedPage(message))
  }
}

async function showForm(parts: FirstLoginParts, call: RouteCall): Promise<Reply> {
  const code = call.query.get('code') ?? ''
  const { spec } = await checked(parts, call, () => parts.firstLogin.userOf(code))
  return pageReply(200, formPage({ username: spec.username, code }))
}

async function takeForm(parts: FirstLoginParts, call: RouteCall): Promise<Reply> {
  refuseOtherOrigin(call)
  const form = await readForm(call)
  const [code, password, repeated] = ['code', 'password', 'repeated'].map((name) => form.get(name) ?? '')
  const found = await checked(parts, call, () => parts.firstLogin.userOf(code ?? ''))
  const { username } = found.spec
  const again = (problem: string): Reply => pageReply(400, formPage({ username, code: code ?? '', problem }))
  if (password !== repeated) return again('The two passwords differ.')
  try {
    const user = await complete(parts, call, { code: code ?? '', password: password ?? '' })
    const cookie = await startSession(parts, call, user)
    return pageReply(200, donePage(username), ['Set-Cookie', cookie])
  } catch (error) {
    if (error instanceof StatusError && error.status.code === 400) return again(`${error.status.message}.`)
    throw error
  }
}

/** For programs: answers as a log-in does. */
async function takeFields(parts: FirstLoginParts, call: RouteCall): Promise<Reply> {
  refuseOtherOrigin(call)
  const { code, password, responseType = 'cookie' } = await readFields(call, FIELDS)
  const isToken = responseType === 'token'
  if (!isToken && responseType !== 'cookie') throw badRequestError('"responseType" must be "cookie" or "token"')
  const user = await complete(parts, call, { code, password })
  if (!isToken) return reply(200, { user: userView(user) }, ['Set-Cookie', await startSession(parts, call, user)])
  const { name = '' } = user.metadata
  const { text } = await parts.tokens.create({ user: name, type: 'api', lifetimeMs: MAX_API_TOKEN_MS })
  return reply(200, { token: text, user: userView(user) })
}

async function complete(
  parts: FirstLoginParts,
  call: RouteCall,
  { code, password }: { readonly code: string; readonly password: string },
): Promise<User> {
  const user = await checked(parts, call, () => parts.firstLogin.complete(code, password))
  await parts.users.noteLogin(user.metadata.name ?? '')
  await parts.onFirstLogin()
  return user
}

/** Wrong codes slow their address down. Throws StatusError 401 for an undefined user. */
async function checked(
  { throttle, firstLogin }: FirstLoginParts,
  { address }: RouteCall,
  check: () => Promise<User | undefined>,
): Promise<User> {
  if (!firstLogin.isPending) throw unauthorizedError(WRONG)
  // No username: others could otherwise slow the administrator down.
  const name = `first-login from ${address}`
  const waitSeconds = throttle.begin(address, name)
  if (waitSeconds > 0) throw tooManyRequestsError('Too many wrong codes; try again later', waitSeconds)
  try {
    const user = await check()
    if (user !== undefined) throttle.succeeded(address, name)
    if (user !== undefined) return user
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.code !== 401) throttle.takeBack(address, name)
    throw error
  }
  throw unauthorizedError(WRONG)
}

async function startSession({ sessions }: FirstLoginParts, call: RouteCall, user: User): Promise<string> {
  await sessions.endSent(call.exchange.headers.cookie, call.address)
  return (await sessions.start(user)).cookie
}

function refuseOtherOrigin({ exchange }: RouteCall): void {
  if (isFromOtherOrigin(exchange, 'https')) throw forbidden('The form must come from a page of this server')
}

/** Throws StatusError 400 for anything that is no form. */
async function readForm({ exchange }: RouteCall): Promise<URLSearchParams> {
  const [type = ''] = (exchange.headers['content-type'] ?? '').split(';')
  if (type.trim().toLowerCase() !== 'application/x-www-form-urlencoded')
    throw badRequestError('The body must be a form')
  try {
    return new URLSearchParams((await exchange.readBody(MAX_FORM_BYTES)).toString())
  } catch (error) {
    if (error instanceof BodyError && error.code === 'too-large') throw badRequestError('The form is too large')
    throw error
  }
}

function pageReply(status: number, body: string, headers: readonly string[] = []): Reply {
  return reply(status, body, [...PAGE_HEADERS, ...headers])
}
