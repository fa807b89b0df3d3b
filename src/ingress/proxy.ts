/**
 * Streams requests to pods and responses back. Tries the next pod if a connection fails before any part of the request
 * was sent.
 */
import { onAbort } from '#lib/abort.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient, type HttpRequest } from '#lib/http/client.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { PLAIN_TEXT } from '#lib/http/exchange.ts'
import { HttpError } from '#lib/http/http-error.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { joinSockets } from '#lib/net/join-sockets.ts'
import { type Random, uuid } from '#lib/random.ts'

import { decide, type Decision, type RoutingState } from './decision.ts'
import { ForbiddenAddressError } from './forbidden-addresses.ts'
import { type ForwardingOptions, requestHeaders, responseHeaders, switching, upgradeHeaders } from './headers.ts'

export interface ProxyOptions {
  readonly clock: Clock
  readonly random: Random
  /** Called for every request. */
  readonly routingState: () => RoutingState
  /** The client-facing HTTP and HTTPS ports. */
  readonly port: number
  readonly httpsPort: number
  /** Resolves a backend's address. Throws ForbiddenAddressError for a forbidden one. */
  readonly resolve: (host: string) => Promise<string>
  /** Called for each request that is refused because of its backend's address. */
  readonly refused?: (error: ForbiddenAddressError) => void
  /** Called with the status of every response. */
  readonly answered?: (status: number) => void
}

export interface Proxy {
  readonly serve: (exchange: Exchange) => Promise<void>
  close(): void
}

type PassDecision = Extract<Decision, { is: 'pass' }>

export function createProxy(options: ProxyOptions): Proxy {
  const { clock, resolve } = options
  // HTTPS backends are not verified, as in ingress-nginx.
  const clients = new Map<number, HttpClient>()
  const clientFor = (connectTimeoutMs: number): HttpClient => {
    const known = clients.get(connectTimeoutMs)
    const client =
      known ?? createHttpClient({ clock, connectTimeoutMs, resolve, tls: { insecure: true }, http1Only: true })
    clients.set(connectTimeoutMs, client)
    return client
  }
  const turns = new Map<string, number>()
  return {
    serve: (exchange) => serve(exchange, { ...options, clientFor, turns }),
    close: () => clients.forEach((client) => client.close()),
  }
}

interface Tools extends ProxyOptions {
  readonly clientFor: (connectTimeoutMs: number) => HttpClient
  /** The round-robin position of each Service. */
  readonly turns: Map<string, number>
}

async function serve(exchange: Exchange, tools: Tools): Promise<void> {
  const { authority, path: target, peer } = exchange
  const routingState = tools.routingState()
  const { httpsPort } = tools
  const decision = decide(routingState, { authority, target, isSecure: peer.isEncrypted, httpsPort })
  if (decision.is === 'answer') return respond(exchange, decision.status, decision.text, tools)
  if (decision.is === 'redirect') {
    tools.answered?.(308)
    return exchange.respond(308, ['Location', decision.to], '')
  }
  const { port } = tools
  const { trustsForwarded, keepsUnderscores } = routingState
  const passing = { port, trustsForwarded, keepsUnderscores, requestId: uuid(tools.random).replaceAll('-', '') }
  if (exchange.upgradeProtocol !== undefined) return passUpgrade(exchange, decision, passing, tools)
  return forward(exchange, decision, passing, tools)
}

function respond(exchange: Exchange, status: number, text: string, { answered }: Tools): void {
  answered?.(status)
  exchange.respond(status, PLAIN_TEXT, text)
}

async function forward(
  exchange: Exchange,
  decision: PassDecision,
  passing: ForwardingOptions,
  tools: Tools,
): Promise<void> {
  const body = bodyOf(exchange)
  const headers = requestHeaders(exchange, passing)
  // A consumed body cannot be sent again.
  const { endpoints } = decision
  const tried = body.body === undefined ? endpoints.length : 1
  const outcome = await tryEach(exchange, decision, { ...tools, tried }, (client, url, signal) =>
    client.request({ method: exchange.method, url, path: decision.target, headers, ...body, signal }),
  )
  if (!('value' in outcome)) return outcome.isGone ? undefined : respond(exchange, outcome.status, outcome.text, tools)
  tools.answered?.(outcome.value.status)
  await relay(exchange, outcome.value)
}

async function passUpgrade(
  exchange: Exchange,
  decision: PassDecision,
  passing: ForwardingOptions,
  tools: Tools,
): Promise<void> {
  const headers = upgradeHeaders(exchange, passing)
  const tried = decision.endpoints.length
  const outcome = await tryEach(exchange, decision, { ...tools, tried }, (client, url, signal) =>
    client.upgrade({ method: exchange.method, url, path: decision.target, headers, signal }),
  )
  if (!('value' in outcome)) return outcome.isGone ? undefined : respond(exchange, outcome.status, outcome.text, tools)
  const { value } = outcome
  if (!value.isUpgraded) {
    tools.answered?.(value.response.status)
    return relay(exchange, value.response)
  }
  tools.answered?.(101)
  const { socket, head: early } = exchange.upgrade()
  socket.write(switching(value.headers))
  if (value.head.length > 0) socket.write(value.head)
  if (early.length > 0) value.socket.write(early)
  await joinSockets(socket, value.socket, { clock: tools.clock, signal: new AbortController().signal })
}

type Outcome<T> = { readonly value: T } | { readonly status: number; readonly text: string; readonly isGone: boolean }

/** Round robin; the next endpoint if a connection fails. */
async function tryEach<T>(
  exchange: Exchange,
  { endpoints, scheme, service, connectTimeoutMs, readTimeoutMs }: PassDecision,
  { clock, clientFor, turns, tried, refused }: Tools & { readonly tried: number },
  ask: (client: HttpClient, url: string, signal: AbortSignal) => Promise<T>,
): Promise<Outcome<T>> {
  const client = clientFor(connectTimeoutMs)
  const turn = (turns.get(service) ?? 0) % endpoints.length
  turns.set(service, turn + 1)
  const late = new AbortController()
  const timer = clock.after(readTimeoutMs, () => late.abort(), { background: true })
  const release = onAbort(exchange.signal, () => late.abort())
  try {
    const order = [...endpoints.slice(turn), ...endpoints.slice(0, turn)].slice(0, tried)
    for (const endpoint of order) {
      const outcome = await ask(client, `${scheme}://${endpoint}`, late.signal).then((value) => ({ value }), failureOf)
      if ('value' in outcome) return outcome
      const isGone = exchange.signal.aborted
      if (outcome instanceof ForbiddenAddressError) {
        refused?.(outcome)
        return { status: 503, text: '503 Service Temporarily Unavailable\n', isGone }
      }
      if (late.signal.aborted) return { status: 504, text: '504 Gateway Time-out\n', isGone }
      if (outcome.code !== 'connect') break
    }
    return { status: 502, text: '502 Bad Gateway\n', isGone: exchange.signal.aborted }
  } finally {
    timer.cancel()
    release()
  }
}

function failureOf(error: unknown): HttpError {
  if (error instanceof HttpError) return error
  throw error
}

async function relay(exchange: Exchange, response: HttpResponse): Promise<void> {
  const out = exchange.stream(response.status, responseHeaders(response.headers))
  out.onClose(() => response.discard())
  try {
    for await (const piece of response.body) {
      if (out.isClosed) break
      if (!out.write(piece)) await out.drained()
    }
    out.end()
  } catch {
    // Aborts, so that a truncated response does not look complete.
    out.abort()
  } finally {
    response.discard()
  }
}

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** HTTP/2 does not announce a body; methods that usually have one get an empty body. */
function bodyOf(exchange: Exchange): Pick<HttpRequest, 'body'> {
  const { headers, version, method } = exchange
  const length = headers['content-length']
  const isThere =
    length === undefined
      ? headers['transfer-encoding'] !== undefined || (version === '2' && !BODILESS.has(method))
      : Number(length) > 0
  return isThere ? { body: unowned(exchange.body()) } : {}
}

/** A backend that responds before it has read the body must not close the client's connection. */
async function* unowned(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const iterator = source[Symbol.asyncIterator]()
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value
}
