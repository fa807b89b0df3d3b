/**
 * `/ui/forwards`: lists (GET), opens (POST) and stops (DELETE `/ui/forwards/<id>`) forwards of the session. Opening has
 * the protection of writes against other sites.
 */
import type { Exchange } from '#lib/http/exchange.ts'

import { cookieProblem, isFromOtherOrigin } from '../../csrf.ts'
import { SAFE_HEADERS } from '../../page-headers.ts'
import { PAGE_PATH } from '../../page-plan.ts'
import type { Session } from '../sessions.ts'
import type { Forwards } from './forwards.ts'
import { parseTarget } from './target.ts'

export const FORWARDS_PATH: string = `${PAGE_PATH}forwards`
const MAX_BODY_BYTES = 4096

export function isForwardsPath(path: string): boolean {
  return path === FORWARDS_PATH || path.startsWith(`${FORWARDS_PATH}/`)
}

export async function serveForwards(
  forwards: Forwards,
  exchange: Exchange,
  session: Session | undefined,
): Promise<void> {
  if (session === undefined) return refuse(exchange, 401, 'There is no session')
  const problem = isFromOtherOrigin(exchange, 'http')
    ? 'The request must come from a page of this console'
    : cookieProblem(exchange, 'http')
  if (problem !== undefined) return refuse(exchange, 403, problem)
  const [path = ''] = exchange.path.split('?')
  const id = path.slice(FORWARDS_PATH.length + 1)
  if (id === '') return serveAll(forwards, exchange, session)
  if (exchange.method !== 'DELETE') return refuse(exchange, 405, 'The method is not supported')
  if (!forwards.stop(session, id)) return refuse(exchange, 404, 'There is no such forward')
  exchange.respond(204, ['Cache-Control', 'no-store', ...SAFE_HEADERS])
}

async function serveAll(forwards: Forwards, exchange: Exchange, session: Session): Promise<void> {
  if (exchange.method === 'GET') return sendJson(exchange, 200, { items: forwards.list(session) })
  if (exchange.method !== 'POST') return refuse(exchange, 405, 'The method is not supported')
  const to = parseTarget(await bodyOf(exchange))
  if (to === undefined) return refuse(exchange, 400, 'The request must name a pod or a Service, and a port')
  const view = await forwards.open(session, to)
  if (view === undefined) return refuse(exchange, 429, 'There are too many forwards: stop one of them')
  sendJson(exchange, 201, view)
}

async function bodyOf(exchange: Exchange): Promise<unknown> {
  try {
    return JSON.parse((await exchange.readBody(MAX_BODY_BYTES)).toString()) as unknown
  } catch {
    return undefined
  }
}

function refuse(exchange: Exchange, code: number, message: string): void {
  sendJson(exchange, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, message })
}

function sendJson(exchange: Exchange, status: number, body: object): void {
  const headers = ['Content-Type', 'application/json', 'Cache-Control', 'no-store', ...SAFE_HEADERS]
  exchange.respond(status, headers, Buffer.from(`${JSON.stringify(body)}\n`))
}
