/**
 * Forwards ports by WebSocket to a kubelet that only supports SPDY. The client sends SPDY inside WebSocket messages,
 * and the server unwraps the bytes. Follows upstream's apiserver/pkg/util/proxy/streamtunnel, v1.36.
 */
import type { Duplex } from 'node:stream'

import { requestHeaders } from '#component/forwarding/headers.ts'
import type { Answer, Call } from '#component/requests/call.ts'
import { onAbort } from '#lib/abort.ts'
import type { Clock } from '#lib/clock.ts'
import { drained } from '#lib/drained.ts'
import { acceptWebSocket, offeredProtocols, type WebSocketConnection } from '#lib/http/websocket.ts'
import { failure } from '#meta/status-errors.ts'

import type { ConnectContext } from './context.ts'
import { askUpgrade, type Upgraded, type UpgradeTarget } from './stream-upgrade.ts'

const PREFIX = 'SPDY/3.1+'

function isTunnelProtocol(name: string): boolean {
  return name.startsWith(PREFIX) && name.endsWith('.k8s.io')
}

/** True if one of the offered subprotocols is SPDY inside WebSocket. */
export function isTunnel(offered: readonly string[]): boolean {
  return offered.some(isTunnelProtocol)
}

export async function tunnel(
  call: Call,
  target: UpgradeTarget,
  { clock, count }: Pick<ConnectContext, 'clock' | 'count'>,
): Promise<Answer> {
  const { exchange } = call
  const inner = offeredProtocols(exchange)
    .filter(isTunnelProtocol)
    .map((name) => name.slice(PREFIX.length))
  const kept = Object.entries(requestHeaders(exchange)).filter(([name]) => !name.startsWith('sec-websocket-'))
  const headers = {
    ...Object.fromEntries(kept),
    connection: 'Upgrade',
    upgrade: 'SPDY/3.1',
    'x-stream-protocol-version': inner,
  }
  const outcome = await askUpgrade(call, target, { method: 'POST', headers })
  if (!('isUpgraded' in outcome)) {
    count.tunneled(outcome.status)
    return outcome
  }
  if (!(outcome.headers.upgrade ?? '').toLowerCase().includes('spdy/3.1')) {
    outcome.socket.destroy()
    count.tunneled(500)
    throw failure({ code: 500, message: 'unable to upgrade: missing upgrade headers in response' })
  }
  count.tunneled(101)
  return {
    status: 101,
    drop: () => outcome.socket.destroy(),
    upgrade: (own, signal) => run(outcome, clock, { exchange: own, signal }),
  }
}

async function run(
  { socket, headers, head }: Upgraded,
  clock: Clock,
  { exchange, signal }: { readonly exchange: Call['exchange']; readonly signal: AbortSignal },
): Promise<void> {
  const chosen = [headers['x-stream-protocol-version'] ?? []].flat()[0]?.trim() ?? ''
  const choose = (): string | undefined => (chosen === '' ? undefined : `${PREFIX}${chosen}`)
  let client: WebSocketConnection | undefined
  const release = onAbort(signal, () => {
    socket.destroy()
    client?.destroy()
  })
  try {
    client = await acceptWebSocket(exchange, { clock, choose })
    if (head.length > 0) await client.send(head)
    await Promise.all([inward(client, socket), outward(socket, client)])
  } catch {
    // One side has gone; closes the other.
    client?.destroy()
  } finally {
    socket.destroy()
    release()
  }
}

/** From the client to the kubelet. */
async function inward(client: WebSocketConnection, socket: Duplex): Promise<void> {
  for await (const { data, isBinary } of client) {
    if (!isBinary) throw new Error('The client sent text where bytes belong')
    if (!socket.write(data)) await drained(socket)
  }
  socket.end()
}

/** From the kubelet to the client. */
async function outward(socket: Duplex, client: WebSocketConnection): Promise<void> {
  for await (const bytes of socket) await client.send(bytes as Buffer)
  await client.close()
}
