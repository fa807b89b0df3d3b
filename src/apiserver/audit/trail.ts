/**
 * Collects the audit data of one request and emits an event at each stage. It collects nothing beyond the policy's
 * level.
 */
import type { Authorize, Decision } from '#auth/access.ts'
import type { RequestInfo } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import { type Annotate, type Answer, isWhole, type WholeAnswer } from '#component/requests/call.ts'
import { isLongRunning, requestKindOf } from '#component/requests/inflight.ts'
import type { AuditedRequest, RequestAudit } from '#component/requests/request-filters.ts'
import { attempt } from '#lib/attempt.ts'
import type { Clock } from '#lib/clock.ts'
import { durationText } from '#lib/go/duration.ts'
import { isRefusal, MEDIA_TYPES, negotiateAccept } from '#meta/codec/negotiate.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import { internalError } from '#meta/status-errors.ts'
import type { Status } from '#meta/status.ts'

import { type AuditEvent, type EventSubject, type ObjectReference, subjectText } from './event.ts'
import {
  answeredStatus,
  answerText,
  canonical,
  objectText,
  patchText,
  type SchemaFor,
  textWithoutManagedFields,
} from './objects.ts'
import type { AuditTerms, EvaluatePolicy, Level, Stage } from './policy.ts'
import { sourceIps } from './source-ips.ts'

export interface TrailOptions {
  readonly clock: Clock
  readonly evaluate: EvaluatePolicy
  readonly schemaFor: SchemaFor
  /** Stores an event; false if that failed and the request must not proceed. */
  readonly store: (event: AuditEvent) => boolean | Promise<boolean>
  /** True if it can ever return false. */
  readonly isStrict: boolean
  /** Called once per request with its level. */
  readonly observe: (level: Level) => void
  /** Called for a request that is refused because its event could not be stored. */
  readonly rejected: () => void
}

const MAX_AGENT_LENGTH = 1024
const NO_ANNOTATIONS: ReadonlyMap<string, string> = new Map()
/** Slower requests record their duration. */
const SLOW_MS = 500

export class AuditTrail implements RequestAudit {
  readonly #options: TrailOptions
  readonly #request: AuditedRequest
  readonly #receivedMs: number
  readonly #startMs: number
  /** Undefined until authentication has succeeded or failed. */
  #terms: AuditTerms | undefined
  #user: User | undefined
  #subject: EventSubject | undefined
  /** The text of `#subject`; undefined when it must be made again. */
  #subjectText: string | undefined
  #responseStatus: Partial<Status> | undefined
  #requestObject: string | undefined
  #responseObject: string | undefined
  readonly #annotations = new Map<string, string>()
  /** True if an event of the request was stored. */
  #isStored = false
  /** No further events follow. */
  #isOver = false

  constructor(options: TrailOptions, request: AuditedRequest) {
    this.#options = options
    this.#request = request
    this.#receivedMs = options.clock.now()
    this.#startMs = options.clock.elapsed()
  }

  /** True if the level requires collecting data. */
  get isOn(): boolean {
    return this.#terms !== undefined && this.#terms.level !== 'None'
  }

  /**
   * Called after authentication. Resolves with the trail if there is anything to collect. Throws StatusError 500 if the
   * event must be stored and cannot be.
   */
  async received(user: User): Promise<this | undefined> {
    this.#begin(user)
    if (!this.isOn) return undefined
    const stored = this.#emit('RequestReceived')
    // A read proceeds while its event is written: the event of the response, which is awaited, follows it.
    if (typeof stored !== 'boolean' && this.#isRead && !this.#options.isStrict) return this
    if (!(await stored)) throw this.#refusal()
    return this
  }

  #begin(user: User | undefined): void {
    const { info } = this.#request
    this.#terms = this.#options.evaluate(user, info)
    this.#options.observe(this.#terms.level)
    this.#user = user
    for (const [key, value] of Object.entries(user?.notes ?? {})) this.annotate(key, value)
  }

  /** `constraint` is empty for unconstrained impersonation. */
  readonly impersonated = (user: User, constraint: string): void =>
    this.#learn({ impersonatedUser: user, impersonationConstraint: constraint })

  readonly annotate: Annotate = (key, value, from) => {
    if (from !== undefined && !this.#wants(from)) return
    if (!this.#annotations.has(key)) this.#annotations.set(key, value)
  }

  /** Authorizes and records the decision. */
  async authorizing(decide: Authorize, user: User, info: RequestInfo): Promise<Decision> {
    try {
      const decision = await decide(user, info)
      this.annotate('authorization.k8s.io/decision', decision.allowed ? 'allow' : 'forbid')
      this.annotate('authorization.k8s.io/reason', decision.reason)
      return decision
    } catch (error) {
      this.annotate('authorization.k8s.io/reason', 'internal error')
      throw error
    }
  }

  body(object: KubeObject, complete?: (copy: KubeObject) => void): void {
    const { objectRef: ref } = (this.#subject ??= this.#describe())
    const { name = '', namespace = '', uid = '', resourceVersion = '' } = object.metadata ?? {}
    if (ref !== undefined) {
      const named = { name: ref.name || name, namespace: ref.namespace || namespace }
      this.#learn({ objectRef: { ...ref, ...named, uid, resourceVersion } })
    }
    if (!this.#wants('Request')) return
    // An unreadable body must not prevent the response: the event omits it.
    this.#requestObject = attempt(() => {
      const copy = deepCopy(object)
      complete?.(copy)
      return objectText(canonical(copy, this.#options.schemaFor), this.#terms?.omitManagedFields ?? false)
    })
  }

  patch(bytes: Buffer): void {
    if (this.#wants('Request')) this.#requestObject = patchText(bytes)
  }

  #wants(level: 'Request' | 'RequestResponse'): boolean {
    const own = this.#terms?.level
    return own === level || own === 'RequestResponse'
  }

  /**
   * Called before the response is sent. Resolves with the response to send when the event is stored. Throws StatusError
   * 500 if no event of a write could be stored and the policy requires it.
   */
  async answered(answer: Answer): Promise<Answer> {
    const wasReceived = this.#terms !== undefined
    if (!wasReceived) this.#begin(undefined)
    if (!this.isOn || this.#isOver) return answer
    const sent = this.#noteAnswer(answer)
    // Upstream's events for unauthenticated requests have only this stage.
    if (!wasReceived) return this.#settled(sent, await this.#emit('ResponseStarted'))
    if (!isWhole(answer)) return this.#settled(sent, await this.#emit('ResponseStarted'))
    if (isLongRunning(this.#request.info)) await this.#emit('ResponseStarted')
    return this.#settled(sent, await this.#complete())
  }

  /** Resolves when the response is sent; for a long-running one, when its end is recorded. */
  async following(answer: Answer, sent: Promise<void>): Promise<void> {
    try {
      await sent
    } finally {
      if (this.isOn && !isWhole(answer)) await this.#complete()
    }
  }

  /** Records an unexpected error. The client only learns that one occurred. */
  async panicked(error: unknown): Promise<void> {
    if (!this.isOn || this.#isOver) return
    const message = `APIServer panic'd: ${error instanceof Error ? error.message : String(error)}`
    this.#responseStatus = { status: 'Failure', message, reason: 'InternalError', code: 500 }
    await this.#emit('Panic')
    this.#isOver = true
  }

  #complete(): boolean | Promise<boolean> {
    const tookMs = this.#options.clock.elapsed() - this.#startMs
    if (tookMs > SLOW_MS && !isLongRunning(this.#request.info)) {
      this.annotate('apiserver.latency.k8s.io/total', durationText(BigInt(Math.round(tookMs * 1_000_000))))
    }
    return this.#emit('ResponseComplete')
  }

  #settled(answer: Answer, isStored: boolean): Answer {
    if (isStored || this.#isStored || this.#isRead) return answer
    throw this.#refusal()
  }

  #refusal(): Error {
    this.#isOver = true
    this.#options.rejected()
    return internalError(new Error('failed to store audit event'))
  }

  get #isRead(): boolean {
    return requestKindOf(this.#request.info) === 'readOnly'
  }

  /** The response to send: the same, or a single piece if its pieces had to be read. */
  #noteAnswer(answer: Answer): Answer {
    const { schemaFor } = this.#options
    if (!isWhole(answer) || this.#isRaw(answer)) {
      this.#responseStatus = { code: answer.status }
      return answer
    }
    const { status, message, reason, details } = attempt(() => answeredStatus(answer, schemaFor)) ?? {}
    this.#responseStatus = {
      ...(status !== undefined && { status }),
      ...(message !== undefined && { message }),
      ...(reason !== undefined && { reason }),
      ...(details !== undefined && { details }),
      code: answer.status,
    }
    if (!this.#wants('RequestResponse')) return answer
    const sent = inOnePiece(answer)
    this.#responseObject = attempt(() => {
      const text = answerText(sent, schemaFor)
      return text !== undefined && this.#terms?.omitManagedFields === true ? textWithoutManagedFields(text) : text
    })
    return sent
  }

  /** Errors for clients that accept no supported form bypass the audit log. */
  #isRaw({ status }: WholeAnswer): boolean {
    if (status < 400) return false
    const accept = this.#request.exchange.headers.accept ?? ''
    return isRefusal(negotiateAccept(accept, { endpoint: 'object', mediaTypes: MEDIA_TYPES, tables: true }))
  }

  #emit(stage: Stage): boolean | Promise<boolean> {
    if (this.#terms?.omitStages.has(stage) === true) return true
    const stored = this.#options.store(this.#eventAt(stage, this.#terms?.level ?? 'None'))
    const note = (isStored: boolean): boolean => {
      this.#isStored ||= isStored
      return isStored
    }
    return typeof stored === 'boolean' ? note(stored) : stored.then(note)
  }

  #eventAt(stage: Stage, level: Level): AuditEvent {
    const subject = (this.#subject ??= this.#describe())
    return {
      level,
      auditId: this.#request.auditId,
      stage,
      subject,
      subjectText: (this.#subjectText ??= subjectText(subject)),
      responseStatus: this.#responseStatus,
      requestObject: this.#requestObject,
      responseObject: this.#responseObject,
      receivedMs: this.#receivedMs,
      stageMs: stage === 'RequestReceived' ? this.#receivedMs : this.#options.clock.now(),
      annotations: this.#annotations.size === 0 ? NO_ANNOTATIONS : new Map(this.#annotations),
    }
  }

  #describe(): EventSubject {
    const { exchange, info } = this.#request
    const agent = exchange.headers['user-agent'] ?? ''
    return {
      requestUri: exchange.path,
      verb: info.verb,
      user: this.#user,
      impersonatedUser: undefined,
      impersonationConstraint: '',
      sourceIps: sourceIps(exchange),
      userAgent: agent.length > MAX_AGENT_LENGTH ? `${agent.slice(0, MAX_AGENT_LENGTH)}...TRUNCATED` : agent,
      objectRef: info.isResource ? referenceOf(info) : undefined,
    }
  }

  /** Invalidates the cached subject text. */
  #learn(more: Partial<EventSubject>): void {
    this.#subject = { ...(this.#subject ?? this.#describe()), ...more }
    this.#subjectText = undefined
  }
}

function referenceOf({ resource, namespace, name, subresource, group, version }: RequestInfo): ObjectReference {
  const [apiGroup, apiVersion] = [group, version]
  return { resource, namespace, name, uid: '', apiGroup, apiVersion, resourceVersion: '', subresource }
}

function inOnePiece(answer: WholeAnswer): WholeAnswer {
  const { body } = answer
  return typeof body === 'string' || Buffer.isBuffer(body) ? answer : { ...answer, body: Buffer.concat([...body]) }
}
