/**
 * Member: one etcd server as we reach it: its connection, and whether it is alive. A server that is stopped or cut off
 * does not close its connections, and HTTP/2 pings are allowed only every 5 s (etcd's --grpc-keepalive-min-time), so a
 * member that owes us answers and is silent is asked for its status, which needs neither leader nor disk.
 */
import type { Clock } from '#lib/clock.ts'
import { createGrpcClient, type BidiCall, type CallOptions, type GrpcClient } from '#lib/grpc/client.ts'
import type { GrpcTarget } from '#lib/grpc/connection.ts'
import type { Method } from '#lib/grpc/method.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import type { Random } from '#lib/random.ts'

import { isAnswer, UnsentError } from './errors.ts'
import { STATUS_OF_MEMBER, type StatusResponse } from './messages.ts'

export interface MemberOptions {
  readonly target: GrpcTarget
  readonly clock: Clock
  readonly random: Random
  /** A member that owes an answer is asked for its status when it has been silent for this long... */
  readonly quietMs: number
  /** ...and is given up when it does not answer that within this. */
  readonly probeMs: number
}

/** Answers of several hundred objects, or of one of the largest, and then some. */
const MAX_RECEIVE_BYTES = 64 << 20
/** A member that is there answers within milliseconds; one that is not is tried again often, as it costs little. */
const CONNECT_TIMEOUT_MS = 2000
const BACKOFF = { baseMs: 50, factor: 2, capMs: 500, jitter: 0.2 }
/** What has arrived while our own event loop stood still is read before a member is called dead. */
const GRACE_MS = 50

export class Member {
  readonly #options: MemberOptions
  #client: GrpcClient
  /** Calls that wait for an answer, and watches. */
  #open = 0
  #heardAtMs = 0
  #isSilent = false
  #isProbing = false
  #isClosed = false

  constructor(options: MemberOptions) {
    this.#options = options
    this.#client = this.#createClient()
  }

  get where(): string {
    const { target } = this.#options
    return 'path' in target ? target.path : `${target.host}:${target.port}`
  }

  /** It did not answer when it was last asked for its status, and has not been heard since. */
  get isSilent(): boolean {
    return this.#isSilent
  }

  /** Rejects with `GrpcError`, `UnsentError` when the call did not leave. */
  async unary<Q, QIn, R, RIn>(method: Method<Q, QIn, R, RIn>, request: QIn, options: CallOptions): Promise<R> {
    const started = this.#options.clock.elapsed()
    if (this.#client.state !== 'ready') await this.#connect(options)
    const spentMs = this.#options.clock.elapsed() - started
    const limit = options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs - spentMs }
    this.#begin()
    try {
      const answer = await this.#client.unary(method, request, { ...options, ...limit })
      this.heard()
      return answer
    } catch (error) {
      if (isAnswer(error)) this.heard()
      throw error
    } finally {
      this.#open--
    }
  }

  /** A call in both directions. Who reads it says `heard` for each answer, and calls `release` when it is over. */
  bidi<Q, QIn, R, RIn>(
    method: Method<Q, QIn, R, RIn>,
    options: CallOptions,
  ): { readonly call: BidiCall<QIn, R>; readonly release: () => void } {
    this.#begin()
    let isReleased = false
    const release = (): void => {
      if (!isReleased) this.#open--
      isReleased = true
    }
    return { call: this.#client.bidi(method, options), release }
  }

  async *serverStream<Q, QIn, R, RIn>(
    method: Method<Q, QIn, R, RIn>,
    request: QIn,
    options: CallOptions,
  ): AsyncGenerator<R, void, undefined> {
    this.#begin()
    try {
      for await (const answer of this.#client.serverStream(method, request, options)) {
        this.heard()
        yield answer
      }
    } finally {
      this.#open--
    }
  }

  async status(timeoutMs: number): Promise<StatusResponse> {
    try {
      return await this.unary(STATUS_OF_MEMBER, {}, { timeoutMs })
    } catch (error) {
      this.#isSilent = !isAnswer(error)
      throw error
    }
  }

  heard(): void {
    this.#heardAtMs = this.#options.clock.elapsed()
    this.#isSilent = false
  }

  /** To be called every now and then: sees to it that a dead member is noticed. */
  check(): void {
    const { clock, quietMs, probeMs } = this.#options
    if (this.#isProbing || this.#open === 0 || clock.elapsed() - this.#heardAtMs < quietMs) return
    if (this.#client.state !== 'ready') return
    this.#isProbing = true
    const before = this.#heardAtMs
    const client = this.#client
    const settle = (): void => {
      this.#isProbing = false
      if (this.#heardAtMs === before && client === this.#client) this.drop()
    }
    this.status(probeMs).then(settle, () => void clock.after(GRACE_MS, settle, { background: true }))
  }

  /** Ends what is open as `unavailable`; the next call connects anew. */
  drop(): void {
    this.#client.close()
    if (!this.#isClosed) this.#client = this.#createClient()
  }

  close(): void {
    this.#isClosed = true
    this.#client.close()
  }

  /** A member that owed nothing could not be heard: its silence begins with the first call. */
  #begin(): void {
    if (this.#open++ === 0) this.#heardAtMs = this.#options.clock.elapsed()
  }

  async #connect({ timeoutMs, signal }: CallOptions): Promise<void> {
    try {
      await this.#client.connect({ ...(timeoutMs !== undefined && { timeoutMs }), ...(signal && { signal }) })
      this.heard()
    } catch (error) {
      if (!(error instanceof GrpcError) || error.code === 'cancelled') throw error
      throw new UnsentError('unavailable', error.message, { cause: error })
    }
  }

  #createClient(): GrpcClient {
    const { target, clock, random } = this.#options
    return createGrpcClient({
      targets: [target],
      clock,
      random,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      backoff: BACKOFF,
      maxReceiveBytes: MAX_RECEIVE_BYTES,
      userAgent: 'hyperkube-etcd',
    })
  }
}
