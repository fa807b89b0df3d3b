/**
 * Forwards a request to another server and its response to the client, with backpressure in both directions. Upgrades
 * (WebSocket, SPDY) are copied byte for byte after the other server has agreed.
 */
import type { IncomingHttpHeaders } from 'node:http'

import { onAbort } from '#lib/abort.ts'
import type { Clock } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { joinSockets } from '#lib/net/join-sockets.ts'

import { bodyOf } from './body.ts'
import { type RequestHeaders, headerList, requestHeaders, responseHeaders, upgradeHeaders } from './headers.ts'

export interface ForwardTarget {
  readonly clock: Clock
  readonly client: Pick<HttpClient, 'request' | 'upgrade'>
  /** Scheme, host and port. */
  readonly url: string
  /** Path and query exactly as they are to be sent. */
  readonly path: string
  /** Added to the forwardable headers of the client: identity and credentials. */
  readonly headers: RequestHeaders
  /** Cuts the request off, also while its response is under way. */
  readonly signal?: AbortSignal
  /** Headers of the client, by lower-case name, that stay here in addition to those that every proxy drops. */
  readonly isWithheld?: (name: string) => boolean
  /** The headers of the response that the client gets. Those of the handshake of an upgrade are added. */
  readonly filterResponse?: (headers: IncomingHttpHeaders) => IncomingHttpHeaders
}

/**
 * Resolves with the status when the client has the whole response. Rejects before anything is sent if the other server
 * cannot be reached; later failures break the response off.
 */
export async function forward(exchange: Exchange, target: ForwardTarget): Promise<number> {
  const [signal, release] = eitherOf(exchange.signal, target.signal)
  try {
    if (exchange.upgradeProtocol !== undefined) return await forwardUpgrade(exchange, target, signal)
    const { client, url, path } = target
    const headers = Object.assign(requestHeaders(exchange, target.isWithheld), target.headers)
    const response = await client.request({ method: exchange.method, url, path, headers, ...bodyOf(exchange), signal })
    return await pour(response, { exchange, target, signal })
  } finally {
    release()
  }
}

/** Much cheaper than `AbortSignal.any`, which keeps both until they are garbage. */
function eitherOf(one: AbortSignal, other: AbortSignal | undefined): [signal: AbortSignal, release: () => void] {
  if (other === undefined) return [one, () => undefined]
  const either = new AbortController()
  const unhook = [one, other].map((signal) => onAbort(signal, () => either.abort(signal.reason)))
  return [either.signal, () => unhook.forEach((release) => release())]
}

async function forwardUpgrade(exchange: Exchange, target: ForwardTarget, signal: AbortSignal): Promise<number> {
  const { client, url, path, clock, headers: added, filterResponse = (all) => all } = target
  // The other server would wait for a body, which the client sends only after the upgrade.
  const { 'content-length': _length, ...sent } = upgradeHeaders(exchange, target.isWithheld)
  const headers = { ...sent, ...added }
  const result = await client.upgrade({ method: exchange.method, url, path, headers, signal })
  // The other server refused to switch. Its connection must not be used by the client: CVE-2018-1002105.
  if (!result.isUpgraded) return pour(result.response, { exchange, target, signal })
  const answer = headerList({ ...filterResponse(result.headers), ...handshakeOf(result.headers) })
  const { socket: peer, head: early } = exchange.upgrade(answer)
  if (result.head.length > 0) peer.write(result.head)
  if (early.length > 0) result.socket.write(early)
  await joinSockets(peer, result.socket, { clock, signal })
  return 101
}

const HANDSHAKE = /^(?:connection|upgrade|sec-websocket-(?:accept|extensions|protocol|version))$/

function handshakeOf(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => HANDSHAKE.test(name)))
}

interface Pouring {
  readonly exchange: Exchange
  readonly target: ForwardTarget
  readonly signal: AbortSignal
}

async function pour(response: HttpResponse, { exchange, target, signal }: Pouring): Promise<number> {
  const { filterResponse = (all) => all } = target
  const release = onAbort(signal, () => response.discard())
  const out = exchange.stream(response.status, responseHeaders(filterResponse(response.headers)))
  out.bePatient()
  try {
    for await (const piece of response.body) {
      if (!out.write(piece)) await out.drained()
      if (out.isClosed) break
    }
    if (signal.aborted) out.abort()
    else out.end()
  } catch {
    // A truncated response must not look complete.
    out.abort()
  } finally {
    release()
    response.discard()
  }
  return response.status
}
