/**
 * The connection of a gRPC client: opened on first use, checked by pings, and reopened with backoff. At most one HTTP/2
 * session takes new calls; one that received GOAWAY only finishes its calls.
 */
import type { ClientHttp2Session } from 'node:http2'

import { onAbort } from '../abort.ts'
import type { Backoff, BackoffPolicy } from '../backoff.ts'
import { createBackoff } from '../backoff.ts'
import type { Clock, Timer } from '../clock.ts'
import { type ClientTls, openSocket, type Origin } from '../http/dial.ts'
import type { KeepAlive } from '../http/keepalive.ts'
import { keepAlive } from '../http/keepalive.ts'
import type { Random } from '../random.ts'
import type { Ending } from './ending.ts'
import { GrpcError } from './status.ts'

export type GrpcTarget =
  | { readonly path: string }
  | { readonly host: string; readonly port: number; readonly tls?: ClientTls }

/** `connecting` also while it waits between attempts and a caller waits; `failed` without a waiting caller. */
export type ConnectionState = 'idle' | 'connecting' | 'ready' | 'failed' | 'closed'

export interface ConnectionOptions {
  /** Tried one after the other, starting with the first, until one answers. */
  readonly targets: readonly GrpcTarget[]
  readonly clock: Clock
  readonly random: Random
  /** How long one attempt may take, TLS and HTTP/2 settings included. Default 20 s. */
  readonly connectTimeoutMs?: number
  readonly backoff?: BackoffPolicy
  /** Ping when calls are open and nothing else proves the peer alive. Off unless given: servers punish needless pings. */
  readonly keepalive?: KeepAlive
}

/** gRPC's own figures: 1 s, growing by 1.6, at most 2 minutes. */
const BACKOFF: BackoffPolicy = { baseMs: 1000, factor: 1.6, capMs: 120_000, jitter: 0.2 }

const CONNECT_TIMEOUT_MS = 20_000

/** Bytes a server may send before we acknowledge: HTTP/2's 64 KiB would make every large list wait many times. */
const STREAM_WINDOW_BYTES = 1 << 20
const SESSION_WINDOW_BYTES = 8 << 20

/** A session that takes calls. */
export interface CallSession {
  readonly http2: ClientHttp2Session
  /** The open calls; the opener of a call counts it. */
  openCalls: number
}

interface Waiter {
  readonly waitForReady: boolean
  resolve(session: CallSession): void
  reject(error: GrpcError): void
}

export class Connection {
  readonly #options: ConnectionOptions
  readonly #backoff: Backoff
  #state: ConnectionState = 'idle'
  #session: CallSession | undefined
  /** All sessions that are not closed, also those that finish their last calls. */
  readonly #sessions = new Set<ClientHttp2Session>()
  readonly #waiters = new Set<Waiter>()
  readonly #dialing = new AbortController()
  #retry: Timer | undefined
  #lastFailure: Error | undefined
  #nextTarget = 0

  constructor(options: ConnectionOptions) {
    if (options.targets.length === 0) throw new GrpcError('invalidArgument', 'A connection needs a target')
    this.#options = options
    this.#backoff = createBackoff(options.random, options.backoff ?? BACKOFF)
  }

  get state(): ConnectionState {
    return this.#state
  }

  /**
   * The session to open a call on, connecting if need be. Between two attempts a caller that does not `waitForReady`
   * is refused at once with the reason of the last failure. Rejects with `GrpcError` only, that of `ending` included.
   */
  session(options: { readonly waitForReady: boolean; readonly ending: Ending }): Promise<CallSession> {
    if (this.#session !== undefined) return Promise.resolve(this.#session)
    return new Promise((resolve, reject) => {
      if (this.#state === 'closed') return reject(new GrpcError('unavailable', 'The client has been closed'))
      if (this.#retry !== undefined && !options.waitForReady) return reject(this.#unavailable())
      const release = options.ending.onEnd((error) => {
        this.#waiters.delete(waiter)
        reject(error)
      })
      const waiter: Waiter = {
        waitForReady: options.waitForReady,
        resolve(session) {
          release()
          resolve(session)
        },
        reject(error) {
          release()
          reject(error)
        },
      }
      if (options.ending.error !== undefined) return
      this.#waiters.add(waiter)
      if (this.#state === 'failed') this.#state = 'connecting'
      if (this.#state === 'idle') this.#dial()
    })
  }

  /** Refuses new calls and ends the open ones as `unavailable`. */
  close(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#retry?.cancel()
    this.#dialing.abort()
    this.#session = undefined
    for (const session of this.#sessions) session.destroy()
    this.#settle((waiter) => waiter.reject(new GrpcError('unavailable', 'The client has been closed')))
  }

  #dial(): void {
    this.#state = 'connecting'
    const { targets } = this.#options
    const target = targets[this.#nextTarget % targets.length] as GrpcTarget
    openSession(target, this.#options, this.#dialing.signal).then(
      (session) => this.#connected(session, target),
      (error: unknown) => this.#dialFailed(target, error),
    )
  }

  #connected(http2: ClientHttp2Session, target: GrpcTarget): void {
    if (this.#state === 'closed') return http2.destroy()
    if (http2.closed || http2.destroyed) return this.#dialFailed(target, new Error('The server sent us away at once'))
    const session: CallSession = { http2, openCalls: 0 }
    this.#state = 'ready'
    this.#backoff.reset()
    this.#session = session
    this.#sessions.add(http2)
    // A session that received GOAWAY takes no new calls; the next caller makes another.
    const retire = (): void => {
      if (this.#session !== session) return
      this.#session = undefined
      if (this.#state === 'ready') this.#state = 'idle'
    }
    http2.on('goaway', () => {
      retire()
      http2.close()
    })
    http2.on('close', () => {
      this.#sessions.delete(http2)
      retire()
    })
    const { keepalive, clock } = this.#options
    if (keepalive !== undefined) keepAlive(http2, clock, { ...keepalive, isBusy: () => session.openCalls > 0 })
    this.#settle((waiter) => waiter.resolve(session))
  }

  #dialFailed(target: GrpcTarget, error: unknown): void {
    if (this.#state === 'closed') return
    const where = 'path' in target ? target.path : `${target.host}:${target.port}`
    this.#lastFailure = new Error(`Cannot connect to "${where}": ${messageOf(error)}`, { cause: error })
    this.#nextTarget++
    // Every target is tried once before a caller has to wait.
    if (this.#nextTarget % this.#options.targets.length !== 0) return this.#dial()
    this.#settle((waiter) => waiter.reject(this.#unavailable()), { all: false })
    this.#state = this.#waiters.size > 0 ? 'connecting' : 'failed'
    this.#retry = this.#options.clock.after(this.#backoff.next(), () => this.#retryDue(), { background: true })
  }

  #retryDue(): void {
    this.#retry = undefined
    if (this.#waiters.size > 0) this.#dial()
    else this.#state = 'idle'
  }

  #settle(task: (waiter: Waiter) => void, { all }: { all: boolean } = { all: true }): void {
    for (const waiter of this.#waiters) {
      if (!all && waiter.waitForReady) continue
      this.#waiters.delete(waiter)
      task(waiter)
    }
  }

  #unavailable(): GrpcError {
    return new GrpcError('unavailable', this.#lastFailure?.message ?? 'Not connected', { cause: this.#lastFailure })
  }
}

function messageOf(error: unknown): string {
  // A host with several addresses fails with one error for each of them.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ')
  return error instanceof Error ? error.message : String(error)
}

function originOf(target: GrpcTarget): Origin {
  if ('path' in target) return { isSecure: false, host: 'localhost', port: 0, socketPath: target.path }
  const { host, port, tls } = target
  return { isSecure: tls !== undefined, host, port }
}

/** A session whose server has answered with its settings, so that it is known to speak HTTP/2. */
function openSession(target: GrpcTarget, options: ConnectionOptions, signal: AbortSignal): Promise<ClientHttp2Session> {
  return new Promise((resolve, reject) => {
    const origin = originOf(target)
    const tls = 'tls' in target ? (target.tls ?? {}) : {}
    const socket = openSocket(origin, { tls, alpn: ['h2'] })
    const authority = 'path' in target ? 'localhost' : hostPort(target)
    const session = process
      .getBuiltinModule('node:http2')
      .connect(`${origin.isSecure ? 'https' : 'http'}://${authority}`, {
        createConnection: () => socket,
        settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
        maxSessionMemory: 64,
      })
    const fail = (error: Error): void => {
      finish()
      session.destroy()
      socket.destroy()
      reject(error)
    }
    const closed = (): void => fail(new Error('The server closed the connection'))
    const limitMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS
    const timer = options.clock.after(limitMs, () => fail(new Error(`No answer within ${limitMs} ms`)))
    let release = (): void => undefined
    const finish = (): void => {
      timer.cancel()
      release()
      session.off('close', closed)
      socket.off('close', closed)
    }
    session.on('error', fail)
    session.on('close', closed)
    // Until the handshake is done the session gets no events of its socket.
    socket.on('error', fail)
    socket.on('close', closed)
    session.once('remoteSettings', () => {
      finish()
      session.setLocalWindowSize(SESSION_WINDOW_BYTES)
      resolve(session)
    })
    // Last: the signal may be aborted already.
    release = onAbort(signal, () => fail(new Error('The client has been closed')))
  })
}

function hostPort({ host, port }: { host: string; port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
