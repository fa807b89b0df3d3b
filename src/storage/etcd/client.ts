/**
 * EtcdClient: sends calls to one member of an etcd cluster, preferably the leader. After a lost connection, calls wait
 * until a member has answered a linearizable read, so that no write goes to a dead member.
 */
import { Auth, KV, type ResponseHeader, type StatusResponse } from '#apis/wire/etcd.ts'
import { abortError, onAbort } from '#lib/abort.ts'
import { createBackoff } from '#lib/backoff.ts'
import { every, sleep, type Clock, type Timer } from '#lib/clock.ts'
import type { BidiCall } from '#lib/grpc/client.ts'
import type { GrpcTarget } from '#lib/grpc/connection.ts'
import type { Metadata, Method } from '#lib/grpc/method.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import { shuffle, type Random } from '#lib/random.ts'

import { StorageError, type Revision } from '../backend.ts'
import { CommitTimes } from '../commit-times.ts'
import { isAnswer, isTokenRefused, classify, toStorageError } from './errors.ts'
import { Member } from './member.ts'

export interface EtcdClientOptions {
  readonly targets: readonly GrpcTarget[]
  readonly clock: Clock
  readonly random: Random
  readonly credentials?: { readonly user: string; readonly password: string }
  /** The timeout of a call, all attempts together. */
  readonly timeoutMs: number
  readonly log: (message: string) => void
}

export interface CallPlan {
  /**
   * `read`: linearizable; retried after any failure. `write`: retried only if it certainly was not executed.
   * `repeatable`: an idempotent change; retried after any failure.
   */
  readonly kind: 'read' | 'write' | 'repeatable'
  readonly signal?: AbortSignal | undefined
  /** Called before a `repeatable` call is retried although it may have been executed. */
  readonly onRepeat?: () => void
}

interface Answer {
  readonly header: ResponseHeader | undefined
}

export interface EtcdStream<Q, R> extends BidiCall<Q, R> {
  readonly member: Member
  /** Must be called when the reader is done with the stream. */
  readonly release: () => void
}

/** The silence of a member that owes an answer, before it is probed. */
const QUIET_MS = 500
/** The time for answering the probe if there are other members: not much more than an election takes. */
const PROBE_MS = 1000
/** The same for an etcd with one member, where giving up on a slow member has no benefit. */
const LONE_PROBE_MS = 5000
const CHECK_EVERY_MS = 250
/** The interval for checking the leader. */
const REVIEW_EVERY_MS = 10_000
/** A read that takes longer than etcd's election timeout may come from a leader that was suspended (etcd #20418). */
const ELECTION_MS = 1000
/**
 * The first and the maximal time for a member to prove that it is part of a working majority. etcd before 3.5 loses a
 * read between the election of a leader and its first commit, and answers no other read for seven seconds; so another
 * member is tried meanwhile.
 */
const FIRST_BARRIER_MS = 400
const BARRIER_MS = 3000
/** The pause between attempts after the second, so that a refusing member is not flooded. */
const AGAIN_MS = 50
const RETRY = { baseMs: 20, factor: 2, capMs: 320, jitter: 0.5 }

/** A member without a leader accepts no linearizable read or write. */
const REQUIRE_LEADER: readonly [string, string] = ['hasleader', 'true']
/** The smallest possible key, which is never stored. */
const NO_KEY = '\0'

export class EtcdClient {
  readonly #options: EtcdClientOptions
  readonly #members: readonly Member[]
  readonly #timers: Timer[]
  readonly #closing = new AbortController()
  /** The member for calls; undefined while it is uncertain. */
  #chosen: Member | undefined
  #finding: Promise<Member> | undefined
  #lastFailure: GrpcError | undefined
  #token: Promise<string> | undefined
  #metadata: Metadata = new Map([REQUIRE_LEADER])
  /** When each revision was seen first. */
  readonly times: CommitTimes = new CommitTimes()
  /** The newest revision of any answer or watch: no later answer may be older. */
  #seen: Revision = 0

  constructor(options: EtcdClientOptions) {
    const { clock, random, targets } = options
    this.#options = options
    const probeMs = targets.length > 1 ? PROBE_MS : LONE_PROBE_MS
    // In random order, so that many clients do not all start with the same member.
    this.#members = shuffle(random, targets).map(
      (target) => new Member({ target, clock, random, quietMs: QUIET_MS, probeMs }),
    )
    this.#timers = [every(clock, CHECK_EVERY_MS, () => this.#members.forEach((member) => member.check()))]
    if (targets.length > 1) this.#timers.push(every(clock, REVIEW_EVERY_MS, () => void this.#review()))
  }

  /** The newest revision of any answer or watch. */
  get seen(): Revision {
    return this.#seen
  }

  /** A watch has shown this revision: no later read may be older. */
  saw(revision: Revision): void {
    if (revision <= this.#seen) return
    this.#seen = revision
    this.times.note(revision, this.#options.clock.now())
  }

  /** Rejects with `StorageError`, or the reason of the signal. */
  async call<Q, QIn, R extends Answer, RIn>(method: Method<Q, QIn, R, RIn>, request: QIn, plan: CallPlan): Promise<R> {
    plan.signal?.throwIfAborted()
    const { clock, timeoutMs } = this.#options
    const deadlineMs = clock.elapsed() + timeoutMs
    const floor = this.#seen
    for (let attempt = 1; ; attempt++) {
      const member = await this.#member(deadlineMs, plan.signal)
      const startedMs = clock.elapsed()
      try {
        const answer = await this.#send(member, { method, request, deadlineMs, signal: plan.signal })
        const isSlow = plan.kind === 'read' && clock.elapsed() - startedMs > ELECTION_MS
        if (isSlow && attempt === 1) continue
        if (this.#accept(answer, floor, plan.kind)) return answer
        this.#doubt(member, new GrpcError('unavailable', `${member.where} answered with an old revision`))
      } catch (error) {
        this.#failed(member, error, plan)
      }
      if (clock.elapsed() >= deadlineMs) throw this.#noAnswer()
      if (attempt > 1) await sleep(clock, AGAIN_MS, plan.signal)
    }
  }

  /** Opens a stream on the current member. The reader handles its errors. */
  async stream<Q, QIn, R, RIn>(method: Method<Q, QIn, R, RIn>, signal: AbortSignal): Promise<EtcdStream<QIn, R>> {
    const member = await this.#member(Infinity, signal)
    await this.#authenticated(member, Infinity)
    const { call, release } = member.bidi(method, { metadata: this.#metadata, signal })
    return { ...call, member, release }
  }

  async serverStream<Q, QIn, R, RIn>(
    method: Method<Q, QIn, R, RIn>,
    request: QIn,
    signal: AbortSignal | undefined,
  ): Promise<AsyncIterable<R>> {
    const deadlineMs = this.#options.clock.elapsed() + this.#options.timeoutMs
    const member = await this.#member(deadlineMs, signal)
    await this.#authenticated(member, deadlineMs)
    return member.serverStream(method, request, { metadata: this.#metadata, ...(signal && { signal }) })
  }

  /** Each member's status, or its error. */
  async statuses(timeoutMs: number): Promise<(StatusResponse | undefined)[]> {
    return Promise.all(this.#members.map((member) => member.status(timeoutMs).catch(() => undefined)))
  }

  /** A stream on this member failed: the next one waits until a working member is found. */
  suspect(member: Member, error: unknown): void {
    if (!(error instanceof GrpcError)) return
    if (isTokenRefused(error)) this.#token = undefined
    else if (classify(error).outcome !== 'final') this.#doubt(member, error)
  }

  /** Ends every open call as `unavailable`. */
  close(): void {
    for (const timer of this.#timers) timer.cancel()
    this.#closing.abort()
    for (const member of this.#members) member.close()
  }

  /** False for an answer that is older than the revision known before the request. */
  #accept(answer: Answer, floor: Revision, kind: CallPlan['kind']): boolean {
    const revision = Number(answer.header?.revision ?? 0)
    if (kind !== 'repeatable' && revision < floor) {
      if (kind === 'read') return false
      throw new StorageError(
        'corrupt',
        `etcd went back from revision ${floor} to ${revision}; if it was restored from a backup, restart this server`,
      )
    }
    this.saw(revision)
    return true
  }

  /** Throws the error for the caller, unless the call may be retried. */
  #failed(member: Member, error: unknown, { kind, signal, onRepeat }: CallPlan): void {
    if (signal?.aborted) throw signal.reason
    if (!(error instanceof GrpcError)) throw error
    const { outcome } = classify(error)
    if (isTokenRefused(error)) this.#token = undefined
    else if (outcome !== 'final') this.#doubt(member, error)
    if (outcome === 'final' || (outcome === 'unknown' && kind === 'write')) {
      throw toStorageError(error, { isWrite: kind !== 'read' })
    }
    if (outcome === 'unknown') onRepeat?.()
  }

  async #send<Q, QIn, R, RIn>(
    member: Member,
    one: {
      readonly method: Method<Q, QIn, R, RIn>
      readonly request: QIn
      readonly deadlineMs: number
      readonly signal: AbortSignal | undefined
    },
  ): Promise<R> {
    if (this.#options.credentials !== undefined) await this.#authenticated(member, one.deadlineMs)
    const timeoutMs = Math.max(1, one.deadlineMs - this.#options.clock.elapsed())
    const { signal } = one
    return member.unary(one.method, one.request, { metadata: this.#metadata, timeoutMs, ...(signal && { signal }) })
  }

  /** Ensures that `#metadata` has a token if there are credentials. */
  async #authenticated(member: Member, deadlineMs: number): Promise<void> {
    const { credentials, clock } = this.#options
    if (credentials === undefined) return
    if (this.#token === undefined) {
      const timeoutMs = Math.min(BARRIER_MS, deadlineMs - clock.elapsed())
      const request = { name: credentials.user, password: credentials.password }
      const token = member.unary(Auth.authenticate, request, { timeoutMs }).then((answer) => answer.token)
      this.#token = token
      token.then(
        (text) => (this.#metadata = new Map([REQUIRE_LEADER, ['token', text]])),
        () => (this.#token = undefined),
      )
    }
    await this.#token
  }

  #doubt(member: Member, failure: GrpcError): void {
    this.#lastFailure = failure
    if (this.#chosen === member) this.#chosen = undefined
  }

  /** The member to send to; waits for one until the deadline. */
  #member(deadlineMs: number, signal: AbortSignal | undefined): Promise<Member> {
    if (this.#chosen !== undefined) return Promise.resolve(this.#chosen)
    this.#finding ??= this.#find().finally(() => (this.#finding = undefined))
    const finding = this.#finding
    const { clock } = this.#options
    return new Promise((resolve, reject) => {
      const timer = deadlineMs === Infinity ? undefined : clock.after(deadlineMs - clock.elapsed(), () => late())
      const release = onAbort(signal, () => {
        timer?.cancel()
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the contract: the signal's own reason
        reject(signal?.reason)
      })
      const late = (): void => {
        release()
        reject(this.#noAnswer())
      }
      finding.then(resolve, reject).finally(() => {
        timer?.cancel()
        release()
      })
    })
  }

  #noAnswer(): StorageError {
    const failure = this.#lastFailure
    const where = this.#members.map((member) => member.where).join(', ')
    const message = `No answer from etcd at ${where}: ${failure?.message ?? 'it is silent'}`
    return new StorageError('unavailable', message, { cause: failure })
  }

  /**
   * Searches until a member has proved that it is part of a working majority: the leader first, after silence another.
   */
  async #find(): Promise<Member> {
    const { clock, random, log } = this.#options
    const backoff = createBackoff(random, RETRY)
    for (let silences = 0; ;) {
      const { leader, others } = await this.#survey()
      const candidates = leader === undefined ? others : [leader, ...this.#others(leader)]
      const member = candidates[silences % candidates.length]
      const patienceMs = Math.min(BARRIER_MS, FIRST_BARRIER_MS * 2 ** silences)
      const startedMs = clock.elapsed()
      if (member !== undefined && (await this.#isWorking(member, patienceMs))) {
        if (backoff.attempts > 0) log(`etcd at ${member.where} answers again`)
        this.#chosen = member
        return member
      }
      if (clock.elapsed() - startedMs >= patienceMs) silences++
      await sleep(clock, backoff.next(), this.#closing.signal)
    }
  }

  #others(leader: Member): readonly Member[] {
    return this.#members.filter((member) => member !== leader && !member.isSilent)
  }

  /**
   * The leader, and other members that answer. Members that were silent last time are not waited for if there are
   * others.
   */
  async #survey(): Promise<{ readonly leader: Member | undefined; readonly others: readonly Member[] }> {
    const others: Member[] = []
    const leader = await new Promise<Member | undefined>((resolve) => {
      const ask = async (member: Member): Promise<void> => {
        try {
          const { header, leader } = await member.status(PROBE_MS)
          if (leader !== 0 && leader === header?.memberId) resolve(member)
          others.push(member)
        } catch (error) {
          // A member that refuses its status is alive all the same.
          if (isAnswer(error)) others.push(member)
          if (error instanceof GrpcError) this.#lastFailure = error
        }
      }
      const isEachSilent = this.#members.every(({ isSilent }) => isSilent)
      const answers = this.#members.map((member) => {
        const isWaitedFor = isEachSilent || !member.isSilent
        const answer = ask(member)
        return isWaitedFor ? answer : Promise.resolve()
      })
      void Promise.all(answers).then(() => resolve(undefined))
    })
    if (this.#closing.signal.aborted) throw abortError(this.#closing.signal)
    return { leader, others }
  }

  async #isWorking(member: Member, timeoutMs: number): Promise<boolean> {
    try {
      const deadlineMs = this.#options.clock.elapsed() + timeoutMs
      const request = { key: NO_KEY, countOnly: true }
      await this.#send(member, { method: KV.range, request, deadlineMs, signal: undefined })
      return true
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error
      this.#lastFailure = error
      if (isTokenRefused(error)) this.#token = undefined
      // The status after a successful read is final.
      return classify(error).outcome === 'final'
    }
  }

  /** Follows a leader elsewhere, before forwarding costs time. */
  async #review(): Promise<void> {
    const before = this.#chosen
    if (before === undefined) return
    // Closed meanwhile: nothing to follow.
    const { leader } = await this.#survey().catch(() => ({ leader: undefined }))
    if (leader === undefined || leader === before || !(await this.#isWorking(leader, FIRST_BARRIER_MS))) return
    if (this.#chosen === before) this.#chosen = leader
  }
}
