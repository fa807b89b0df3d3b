/** HTTP/2 connections of the client to one origin. When all streams are in use, the client opens another connection. */
import type { ClientHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'

import type { Clock } from '../clock.ts'
import { HttpError } from './http-error.ts'
import { keepAlive } from './keepalive.ts'

/** A connection with the number of its open requests. */
export interface PooledSession {
  readonly http2: ClientHttp2Session
  openStreams: number
  /** The server's limit of concurrent requests; a conservative guess until its settings arrive. */
  maxStreams: number
}

/** Until the server says otherwise; what most of them say. */
const DEFAULT_MAX_STREAMS = 100

/** As client-go does: a connection that is silent for 30 s is pinged, and given up after 15 s more. */
const KEEP_ALIVE = { intervalMs: 30_000, timeoutMs: 15_000 }

/** Bytes a server may send on one stream, and on all, before we acknowledge. */
const STREAM_WINDOW_BYTES = 1 << 20
const SESSION_WINDOW_BYTES = 8 << 20

/** Gives back the room for a request that `reserve` had set aside. */
export function releaseSession(session: PooledSession): void {
  if (--session.openStreams === 0 && !session.http2.destroyed) session.http2.unref()
}

export class SessionPool {
  readonly #authority: string
  readonly #clock: Clock
  readonly #sessions = new Set<PooledSession>()

  constructor(authority: string, clock: Clock) {
    this.#authority = authority
    this.#clock = clock
  }

  /** Room for one more request on a connection, until it is released; undefined when a new connection is needed. */
  reserve(): PooledSession | undefined {
    for (const session of this.#sessions) {
      if (session.openStreams >= session.maxStreams) continue
      // A connection keeps the process alive only while it has requests.
      if (session.openStreams++ === 0) session.http2.ref()
      return session
    }
    return undefined
  }

  /** Starts a session on a connected socket; resolves when the server's settings have arrived. */
  async add(socket: Socket): Promise<void> {
    const http2 = process.getBuiltinModule('node:http2').connect(this.#authority, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
    })
    const session: PooledSession = { http2, openStreams: 0, maxStreams: DEFAULT_MAX_STREAMS }
    http2.on('error', () => undefined) // Each of its requests receives the error.
    http2.on('remoteSettings', ({ maxConcurrentStreams }) => {
      session.maxStreams = maxConcurrentStreams ?? DEFAULT_MAX_STREAMS
    })
    http2.on('goaway', () => {
      this.#sessions.delete(session)
      http2.close()
    })
    http2.on('close', () => this.#sessions.delete(session))
    await settled(http2)
    if (http2.closed || http2.destroyed) throw new HttpError('connect', 'The server sent us away at once')
    http2.setLocalWindowSize(SESSION_WINDOW_BYTES)
    this.#sessions.add(session)
    keepAlive(http2, this.#clock, { ...KEEP_ALIVE, isBusy: () => session.openStreams > 0 })
  }

  /** New requests need new connections; open ones go on. */
  retire(): void {
    for (const { http2 } of this.#sessions) http2.close()
    this.#sessions.clear()
  }

  destroy(): void {
    for (const { http2 } of this.#sessions) http2.destroy()
    this.#sessions.clear()
  }
}

/** The settings are the first thing a server sends; without them we would open more requests than it takes. */
function settled(http2: ClientHttp2Session): Promise<void> {
  return new Promise((resolve, reject) => {
    const onClose = (): void => reject(new HttpError('connect', 'The server closed the connection at once'))
    http2.once('close', onClose)
    http2.once('remoteSettings', () => {
      http2.off('close', onClose)
      resolve()
    })
  })
}
