/**
 * Passes requests on to pods and their answers back, piece by piece. A pod that does not take a connection is passed over as long
 * as nothing of the request was sent to it.
 */
import { onAbort } from '#lib/abort.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient, type HttpRequest } from '#lib/http/client.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { PLAIN_TEXT } from '#lib/http/exchange.ts'
import { HttpError } from '#lib/http/http-error.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { joinSockets } from '#lib/join-sockets.ts'
import { type Random, uuid } from '#lib/random.ts'

import { decide, type Decision, type World } from './decision.ts'
import { ForbiddenAddressError } from './forbidden-addresses.ts'
import { type Passing, requestHeaders, responseHeaders, switching, upgradeHeaders } from './headers.ts'

export interface ProxyOptions {
  readonly clock: Clock
  readonly random: Random
  /** Asked at every request. */
  readonly world: () => World
  /** Under which clients reach this port, and that of TLS. */
  readonly port: number
  readonly httpsPort: number
  /** Finds the address of a backend. Throws ForbiddenAddressError for one to which no backend may lead. */
  readonly resolve: (host: string) => Promise<string>
  /** Called with each request that is refused for its backend's address. */
  readonly refused?: (error: ForbiddenAddressError) => void
  /** Told of every answer. */
  readonly answered?: (status: number) => void
}

export interface Proxy {
  readonly serve: (exchange: Exchange) => Promise<void>
  close(): void
}

type Pass = Extract<Decision, { is: 'pass' }>

export function createProxy(options: ProxyOptions): Proxy {
  const { clock, resolve } = options
  // Pods of a Service with HTTPS have certificates that nobody here knows, as nginx has it too.
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
  /** Of each Service, whose turn it is. */
  readonly turns: Map<string, number>
}

async function serve(exchange: Exchange, tools: Tools): Promise<void> {
  const { authority, path: target, peer } = exchange
  const world = tools.world()
  const { httpsPort } = tools
  const decision = decide(world, { authority, target, isSecure: peer.isEncrypted, httpsPort })
  if (decision.is === 'answer') return say(exchange, decision.status, decision.text, tools)
  if (decision.is === 'redirect') {
    tools.answered?.(308)
    return exchange.respond(308, ['Location', decision.to], '')
  }
  const { port } = tools
  const { trustsForwarded, keepsUnderscores } = world
  const passing = { port, trustsForwarded, keepsUnderscores, requestId: uuid(tools.random).replaceAll('-', '') }
  if (exchange.upgradeProtocol !== undefined) return passUpgrade(exchange, decision, passing, tools)
  return pass(exchange, decision, passing, tools)
}

function say(exchange: Exchange, status: number, text: string, { answered }: Tools): void {
  answered?.(status)
  exchange.respond(status, PLAIN_TEXT, text)
}

async function pass(exchange: Exchange, decision: Pass, passing: Passing, tools: Tools): Promise<void> {
  const body = bodyOf(exchange)
  const headers = requestHeaders(exchange, passing)
  // What was read of a body is not there a second time.
  const { endpoints } = decision
  const tried = body.body === undefined ? endpoints.length : 1
  const outcome = await tryEach(exchange, decision, { ...tools, tried }, (client, url, signal) =>
    client.request({ method: exchange.method, url, path: decision.target, headers, ...body, signal }),
  )
  if (!('value' in outcome)) return outcome.isGone ? undefined : say(exchange, outcome.status, outcome.text, tools)
  tools.answered?.(outcome.value.status)
  await relay(exchange, outcome.value)
}

async function passUpgrade(exchange: Exchange, decision: Pass, passing: Passing, tools: Tools): Promise<void> {
  const headers = upgradeHeaders(exchange, passing)
  const tried = decision.endpoints.length
  const outcome = await tryEach(exchange, decision, { ...tools, tried }, (client, url, signal) =>
    client.upgrade({ method: exchange.method, url, path: decision.target, headers, signal }),
  )
  if (!('value' in outcome)) return outcome.isGone ? undefined : say(exchange, outcome.status, outcome.text, tools)
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

/** One after another while they take no connection; each in its turn. */
async function tryEach<T>(
  exchange: Exchange,
  { endpoints, scheme, service, connectTimeoutMs, readTimeoutMs }: Pass,
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
      const asked = await ask(client, `${scheme}://${endpoint}`, late.signal).then((value) => ({ value }), failureOf)
      if ('value' in asked) return asked
      const isGone = exchange.signal.aborted
      if (asked instanceof ForbiddenAddressError) {
        refused?.(asked)
        return { status: 503, text: '503 Service Temporarily Unavailable\n', isGone }
      }
      if (late.signal.aborted) return { status: 504, text: '504 Gateway Time-out\n', isGone }
      if (asked.code !== 'connect') break
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
    // Half an answer must not look like a whole one.
    out.abort()
  } finally {
    response.discard()
  }
}

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** HTTP/2 does not say whether a body follows; those who usually have one get an empty one passed on. */
function bodyOf(exchange: Exchange): Pick<HttpRequest, 'body'> {
  const { headers, version, method } = exchange
  const length = headers['content-length']
  const isThere =
    length === undefined
      ? headers['transfer-encoding'] !== undefined || (version === '2' && !BODILESS.has(method))
      : Number(length) > 0
  return isThere ? { body: unowned(exchange.body()) } : {}
}

/** A pod that answers before it has read everything must not end the client's connection. */
async function* unowned(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const iterator = source[Symbol.asyncIterator]()
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value
}
