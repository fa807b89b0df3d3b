/**
 * The interface through which CEL expressions call an authorizer. Evaluation is synchronous. Without a cached answer,
 * the evaluation is aborted and repeated when the answer has arrived.
 */
import { OpaqueValue } from './value.ts'

/** The subject of a check: the requesting user, or a service account that the expression names. */
export type Subject =
  | { readonly kind: 'requester' }
  | { readonly kind: 'serviceAccount'; namespace: string; name: string }

export type Check = PathCheck | ResourceCheck

interface PathCheck {
  readonly kind: 'path'
  readonly subject: Subject
  readonly verb: string
  readonly path: string
}

interface ResourceCheck {
  readonly kind: 'resource'
  readonly subject: Subject
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** As text; empty for none. */
  readonly fieldSelector: string
  readonly labelSelector: string
}

export interface Answer {
  readonly allowed: boolean
  readonly reason: string
  /** The evaluation error, which does not prevent an allowed result. */
  readonly error?: string
}

/** Implemented by the server, for one request. */
export type Authorize = (check: Check) => Answer | Promise<Answer>

/** The answers so far, by check. */
type Answers = Map<string, Answer>

/** Thrown through an evaluation that needs a missing answer. */
class Suspension extends Error {
  readonly key: string
  readonly answer: Promise<Answer>
  readonly answers: Answers
  constructor(key: string, answer: Promise<Answer>, answers: Answers) {
    super('Evaluation waits for an authorizer: use whenAnswered')
    this.key = key
    this.answer = answer
    this.answers = answers
  }
}

const REQUESTER: Subject = { kind: 'requester' }

/** The variable `authorizer`. One per request, because answers are cached. */
export class AuthorizerValue extends OpaqueValue {
  readonly typeName = 'kubernetes.authorization.Authorizer'
  readonly subject: Subject
  readonly #authorize: Authorize
  readonly #answers: Answers
  constructor(authorize: Authorize, subject: Subject = REQUESTER, answers: Answers = new Map()) {
    super()
    this.subject = subject
    this.#authorize = authorize
    this.#answers = answers
  }
  equals(other: AuthorizerValue): boolean {
    return this === other
  }
  /** The same authorizer for a service account. */
  forServiceAccount(namespace: string, name: string): AuthorizerValue {
    return new AuthorizerValue(this.#authorize, { kind: 'serviceAccount', namespace, name }, this.#answers)
  }
  decide(check: Check): Answer {
    const key = JSON.stringify(check)
    const known = this.#answers.get(key)
    if (known !== undefined) return known
    const answer = this.#authorize(check)
    if (answer instanceof Promise) throw new Suspension(key, answer, this.#answers)
    this.#answers.set(key, answer)
    return answer
  }
}

/** `authorizer.requestResource`, or a check that was built step by step. */
export class ResourceCheckValue extends OpaqueValue {
  readonly typeName = 'kubernetes.authorization.ResourceCheck'
  readonly authorizer: AuthorizerValue
  readonly check: Omit<ResourceCheck, 'verb'>
  constructor(authorizer: AuthorizerValue, check: Pick<ResourceCheck, 'group' | 'resource'> & Partial<ResourceCheck>) {
    super()
    this.authorizer = authorizer
    const empty = { subresource: '', namespace: '', name: '', fieldSelector: '', labelSelector: '' }
    this.check = { ...empty, ...check, kind: 'resource', subject: authorizer.subject }
  }
  with(more: Partial<ResourceCheck>): ResourceCheckValue {
    return new ResourceCheckValue(this.authorizer, { ...this.check, ...more })
  }
  equals(other: ResourceCheckValue): boolean {
    return this === other
  }
}

/** Runs an evaluation, again each time that a needed answer arrives. */
export async function whenAnswered<T>(work: () => T): Promise<T> {
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof Suspension)) throw error
      error.answers.set(error.key, await error.answer)
    }
  }
}
