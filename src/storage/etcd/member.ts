/**
 * Member: the connection to one etcd server, with a check that the server is alive. A server that owes answers and
 * stays silent is probed for its status.
 */
import { Maintenance, type StatusResponse } from '#apis/wire/etcd.ts'
import type { Clock } from '#lib/clock.ts'
import { createGrpcClient, type BidiCall, type CallOptions, type GrpcClient } from '#lib/grpc/client.ts'
import type { GrpcTarget } from '#lib/grpc/connection.ts'
import type { Method } from '#lib/grpc/method.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import type { Random } from '#lib/random.ts'

import { isAnswer, UnsentError } from './errors.ts'

export interface MemberOptions {
  readonly target: GrpcTarget
  readonly clock: Clock
  readonly random: Random
  /** The silence of a member that owes an answer, before it is probed... */
  readonly quietMs: number
  /** ...and the time for answering the probe. */
  readonly probeMs: number
}

/** Answers of several hundred objects, or of one of the largest, and more. */
const MAX_RECEIVE_BYTES = 64 << 20
/** A live member answers within milliseconds; a dead one is retried often, as it costs little. */
const CONNECT_TIMEOUT_MS = 2000
const BACKOFF = { baseMs: 50, factor: 2, capMs: 500, jitter: 0.2 }
/** Data that arrived while our own event loop was blocked is read before a member counts as dead. */
const GRACE_MS = 50

export class Member {
  readonly #options: MemberOptions
  #client: GrpcClient
  /** Calls that wait for an answer, and watches. */
  #open = 0
  #answeredAtMs = 0
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

  /** It did not answer the last probe and nothing since. */
  get isSilent(): boolean {
    return this.#isSilent
  }

  /** Rejects with `GrpcError`, or `UnsentError` if the call did not leave. */
  async unary<Q, QIn, R, RIn>(method: Method<Q, QIn, R, RIn>, request: QIn, options: CallOptions): Promise<R> {
    const started = this.#options.clock.elapsed()
    if (this.#client.state !== 'ready') await this.#connect(options)
    const spentMs = this.#options.clock.elapsed() - started
    const limit = options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs - spentMs }
    this.#begin()
    try {
      const answer = await this.#client.unary(method, request, { ...options, ...limit })
      this.noteAnswer()
      return answer
    } catch (error) {
      if (isAnswer(error)) this.noteAnswer()
      throw error
    } finally {
      this.#open--
    }
  }

  /** A bidirectional call. Its reader calls `noteAnswer` for each answer, and `release` at the end. */
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
        this.noteAnswer()
        yield answer
      }
    } finally {
      this.#open--
    }
  }

  async status(timeoutMs: number): Promise<StatusResponse> {
    try {
      return await this.unary(Maintenance.status, {}, { timeoutMs })
    } catch (error) {
      this.#isSilent = !isAnswer(error)
      throw error
    }
  }

  noteAnswer(): void {
    this.#answeredAtMs = this.#options.clock.elapsed()
    this.#isSilent = false
  }

  /** Must be called periodically: detects a dead member. */
  check(): void {
    const { clock, quietMs, probeMs } = this.#options
    if (this.#isProbing || this.#open === 0 || clock.elapsed() - this.#answeredAtMs < quietMs) return
    if (this.#client.state !== 'ready') return
    this.#isProbing = true
    const before = this.#answeredAtMs
    const client = this.#client
    const settle = (): void => {
      this.#isProbing = false
      if (this.#answeredAtMs === before && client === this.#client) this.drop()
    }
    this.status(probeMs).then(settle, () => void clock.after(GRACE_MS, settle, { background: true }))
  }

  /** Ends open calls as `unavailable`; the next call connects again. */
  drop(): void {
    this.#client.close()
    if (!this.#isClosed) this.#client = this.#createClient()
  }

  close(): void {
    this.#isClosed = true
    this.#client.close()
  }

  /** A member that owes nothing is silent anyway: its silence starts with the first call. */
  #begin(): void {
    if (this.#open++ === 0) this.#answeredAtMs = this.#options.clock.elapsed()
  }

  async #connect({ timeoutMs, signal }: CallOptions): Promise<void> {
    try {
      await this.#client.connect({ ...(timeoutMs !== undefined && { timeoutMs }), ...(signal && { signal }) })
      this.noteAnswer()
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
