/**
 * Serves exec, attach and port-forward: the runtime returns a URL for the streams, and the kubelet joins the client's
 * connection to it.
 */
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import { type Exchange, headerValues } from '#lib/http/exchange.ts'
import { joinSockets } from '#lib/net/join-sockets.ts'

import { type Answer, textAnswer } from './answer.ts'

export interface StreamContext {
  readonly runtime: Runtime
  /** HTTP/1.1 client for the runtime. */
  readonly http: HttpClient
  readonly clock: Clock
}

/** The streaming URL of the runtime. */
type Opened = Promise<{ readonly url: string }>

export function openExec({ runtime }: StreamContext, containerId: string, query: URLSearchParams): Opened {
  return runtime.exec({ containerId, cmd: query.getAll('command'), ...streamOptions(query) })
}

export function openAttach({ runtime }: StreamContext, containerId: string, query: URLSearchParams): Opened {
  return runtime.attach({ containerId, ...streamOptions(query) })
}

export function openPorts({ runtime }: StreamContext, podSandboxId: string, query: URLSearchParams): Opened {
  const port = query.getAll('port').flatMap((text) => text.split(',').map(Number))
  return runtime.portForward({ podSandboxId, port })
}

function streamOptions(query: URLSearchParams): { stdin: boolean; stdout: boolean; stderr: boolean; tty: boolean } {
  const has = (name: string): boolean => query.get(name) === '1' || query.get(name) === 'true'
  const tty = has('tty')
  // A terminal has only one output stream.
  return { stdin: has('input'), stdout: has('output'), stderr: has('error') && !tty, tty }
}

/** Undefined when the request is valid. */
export function streamFault(exchange: Exchange, query: URLSearchParams): Answer | undefined {
  const isSomething = ['input', 'output', 'error'].some((name) => query.has(name))
  if (!isSomething) return textAnswer(400, 'you must specify at least 1 of stdin, stdout, stderr')
  return exchange.upgradeProtocol === undefined ? NO_UPGRADE : undefined
}

export const NO_UPGRADE: Answer = textAnswer(500, 'Upgrade request required')

/** Headers that both sides negotiate. */
const NEGOTIATION = [
  'x-stream-protocol-version',
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-protocol',
  'sec-websocket-extensions',
]

/** Joins the caller to the runtime. If the runtime refuses, its response is forwarded. */
export async function joinRuntime(
  exchange: Exchange,
  { http, clock }: StreamContext,
  where: string,
): Promise<Answer | undefined> {
  const headers: Record<string, string | readonly string[]> = {
    connection: 'Upgrade',
    upgrade: headerValues(exchange, 'upgrade')[0] ?? '',
  }
  for (const name of NEGOTIATION) {
    const values = headerValues(exchange, name)
    if (values.length > 0) headers[name] = values
  }
  const { origin, pathname, search } = new URL(where)
  const result = await http.upgrade({
    method: exchange.method,
    url: origin,
    path: `${pathname}${search}`,
    headers,
    signal: exchange.signal,
  })
  if (!result.isUpgraded) {
    const { response } = result
    const pieces: Buffer[] = []
    for await (const piece of response.body) pieces.push(piece)
    const accepted = [response.headers['x-accepted-stream-protocol-versions'] ?? []].flat()
    const list = accepted.flatMap((name) => ['X-Accepted-Stream-Protocol-Versions', name])
    return { ...textAnswer(response.status, Buffer.concat(pieces).toString()), headers: list }
  }
  const { socket: client, head: early } = exchange.upgrade()
  const lines = Object.entries(result.headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((one) => `${name}: ${one}`),
  )
  client.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`)
  if (result.head.length > 0) client.write(result.head)
  if (early.length > 0) result.socket.write(early)
  await joinSockets(client, result.socket, { clock, signal: NEVER })
  return undefined
}

const NEVER: AbortSignal = new AbortController().signal
