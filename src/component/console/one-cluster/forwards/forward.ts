/** One forward: a port of this machine that leads to a port of a pod. */
import type { Socket } from 'node:net'

import { type ConnectionObserver, forwardConnection } from '#client/streams/forwarded-connection.ts'
import { onAbort } from '#lib/abort.ts'

import { guardResponse, hasConsoleCookie } from './cookie-guard.ts'
import { type DialerOptions, PodDialer } from './pod-dialer.ts'
import { listenOnLoopback, type LoopbackPort } from './port-listener.ts'
import type { ForwardTarget } from './target.ts'

/** The JSON of a forward. */
export interface ForwardView extends ForwardTarget {
  readonly id: string
  readonly localPort: number
  /** `http://<id>.localhost:<port>/`: another host than that of the console, so browsers do not send its cookie. */
  readonly link: string
  /** The pod that got the last connection. */
  readonly pod?: string
  readonly openedAt: string
  readonly connections: number
  readonly openConnections: number
  readonly sentBytes: number
  readonly receivedBytes: number
  readonly errors: number
  readonly lastError?: string
}

/** Of one forward. */
const MAX_CONNECTIONS = 200
const MAX_ERROR_LETTERS = 500

export class Forward {
  readonly id: string
  readonly #options: DialerOptions
  readonly #dialer: PodDialer
  readonly #sockets = new Set<Socket>()
  readonly #openedAtMs: number
  #port: LoopbackPort | undefined
  #counts = { connections: 0, sentBytes: 0, receivedBytes: 0, errors: 0, lastError: '' }

  constructor(id: string, options: DialerOptions) {
    this.id = id
    this.#options = options
    this.#dialer = new PodDialer(options)
    this.#openedAtMs = options.clock.now()
  }

  /** Rejects if no port can be opened. */
  async open(): Promise<void> {
    this.#port = await listenOnLoopback((socket) => void this.#serve(socket))
    onAbort(this.#options.signal, () => this.#close())
  }

  view(): ForwardView {
    const { connections, sentBytes, receivedBytes, errors, lastError } = this.#counts
    const { pod } = this.#dialer
    const localPort = this.#port?.port ?? 0
    return {
      ...this.#options.to,
      id: this.id,
      localPort,
      link: `http://${this.id}.localhost:${localPort}/`,
      ...(pod !== undefined && { pod }),
      openedAt: new Date(this.#openedAtMs).toISOString(),
      connections,
      openConnections: this.#sockets.size,
      sentBytes,
      receivedBytes,
      errors,
      ...(lastError !== '' && { lastError }),
    }
  }

  #close(): void {
    this.#port?.close()
    for (const socket of this.#sockets) socket.destroy()
    this.#dialer.close()
  }

  async #serve(socket: Socket): Promise<void> {
    socket.on('error', () => undefined)
    if (this.#sockets.size >= MAX_CONNECTIONS || this.#options.signal.aborted) return void socket.destroy()
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    this.#counts.connections++
    const guard = { isRefused: false }
    try {
      const streams = await this.#dialer.connect()
      const failed = await forwardConnection(socket, streams, this.#observer(socket, guard))
      if (failed !== '') this.#fail(failed)
    } catch (error) {
      if (!guard.isRefused && !this.#options.signal.aborted) this.#fail((error as Error).message)
    } finally {
      socket.destroySoon()
    }
  }

  #observer(socket: Socket, guard: { isRefused: boolean }): ConnectionObserver {
    let isFirst = true
    return {
      sending: (bytes) => {
        guard.isRefused = isFirst && hasConsoleCookie(bytes)
        isFirst = false
        if (guard.isRefused) {
          socket.end(guardResponse(this.view().link))
          this.#fail('A request had the cookie of the console: open the link')
          return false
        }
        this.#counts.sentBytes += bytes.length
        return true
      },
      received: (bytes) => (this.#counts.receivedBytes += bytes.length),
    }
  }

  #fail(text: string): void {
    this.#counts.errors++
    this.#counts.lastError = text.slice(0, MAX_ERROR_LETTERS)
  }
}
