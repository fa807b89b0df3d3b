/**
 * Opens streams to a pod through the API server: over WebSocket, else over SPDY, as client-go falls back. If both fail,
 * throws the server's message in upstream's form.
 */
import type { Clock } from '#lib/clock.ts'
import { connectWebSocket, type WebSocketConnection, WebSocketError } from '#lib/http/websocket.ts'
import { parseJson } from '#lib/json/json.ts'
import { SpdyConnection } from '#lib/spdy/connection.ts'

import type { Connection } from '../connection/connection.ts'

export interface StreamRequest {
  readonly connection: Connection
  readonly clock: Clock
  readonly userAgent: string
  /** Includes the query. */
  readonly path: string
  readonly signal: AbortSignal
  /** Skips WebSocket, for servers without it. */
  readonly spdyOnly?: boolean
}

/** A request for streams by SPDY only. */
export interface SpdyRequest extends Omit<StreamRequest, 'connection' | 'spdyOnly'> {
  readonly connection: Pick<Connection, 'server' | 'upgrade'>
}

/** Keeps proxies from closing an idle connection; client-go pings over SPDY as well. */
const WEBSOCKET_PING_MS = 30_000
const SPDY_PING_MS = 5000

const MAX_ERROR_BYTES = 1 << 20

/** Undefined if the server does not switch to WebSocket; the caller then tries SPDY. Throws WebSocketError. */
export async function dialWebSocket(
  { connection, clock, userAgent, path, signal, spdyOnly }: StreamRequest,
  protocol: string,
): Promise<WebSocketConnection | undefined> {
  if (spdyOnly === true) return undefined
  const { headers, tls } = await connection.identity()
  const url = (connection.server.replace(/\/$/, '') + path).replace(/^http/, 'ws')
  const options = { url, tls, clock, signal, protocols: [protocol], pingIntervalMs: WEBSOCKET_PING_MS }
  try {
    return await connectWebSocket({ ...options, headers: { ...headers, 'user-agent': userAgent } })
  } catch (error) {
    // Any HTTP response means that the server, or a proxy before it, does not support WebSocket here.
    if (error instanceof WebSocketError && error.status > 0) return undefined
    throw error
  }
}

export interface SpdyDialed {
  readonly spdy: SpdyConnection
  /** The protocol that the server chose; empty if it sent none. */
  readonly protocol: string
}

/** Throws Error with the server's message. */
export async function dialSpdy(request: SpdyRequest, protocols: readonly string[]): Promise<SpdyDialed> {
  const { connection, clock, userAgent, path, signal } = request
  const headers = { upgrade: 'SPDY/3.1', 'x-stream-protocol-version': protocols, 'user-agent': userAgent }
  const url = connection.server.replace(/\/$/, '') + path
  const result = await connection.upgrade({ method: 'POST', url, headers, signal })
  if (!result.isUpgraded) {
    const body = await result.response.text(MAX_ERROR_BYTES).catch(() => 'unable to read error from server response')
    throw refusal(body)
  }
  const { socket, head } = result
  const protocol = [result.headers['x-stream-protocol-version'] ?? []].flat()[0]?.trim() ?? ''
  const spdy = new SpdyConnection(socket, { clock, role: 'client', head, pingIntervalMs: SPDY_PING_MS })
  return { spdy, protocol }
}

/** The form of client-go since v1.36, for any kind of response. */
function refusal(body: string): Error {
  return new Error(`unable to upgrade connection: ${messageIn(body) || 'empty server response'}`)
}

function messageIn(body: string): string {
  try {
    const { message, error } = (parseJson(body) ?? {}) as { readonly message?: unknown; readonly error?: unknown }
    const texts = [message, error].map((text) => (typeof text === 'string' ? text.trim() : ''))
    return texts.find((text) => text !== '') ?? body.trim()
  } catch {
    return body.trim()
  }
}
