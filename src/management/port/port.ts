/**
 * The HTTPS port of the management server: routes a request, authenticates and authorizes it, calls the handler and
 * writes the audit log. Every error becomes a Status.
 */
import { segmentsOf } from '#component/forwarding/request-path.ts'
import type { Exchange, HeaderList } from '#lib/http/exchange.ts'
import { BodyError } from '#lib/http/exchange.ts'
import type { Logger } from '#lib/log/log.ts'
import { type Random, uuid } from '#lib/random.ts'
import { badRequestError, failure, forbiddenError, internalError, unauthorizedError } from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'

import type { Person } from '../person.ts'
import type { Reply, Route, RouteCall } from './route.ts'

export interface PortOptions {
  readonly routes: readonly Route[]
  /**
   * Undefined: the request has no credentials. Throws StatusError for wrong ones, and for cookies in requests that other
   * sites may have made.
   */
  readonly authenticate: (exchange: Exchange, address: string) => Promise<Person | undefined>
  /** The client's address. */
  readonly addressOf: (exchange: Exchange) => string
  readonly audit: (event: AuditEvent) => void
  /**
   * Called for each request with its route, before its credentials are checked. Resolves to true if it has answered the
   * request, whose audit event another replica writes. Throws StatusError to refuse the request.
   */
  readonly intercept?: (request: InterceptedRequest) => Promise<boolean>
  /**
   * Called when a request begins; what it returns is called when the request is over. Status 0: another
   * replica has answered.
   */
  readonly observe?: (exchange: Exchange) => (route: Route | undefined, status: number) => void
  /** The id of the request in the audit log. Default: a new one. */
  readonly auditIdOf?: (exchange: Exchange) => string | undefined
  readonly random: Random
  readonly log: Logger
}

export interface InterceptedRequest {
  readonly exchange: Exchange
  readonly route: Pick<Route, 'method' | 'path' | 'access'>
  readonly address: string
  readonly auditId: string
}

/** One request, after its response. */
export interface AuditEvent {
  readonly auditId: string
  readonly method: string
  /** Without the query, which may have secrets. Routes of agents have secrets in the path: for these it is the route. */
  readonly path: string
  readonly route: string
  readonly user: string | undefined
  readonly token: string | undefined
  readonly address: string
  readonly userAgent: string
  readonly cluster: string | undefined
  /** The user that `user` impersonated in the cluster. */
  readonly impersonated?: string
  readonly status: number
}

const MAX_BODY_BYTES = 64 << 10

interface Match {
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
  readonly rest: string
}

export function createPort(options: PortOptions): (exchange: Exchange) => Promise<void> {
  const table = tableOf(options.routes)
  const { intercept = () => Promise.resolve(false), observe = () => () => undefined } = options
  return async (exchange) => {
    const auditId = options.auditIdOf?.(exchange) ?? uuid(options.random)
    const address = options.addressOf(exchange)
    const observed = observe(exchange)
    let match: Match | undefined
    let person: Person | undefined
    let status = 500
    let impersonated: string | undefined
    let isPassedOn = false
    try {
      match = find(table, exchange)
      const { route } = match
      isPassedOn = await intercept({ exchange, route, address, auditId })
      if (isPassedOn) return
      if (route.access === 'person') {
        person = await options.authenticate(exchange, address)
        admit(exchange, match, person)
      }
      const call = callOf(exchange, { match, person, address, auditId })
      const reply = await route.serve(call)
      if ('served' in reply) ({ served: status, impersonated } = reply)
      else {
        ;({ status } = reply)
        send(exchange, reply, auditId)
      }
    } catch (error) {
      const known = asStatus(error)
      if (known.status.code === 500)
        options.log.error(error, 'Failed to serve a request', { path: loggedPath(exchange, match) })
      status = known.status.code ?? 500
      if (exchange.isAnswered) exchange.fail()
      else send(exchange, { status, headers: retryAfter(known), body: known.status }, auditId)
    } finally {
      const event = eventOf(exchange, { match, person, address, auditId, status })
      if (!isPassedOn) options.audit(impersonated === undefined ? event : { ...event, impersonated })
      observed(match?.route, isPassedOn ? 0 : status)
    }
  }
}

/** Routes in order by the first segment of their paths, which is never a parameter. */
type Table = ReadonlyMap<string, readonly { readonly route: Route; readonly pattern: readonly string[] }[]>

function tableOf(routes: readonly Route[]): Table {
  const rows = routes.map((route) => ({ route, pattern: route.path.split('/').slice(1) }))
  const open = rows.find(({ pattern: [first = ''] }) => first.startsWith(':') || first === '*')
  if (open !== undefined) throw new Error(`The first segment of a route is not fixed: ${open.route.path}`)
  return Map.groupBy(rows, ({ pattern: [first = ''] }) => first)
}

function find(table: Table, exchange: Exchange): Match {
  const path = pathOf(exchange)
  const segments = segmentsOf(path)
  if ('refused' in segments) throw badRequestError(segments.refused)
  let isOtherMethod = false
  for (const { route, pattern } of table.get(segments[0] ?? '') ?? []) {
    const params = paramsOf(pattern, segments)
    if (params === undefined) continue
    if (route.method !== '*' && route.method !== exchange.method) {
      isOtherMethod = true
      continue
    }
    return { route, params, rest: restOf(exchange.path, pattern.length - 1) }
  }
  if (isOtherMethod) throw failure({ code: 405, reason: 'MethodNotAllowed', message: 'the method is not supported' })
  throw failure({ code: 404, reason: 'NotFound', message: 'the server could not find the requested resource' })
}

function paramsOf(pattern: readonly string[], segments: readonly string[]): Record<string, string> | undefined {
  const isOpen = pattern.at(-1) === '*'
  const fixed = isOpen ? pattern.length - 1 : pattern.length
  if (isOpen ? segments.length < fixed : segments.length !== fixed) return undefined
  const params: Record<string, string> = {}
  for (let at = 0; at < fixed; at++) {
    const [part = '', segment = ''] = [pattern[at], segments[at]]
    if (!part.startsWith(':')) {
      if (part !== segment) return undefined
    } else if (segment === '') return undefined
    else params[part.slice(1)] = segment
  }
  return params
}

/** The part of the request target behind the first segments, unchanged. */
function restOf(target: string, segments: number): string {
  let at = 0
  for (let many = 0; many < segments; many++) {
    const next = target.indexOf('/', at + 1)
    if (next < 0) return queryOf(target)
    at = next
  }
  return target.slice(at)
}

function queryOf(target: string): string {
  const mark = target.indexOf('?')
  return mark < 0 ? '' : target.slice(mark)
}

function pathOf({ path }: Exchange): string {
  const mark = path.indexOf('?')
  return mark < 0 ? path : path.slice(0, mark)
}

/** Throws StatusError if the person may not use the route. */
function admit(exchange: Exchange, { route, params }: Match, person: Person | undefined): asserts person is Person {
  if (person === undefined) throw unauthorizedError('Unauthorized')
  const { user, token } = person
  if (user.spec.mustChangePassword === true && route.allowsInitialPassword !== true)
    throw refused('the password must be changed first')
  const { cluster } = token.spec
  // Without the parameter the route serves the cluster of the token.
  if (cluster !== undefined && (route.allowsClusterToken !== true || (params['cluster'] ?? cluster) !== cluster))
    throw refused('the token is for one cluster only')
  const isRead = ['GET', 'HEAD', 'OPTIONS'].includes(exchange.method) && exchange.upgradeProtocol === undefined
  if (token.spec.readOnly === true && !isRead) throw refused('the token is read-only')
}

function refused(why: string): StatusError {
  return forbiddenError({ group: '', resource: '' }, '', why)
}

function callOf(
  exchange: Exchange,
  { match, ...more }: Pick<RouteCall, 'person' | 'address' | 'auditId'> & { readonly match: Match },
): RouteCall {
  let query: URLSearchParams | undefined
  return {
    exchange,
    params: match.params,
    rest: match.rest,
    get query() {
      return (query ??= new URLSearchParams(queryOf(exchange.path)))
    },
    ...more,
    readBody: (maxBytes = MAX_BODY_BYTES) => readObject(exchange, maxBytes),
  }
}

async function readObject(exchange: Exchange, maxBytes: number): Promise<Readonly<Record<string, unknown>>> {
  const text = (await exchange.readBody(maxBytes)).toString()
  let value: unknown
  try {
    value = text === '' ? {} : JSON.parse(text)
  } catch {
    throw badRequestError('the body is not valid JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badRequestError('the body is not a JSON object')
  return value as Readonly<Record<string, unknown>>
}

/** Routes may send others. */
const FIXED_HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
}

function send(
  exchange: Exchange,
  { status, headers = [], body = '' }: Exclude<Reply, { served: number }>,
  auditId: string,
): void {
  const isText = typeof body === 'string'
  const type = isText ? 'text/plain; charset=utf-8' : 'application/json'
  const named = new Set(headers.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()))
  const fixed = Object.entries({ ...FIXED_HEADERS, 'Content-Type': type, 'Audit-Id': auditId })
  const own = fixed.filter(([name]) => !named.has(name.toLowerCase())).flat()
  exchange.respond(status, [...own, ...headers], Buffer.from(isText ? body : `${JSON.stringify(body)}\n`))
}

function retryAfter({ status }: StatusError): HeaderList {
  const seconds = status.details?.retryAfterSeconds
  return seconds === undefined ? [] : ['Retry-After', String(seconds)]
}

function asStatus(error: unknown): StatusError {
  if (error instanceof StatusError) return error
  if (error instanceof BodyError) {
    const code = error.code === 'too-large' ? 413 : 408
    return failure({ code, message: error.message })
  }
  return internalError(error as Error)
}

function eventOf(
  exchange: Exchange,
  found: Pick<RouteCall, 'person' | 'address' | 'auditId'> & {
    readonly match: Match | undefined
    readonly status: number
  },
): AuditEvent {
  const { match, person, address, auditId, status } = found
  return {
    auditId,
    method: exchange.method,
    path: loggedPath(exchange, match),
    route: match?.route.path ?? '',
    user: person?.user.metadata.name,
    token: person?.token.metadata.name,
    address,
    userAgent: (exchange.headers['user-agent'] ?? '').slice(0, MAX_AUDIT_PATH),
    cluster: match?.params['cluster'],
    status,
  }
}

/** Paths of agents and log-ins may have secrets. */
function loggedPath(exchange: Exchange, match: Match | undefined): string {
  return match?.route.access === 'person' ? pathOf(exchange).slice(0, MAX_AUDIT_PATH) : (match?.route.path ?? '')
}

const MAX_AUDIT_PATH = 1024
