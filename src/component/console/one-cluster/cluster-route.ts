/**
 * Forwards `/k8s/clusters/local/…` of a session to the API server, with the identity of the console. The browser's
 * cookies and all headers that claim an identity stay here.
 */
import type { Clock } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import type { Logger } from '#lib/log/log.ts'
import {
  badRequestError,
  failure,
  forbiddenError,
  serviceUnavailableError,
  tooManyRequestsError,
  unauthorizedError,
} from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'

import { isReadableAs, isWithheldFromClusters, responseFilter } from '../../forwarding/cluster-headers.ts'
import { forward } from '../../forwarding/forward.ts'
import { refusalOfRest } from '../../forwarding/request-path.ts'
import { tableWatch } from '../../forwarding/table-watch.ts'
import { cookieProblem, isFromOtherOrigin } from '../csrf.ts'
import { SAFE_HEADERS } from '../page-headers.ts'
import type { Session, Sessions } from './sessions.ts'

/** The API server, with the credentials of the console. */
export interface ConsoleTarget {
  readonly client: Pick<HttpClient, 'request' | 'upgrade'>
  /** With the path of the API server, if it has one. */
  readonly server: string
}

interface ClusterRoute {
  readonly clock: Clock
  readonly log: Logger
  readonly target: ConsoleTarget
  readonly sessions: Sessions
}

export const CLUSTER_NAME = 'local'
const PREFIX = `/k8s/clusters/${CLUSTER_NAME}`
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const RETRY_SECONDS = 5

/** True for a path of a cluster, known or not. */
export function isClusterPath(path: string): boolean {
  return path === '/k8s' || path.startsWith('/k8s/')
}

export async function serveCluster(
  route: ClusterRoute,
  exchange: Exchange,
  session: Session | undefined,
): Promise<void> {
  try {
    const known = admit(exchange, session)
    const served = await route.sessions.during(known, (signal) => passOn(route, exchange, signal))
    if (served === undefined) throw tooManyRequestsError('the session has too many requests under way', RETRY_SECONDS)
  } catch (error) {
    if (!(error instanceof StatusError) || exchange.isAnswered) throw error
    sendStatus(exchange, error)
  }
}

/** Throws StatusError. */
function admit(exchange: Exchange, session: Session | undefined): Session {
  if (session === undefined) throw unauthorizedError('Unauthorized')
  const problem = isFromOtherOrigin(exchange, 'http') ? FOREIGN : cookieProblem(exchange, 'http')
  if (problem !== undefined) throw refused(problem)
  if (!isReadableAs(exchange.headers['sec-fetch-dest'])) throw refused('pages take no scripts or styles from clusters')
  if (!METHODS.has(exchange.method))
    throw failure({ code: 405, reason: 'MethodNotAllowed', message: 'the method is not supported' })
  return session
}

const FOREIGN = 'the request must come from a page of this console'

function refused(why: string): StatusError {
  return forbiddenError({ group: '', resource: '' }, '', why)
}

/** Throws StatusError. */
async function passOn({ clock, log, target }: ClusterRoute, exchange: Exchange, signal: AbortSignal): Promise<number> {
  if (!exchange.path.startsWith(`${PREFIX}/`))
    throw failure({ code: 404, reason: 'NotFound', message: 'there is no such cluster' })
  const rest = exchange.path.slice(PREFIX.length)
  const refusal = refusalOfRest(rest)
  if (refusal !== undefined) throw badRequestError(refusal)
  const { origin, host, pathname } = new URL(target.server)
  const base = pathname.replace(/\/$/, '')
  const { path, headers } = tableWatch(exchange, base + rest)
  const to = { client: target.client, clock, url: origin, path, headers: { host, ...headers }, signal }
  const filterResponse = responseFilter({ cluster: CLUSTER_NAME, path, base, origin })
  try {
    return await forward(exchange, { ...to, isWithheld: isWithheldFromClusters, filterResponse })
  } catch (error) {
    if (exchange.isAnswered || exchange.signal.aborted) throw error
    log.info('Failed to reach the API server for the console', { err: (error as Error).message })
    throw serviceUnavailableError(`the API server cannot be reached: ${(error as Error).message}`)
  }
}

function sendStatus(exchange: Exchange, { status }: StatusError): void {
  const seconds = status.details?.retryAfterSeconds
  const retry = seconds === undefined ? [] : ['Retry-After', String(seconds)]
  const headers = ['Content-Type', 'application/json', 'Cache-Control', 'no-store', ...retry, ...SAFE_HEADERS]
  exchange.respond(status.code ?? 500, headers, Buffer.from(`${JSON.stringify(status)}\n`))
}
