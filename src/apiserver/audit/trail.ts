/**
 * The audit trail of one request: what is found out about it on its way, and an event at each of its stages. What the
 * policy does not want is not gathered. Events are stored before the client is answered: no answer is sent about which
 * there is no record, as far as the sink can be made to wait.
 */
import { attempt } from '#lib/attempt.ts'
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { isRefusal, MEDIA_TYPES, negotiateAccept } from '#meta/codec/negotiate.ts'
import { durationText } from '#meta/duration.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import { internalError } from '#meta/status-errors.ts'
import type { Status } from '#meta/status.ts'

import { type Answer, type AuditNotes, isWhole, type WholeAnswer } from '../call.ts'
import type { Authorize, Decision } from '../filters/access.ts'
import { isLongRunning, requestKindOf } from '../filters/inflight.ts'
import type { Annotate } from '../registry/admission.ts'
import type { User } from '../registry/resource.ts'
import type { RequestInfo } from '../request-info.ts'
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
  /** Stores an event; false when that failed and requests are not to go on without. */
  readonly store: (event: AuditEvent) => boolean | Promise<boolean>
  /** Whether it ever says false. */
  readonly isStrict: boolean
  /** Told which level was found to apply, once for each request. */
  readonly observe: (level: Level) => void
  /** Told of a request that is refused because its event could not be stored. */
  readonly rejected: () => void
}

export interface AuditedRequest {
  readonly exchange: Pick<Exchange, 'path' | 'headers' | 'peer'>
  readonly info: RequestInfo
  readonly auditId: string
}

const MAX_AGENT_LENGTH = 1024
const NO_ANNOTATIONS: ReadonlyMap<string, string> = new Map()
/** Slower requests say how long they took. */
const SLOW_MS = 500

export class AuditTrail implements AuditNotes {
  readonly #options: TrailOptions
  readonly #request: AuditedRequest
  readonly #receivedMs: number
  readonly #startMs: number
  /** Undefined until the request has a user, or turns out to have none. */
  #terms: AuditTerms | undefined
  #user: User | undefined
  #subject: EventSubject | undefined
  /** Of `#subject`; undefined when it has to be made anew. */
  #subjectText: string | undefined
  #responseStatus: Partial<Status> | undefined
  #requestObject: string | undefined
  #responseObject: string | undefined
  readonly #annotations = new Map<string, string>()
  /** Whether any event of the request is where it belongs. */
  #isStored = false
  /** There will be no further events. */
  #isOver = false

  constructor(options: TrailOptions, request: AuditedRequest) {
    this.#options = options
    this.#request = request
    this.#receivedMs = options.clock.now()
    this.#startMs = options.clock.elapsed()
  }

  /** Whether there is anything to gather. */
  get isOn(): boolean {
    return this.#terms !== undefined && this.#terms.level !== 'None'
  }

  /**
   * The request has a user and will be looked into. Resolves with the trail when there is anything to gather. Throws
   * StatusError 500 when the request must be put on record and cannot be.
   */
  async received(user: User): Promise<this | undefined> {
    this.#begin(user)
    if (!this.isOn) return undefined
    const stored = this.#emit('RequestReceived')
    // A read goes on while its event is written: the one about its answer, which is waited for, comes after it.
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

  /** `constraint` is empty for impersonation without limits. */
  readonly impersonated = (user: User, constraint: string): void =>
    this.#learn({ impersonatedUser: user, impersonationConstraint: constraint })

  readonly annotate: Annotate = (key, value, from) => {
    if (from !== undefined && !this.#wants(from)) return
    if (!this.#annotations.has(key)) this.#annotations.set(key, value)
  }

  /** The same decision, with a note of it. */
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
    // What cannot be read for the log must not keep anybody from their answer: the event goes without it.
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
   * There is an answer, about to be sent: resolves when that is on record, with the answer to send. Throws StatusError
   * 500 when nothing at all could be recorded of a write, and that is not to be.
   */
  async answered(answer: Answer): Promise<Answer> {
    const wasReceived = this.#terms !== undefined
    if (!wasReceived) this.#begin(undefined)
    if (!this.isOn || this.#isOver) return answer
    const sent = this.#noteAnswer(answer)
    // Upstream's events for requests that never got to be anybody's have but this stage.
    if (!wasReceived) return this.#settled(sent, await this.#emit('ResponseStarted'))
    if (!isWhole(answer)) return this.#settled(sent, await this.#emit('ResponseStarted'))
    if (isLongRunning(this.#request.info)) await this.#emit('ResponseStarted')
    return this.#settled(sent, await this.#complete())
  }

  /** Resolves when the answer is sent; one that goes on, when its end is on record. */
  async following(answer: Answer, sent: Promise<void>): Promise<void> {
    try {
      await sent
    } finally {
      if (this.isOn && !isWhole(answer)) await this.#complete()
    }
  }

  /** Something went wrong that should not: the client is told no more than that. */
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

  /** The answer to send: the same, but in one piece where its pieces had to be looked at. */
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

  /** Errors for those who accept no form we have are written past everything, the audit log too. */
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

  /** What is known of the request now is another. */
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
