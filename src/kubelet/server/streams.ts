/**
 * exec, attach and port-forward: the runtime says where it waits for the streams, and the caller's connection is joined to
 * that one, byte for byte, in whatever protocol both speak. Nothing of what is typed passes through a shell.
 */
import type { Clock } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import { type Exchange, headerValues } from '#lib/http/exchange.ts'
import { joinSockets } from '#lib/join-sockets.ts'

import type { Runtime } from '../cri/runtime.ts'
import { type Answer, textAnswer } from './answer.ts'

export interface StreamContext {
  readonly runtime: Runtime
  /** Speaks HTTP/1.1 to the runtime. */
  readonly http: HttpClient
  readonly clock: Clock
}

/** Where the runtime waits. */
type Opened = Promise<{ readonly url: string }>

export function openExec({ runtime }: StreamContext, containerId: string, query: URLSearchParams): Opened {
  return runtime.exec({ containerId, cmd: query.getAll('command'), ...wishesOf(query) })
}

export function openAttach({ runtime }: StreamContext, containerId: string, query: URLSearchParams): Opened {
  return runtime.attach({ containerId, ...wishesOf(query) })
}

export function openPorts({ runtime }: StreamContext, podSandboxId: string, query: URLSearchParams): Opened {
  const port = query.getAll('port').flatMap((text) => text.split(',').map(Number))
  return runtime.portForward({ podSandboxId, port })
}

function wishesOf(query: URLSearchParams): { stdin: boolean; stdout: boolean; stderr: boolean; tty: boolean } {
  const has = (name: string): boolean => query.get(name) === '1' || query.get(name) === 'true'
  const tty = has('tty')
  // A terminal has one output.
  return { stdin: has('input'), stdout: has('output'), stderr: has('error') && !tty, tty }
}

/** Undefined: what was asked for can be opened. */
export function streamFault(exchange: Exchange, query: URLSearchParams): Answer | undefined {
  const isSomething = ['input', 'output', 'error'].some((name) => query.has(name))
  if (!isSomething) return textAnswer(400, 'you must specify at least 1 of stdin, stdout, stderr')
  return exchange.upgradeProtocol === undefined ? NO_UPGRADE : undefined
}

export const NO_UPGRADE: Answer = textAnswer(500, 'Upgrade request required')

/** What both sides agree on in headers. */
const NEGOTIATION = [
  'x-stream-protocol-version',
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-protocol',
  'sec-websocket-extensions',
]

/** Joins the caller to the runtime; what the runtime answers instead is passed on, and is the last on the connection. */
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
    const said = [response.headers['x-accepted-stream-protocol-versions'] ?? []].flat()
    const list = said.flatMap((name) => ['X-Accepted-Stream-Protocol-Versions', name])
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
