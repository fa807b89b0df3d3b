/** HTTP/1.1 requests of the client, with a pool of idle connections. An upgraded connection leaves the pool. */
import type { Agent, ClientRequest, OutgoingHttpHeaders, RequestOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

import type { Origin } from './dial.ts'
import { http } from './node-http.ts'

/** The idle connections kept for one origin, and for how long. Servers keep them for 90 s as well. */
const MAX_IDLE_SOCKETS = 32
const IDLE_TIMEOUT_MS = 85_000

/** An agent whose connections come from `dial`. Its own sockets are never opened by node:http. */
export class DialingAgent extends http.Agent {
  readonly #dial: () => Promise<Socket>
  /** Connected sockets that wait for their first request. */
  readonly #spare: Socket[] = []
  /** A connection being made for the first request. */
  #prepared: Promise<Socket> | undefined

  constructor(dial: () => Promise<Socket>) {
    super({ keepAlive: true, maxFreeSockets: MAX_IDLE_SOCKETS, timeout: IDLE_TIMEOUT_MS, scheduling: 'lifo' })
    this.#dial = dial
  }

  /** Takes over a socket that was connected to find out what the server speaks. */
  adopt(socket: Socket): void {
    this.#spare.push(socket)
  }

  /** Starts the connection for the next request, which receives its errors. */
  prepare(): void {
    this.#prepared ??= this.#dial()
    this.#prepared.catch(() => undefined)
  }

  override createConnection(_options: unknown, onSocket?: (error: Error | null, socket: Duplex) => void): undefined {
    const spare = this.#spare.pop()
    if (spare !== undefined && !spare.destroyed) {
      onSocket?.(null, spare)
      return undefined
    }
    const dialing = this.#prepared ?? this.#dial()
    this.#prepared = undefined
    dialing.then(
      (socket) => onSocket?.(null, socket),
      // Its type wants a socket although there is none when there is an error.
      (error: unknown) => onSocket?.(error as Error, undefined as unknown as Duplex),
    )
    return undefined
  }

  /** Ends idle connections now and others when they are released. */
  retire(): void {
    this.maxFreeSockets = 0
    for (const sockets of Object.values(this.freeSockets)) for (const socket of sockets ?? []) socket.destroy()
    this.#dropUnused()
  }

  override destroy(): void {
    this.#dropUnused()
    super.destroy()
  }

  #dropUnused(): void {
    for (const socket of this.#spare.splice(0)) socket.destroy()
    this.#prepared?.then(
      (socket) => socket.destroy(),
      () => undefined,
    )
    this.#prepared = undefined
  }
}

export interface RequestHead {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
}

function requestOptions(origin: Origin, head: RequestHead): RequestOptions {
  const isDefaultPort = origin.port === (origin.isSecure ? 443 : 80)
  const host = origin.host.includes(':') ? `[${origin.host}]` : origin.host
  // node:http would compare the port with its own default, not with that of https.
  const headers: OutgoingHttpHeaders = { host: isDefaultPort ? host : `${host}:${origin.port}` }
  for (const [name, value] of Object.entries(head.headers))
    headers[name] = typeof value === 'string' ? value : [...value]
  return { host: origin.host, port: origin.port, method: head.method, path: head.path, headers, setHost: false }
}

/** A request over the pool. The caller writes the body and listens. */
export function openHttp1(origin: Origin, head: RequestHead, agent: Agent): ClientRequest {
  return http.request({ ...requestOptions(origin, head), agent })
}

/** A request on a separate connection, which the answer may take over. */
export function openUpgrade(origin: Origin, head: RequestHead, socket: Socket): ClientRequest {
  // Not `agent: false`: that would make an agent, which connects by itself.
  return http.request({ ...requestOptions(origin, head), createConnection: () => socket })
}

/** Whether a failed request had found its connection closed by the server, so that it cannot have been served. */
export function wasStale(request: ClientRequest, error: Error): boolean {
  const { code } = error as NodeJS.ErrnoException
  return request.reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE')
}
