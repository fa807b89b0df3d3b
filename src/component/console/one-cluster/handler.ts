/**
 * Serves the console of one cluster: the page, log-in by a one-time code, and the API of the cluster. All requests have
 * one identity, so the code is the only credential of people.
 */
import type { Exchange, HeaderList } from '#lib/http/exchange.ts'

import { segmentsOf } from '../../forwarding/request-path.ts'
import { cookieValues } from '../cookies.ts'
import { cookieProblem, isFromOtherOrigin } from '../csrf.ts'
import { sendNotice } from '../notice.ts'
import { SAFE_HEADERS } from '../page-headers.ts'
import { PAGE_PATH } from '../page-plan.ts'
import { type ConsolePage, createConsolePage } from '../page.ts'
import type { SessionView } from '../session-view.ts'
import { CLUSTER_NAME, isClusterPath, serveCluster } from './cluster-route.ts'
import { isForwardsPath, serveForwards } from './forwards/forward-route.ts'
import { Forwards } from './forwards/forwards.ts'
import { type LoginCode, WRONG_PERIOD_MS } from './login-code.ts'
import type { ConsoleOptions } from './options.ts'
import { isOwnHost } from './own-host.ts'
import { LIFETIME_MS, type Session, Sessions } from './sessions.ts'

export interface ConsoleHandler {
  serve(exchange: Exchange): Promise<void>
  close(): Promise<void>
}

interface HandlerParts {
  readonly options: ConsoleOptions
  readonly port: number
  readonly code: LoginCode
  readonly sessions: Sessions
  readonly page: ConsolePage
  readonly forwards: Forwards
  /** Called when a code was used. */
  readonly onLogin: () => Promise<void>
}

export async function createConsoleHandler(
  options: ConsoleOptions,
  { port, code, onLogin }: Pick<HandlerParts, 'port' | 'code' | 'onLogin'>,
): Promise<ConsoleHandler> {
  const onError = (error: unknown): void => options.log.error(error, 'Failed to store the sessions of the console')
  const sessions = await Sessions.open({ ...options, onError })
  const page = createConsolePage({ random: options.random, folder: options.pageFolder })
  const forwards = new Forwards({ ...options, sessions })
  const parts = { options, port, code, sessions, page, forwards, onLogin }
  return { serve: (exchange) => serve(parts, exchange), close: () => sessions.close() }
}

async function serve(parts: HandlerParts, exchange: Exchange): Promise<void> {
  if (!isOwnHost(exchange.authority, parts.port)) return sendText(exchange, 421, 'This is not the host of the request')
  const [path = ''] = exchange.path.split('?')
  if ('refused' in segmentsOf(path)) return sendText(exchange, 400, 'The path is not valid')
  const { cookie = '' } = exchange.headers
  const session = parts.sessions.find(cookieValues(cookie, cookieName(parts.port)))
  if (isClusterPath(path)) return serveCluster({ ...parts, ...parts.options }, exchange, session)
  if (exchange.upgradeProtocol !== undefined) return sendText(exchange, 400, 'The path has no upgrades')
  if (path === `${PAGE_PATH}session`) return serveSession(parts, exchange, session)
  if (path === `${PAGE_PATH}login`) return serveLogin(parts, exchange, session)
  if (path === `${PAGE_PATH}logout`) return serveLogout(parts, exchange, session)
  if (isForwardsPath(path)) return serveForwards(parts.forwards, exchange, session)
  await parts.page.serve(exchange)
}

/** Cookies of a host are for all its ports: the name tells several consoles apart. */
function cookieName(port: number): string {
  return `hk-console-${port}`
}

function cookie(port: number, value: string, maxAgeMs: number): HeaderList {
  const text = `${cookieName(port)}=${value}; Path=/; Max-Age=${maxAgeMs / 1000}; HttpOnly; SameSite=Strict`
  return ['Set-Cookie', text]
}

async function serveSession(
  { options }: HandlerParts,
  exchange: Exchange,
  session: Session | undefined,
): Promise<void> {
  if (exchange.method !== 'GET' && exchange.method !== 'HEAD') return sendMethod(exchange, 'GET, HEAD')
  const view: SessionView = {
    mode: 'one-cluster',
    version: options.version,
    user: session === undefined ? null : await options.user(),
    clusters: [{ name: CLUSTER_NAME, displayName: options.displayName }],
  }
  const headers = ['Content-Type', 'application/json', 'Cache-Control', 'no-store', ...SAFE_HEADERS]
  exchange.respond(200, headers, Buffer.from(`${JSON.stringify(view)}\n`))
}

async function serveLogin(
  { options, port, code, sessions, onLogin }: HandlerParts,
  exchange: Exchange,
  session: Session | undefined,
): Promise<void> {
  if (exchange.method !== 'GET') return sendMethod(exchange, 'GET')
  // A browser that loads the page before the user opens it would use the code up.
  if (exchange.headers['sec-purpose'] !== undefined) return sendText(exchange, 503, 'The link works when it is opened')
  if (!isOpenedByUser(exchange)) return sendText(exchange, 403, 'The link must be opened by a user')
  const query = new URLSearchParams(exchange.path.split('?').slice(1).join('?'))
  const result = code.redeem(query.get('code') ?? '')
  if (result === 'accepted') {
    const secret = sessions.start()
    await onLogin()
    return redirect(exchange, cookie(port, secret, LIFETIME_MS))
  }
  // The link was used before in this browser.
  if (session !== undefined) return redirect(exchange, [])
  if (result === 'wrong') return void sendNotice(exchange, 401, invalidLink(options.newLinkCommand))
  const seconds = String(WRONG_PERIOD_MS / 1000)
  sendNotice(exchange, 429, { title: 'Too many wrong links', paragraphs: ['Try again later.'] }, [
    'Retry-After',
    seconds,
  ])
}

/** False for images, frames and scripts of other sites, which could exhaust the number of wrong codes. */
function isOpenedByUser({ headers }: Exchange): boolean {
  const { 'sec-fetch-site': site, 'sec-fetch-dest': destination } = headers
  return site === undefined || site === 'none' || site === 'same-origin' || destination === 'document'
}

function redirect(exchange: Exchange, headers: HeaderList): void {
  exchange.respond(302, ['Location', PAGE_PATH, 'Cache-Control', 'no-store', ...headers, ...SAFE_HEADERS])
}

function invalidLink(command: string): Parameters<typeof sendNotice>[2] {
  return {
    title: 'The link is not valid',
    paragraphs: ['Each link works once, in one browser. For another link, run:'],
    command,
  }
}

function serveLogout({ port, sessions }: HandlerParts, exchange: Exchange, session: Session | undefined): void {
  if (exchange.method !== 'POST') return sendMethod(exchange, 'POST')
  const problem = isFromOtherOrigin(exchange, 'http')
    ? 'The request must come from a page of this console'
    : cookieProblem(exchange, 'http')
  if (problem !== undefined) return sendText(exchange, 403, problem)
  if (session === undefined) return sendText(exchange, 401, 'There is no session')
  sessions.end(session)
  exchange.respond(204, ['Cache-Control', 'no-store', ...cookie(port, '', 0), ...SAFE_HEADERS])
}

function sendMethod(exchange: Exchange, allowed: string): void {
  sendText(exchange, 405, 'The method is not supported', ['Allow', allowed])
}

function sendText(exchange: Exchange, status: number, text: string, headers: HeaderList = []): void {
  const fixed = ['Content-Type', 'text/plain; charset=utf-8', 'Cache-Control', 'no-store', ...SAFE_HEADERS]
  exchange.respond(status, [...fixed, ...headers], Buffer.from(`${text}\n`))
}
