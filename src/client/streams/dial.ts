/**
 * Streams to a pod through the API server: by WebSocket where the server and what is between us can, else by SPDY, as
 * upstream's client falls back. What the server says when it refuses both is thrown in upstream's words.
 */
import type { Clock } from '#lib/clock.ts'
import { parseJson } from '#lib/json.ts'
import { SpdyConnection } from '#lib/spdy/connection.ts'
import { connectWebSocket, type WebSocketConnection, WebSocketError } from '#lib/websocket.ts'

import type { Connection } from '../connection.ts'

export interface StreamAsk {
  readonly connection: Connection
  readonly clock: Clock
  readonly userAgent: string
  /** With its query. */
  readonly path: string
  readonly signal: AbortSignal
  /** Do not try WebSocket: for servers, or people, who know better. */
  readonly spdyOnly?: boolean
}

/** What is between us and the server must not take a quiet connection for dead; SPDY's pings are upstream's. */
const WEBSOCKET_PING_MS = 30_000
const SPDY_PING_MS = 5000

const MAX_ERROR_BYTES = 1 << 20

/** Undefined when the server does not switch to WebSocket, so that SPDY is to be tried. Throws WebSocketError. */
export async function dialWebSocket(
  { connection, clock, userAgent, path, signal, spdyOnly }: StreamAsk,
  protocol: string,
): Promise<WebSocketConnection | undefined> {
  if (spdyOnly === true) return undefined
  const { headers, tls } = await connection.identity()
  const url = (connection.server.replace(/\/$/, '') + path).replace(/^http/, 'ws')
  const options = { url, tls, clock, signal, protocols: [protocol], pingIntervalMs: WEBSOCKET_PING_MS }
  try {
    return await connectWebSocket({ ...options, headers: { ...headers, 'user-agent': userAgent } })
  } catch (error) {
    // An answer, whatever it says: the server, or a proxy before it, is there and knows no WebSocket here.
    if (error instanceof WebSocketError && error.status > 0) return undefined
    throw error
  }
}

export interface SpdyDialed {
  readonly spdy: SpdyConnection
  /** The protocol that the server chose; empty when it said none. */
  readonly protocol: string
}

/** Throws Error with the message that the server answered. */
export async function dialSpdy(ask: StreamAsk, protocols: readonly string[]): Promise<SpdyDialed> {
  const { connection, clock, userAgent, path, signal } = ask
  const headers = { upgrade: 'SPDY/3.1', 'x-stream-protocol-version': protocols, 'user-agent': userAgent }
  const url = connection.server.replace(/\/$/, '') + path
  const result = await connection.upgrade({ method: 'POST', url, headers, signal })
  if (!result.isUpgraded) {
    const said = await result.response.text(MAX_ERROR_BYTES).catch(() => 'unable to read error from server response')
    throw refusal(said)
  }
  const { socket, head } = result
  const protocol = [result.headers['x-stream-protocol-version'] ?? []].flat()[0]?.trim() ?? ''
  const spdy = new SpdyConnection(socket, { clock, role: 'client', head, pingIntervalMs: SPDY_PING_MS })
  return { spdy, protocol }
}

/** As upstream's client says it since v1.36, whatever kind of answer it was. */
function refusal(said: string): Error {
  return new Error(`unable to upgrade connection: ${messageIn(said) || 'empty server response'}`)
}

function messageIn(said: string): string {
  try {
    const { message, error } = (parseJson(said) ?? {}) as { readonly message?: unknown; readonly error?: unknown }
    const texts = [message, error].map((text) => (typeof text === 'string' ? text.trim() : ''))
    return texts.find((text) => text !== '') ?? said.trim()
  } catch {
    return said.trim()
  }
}
