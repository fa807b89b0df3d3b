/**
 * metav1.Status, the way the API says how a request went, and StatusError, the one error class of everything that
 * speaks the API: the server throws it, the client throws what it received. The constructors are in
 * `status-errors.ts`; here are the shape and the questions one can ask.
 */
import { type FieldErrorType } from './validation/field-error.ts'

export type StatusReason =
  | 'Unauthorized'
  | 'Forbidden'
  | 'NotFound'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Gone'
  | 'Invalid'
  | 'ServerTimeout'
  | 'StorageReadError'
  | 'Timeout'
  | 'TooManyRequests'
  | 'BadRequest'
  | 'MethodNotAllowed'
  | 'NotAcceptable'
  | 'RequestEntityTooLarge'
  | 'UnsupportedMediaType'
  | 'InternalError'
  | 'Expired'
  | 'ServiceUnavailable'

/** Why a status was given, in parts. Admission adds its own: a known type is a promise, an unknown one is not an error. */
export type CauseType =
  | FieldErrorType
  | 'UnexpectedServerResponse'
  | 'FieldManagerConflict'
  | 'ResourceVersionTooLarge'
  | 'NamespaceTerminating'
  | 'DisruptionBudget'

/** Any text, without hiding the known ones from an editor's completion. */
type Other = string & Record<never, never>

export interface StatusCause {
  reason?: CauseType | Other
  message?: string
  /** Path of the field at fault, for instance `items[0].name`. */
  field?: string
}

export interface StatusDetails {
  name?: string
  group?: string
  /** The resource for most failures, the Kind where the failure is about the object's content. */
  kind?: string
  uid?: string
  causes?: StatusCause[]
  retryAfterSeconds?: number
}

export interface Status {
  kind: 'Status'
  apiVersion: 'v1'
  metadata: { continue?: string; resourceVersion?: string; remainingItemCount?: number }
  status?: 'Success' | 'Failure' | Other
  message?: string
  reason?: StatusReason | Other
  details?: StatusDetails
  code?: number
}

/** A request that failed in a way the API has words for. Its message is the message of the status. */
export class StatusError extends Error {
  override readonly name: string = 'StatusError'
  readonly status: Status

  constructor(status: Status, options?: ErrorOptions) {
    super(status.message ?? '', options)
    this.status = status
  }
}

/** The status of `error`, or of the first cause of it that has one. */
export function statusOf(error: unknown): Status | undefined {
  let current = error
  for (let depth = 0; depth < 16 && current instanceof Error; depth++) {
    if (current instanceof StatusError) return current.status
    current = current.cause
  }
  return undefined
}

/** The reason of a failed request; undefined when `error` is none or its server gave none. */
export function reasonOf(error: unknown): string | undefined {
  return statusOf(error)?.reason
}

/** The first cause of that type, when there is one. */
export function causeOf(error: unknown, type: CauseType): StatusCause | undefined {
  return statusOf(error)?.details?.causes?.find((cause) => cause.reason === type)
}

const knownReasons: ReadonlySet<string> = new Set<StatusReason>([
  'Unauthorized',
  'Forbidden',
  'NotFound',
  'AlreadyExists',
  'Conflict',
  'Gone',
  'Invalid',
  'ServerTimeout',
  'StorageReadError',
  'Timeout',
  'TooManyRequests',
  'BadRequest',
  'MethodNotAllowed',
  'NotAcceptable',
  'RequestEntityTooLarge',
  'UnsupportedMediaType',
  'InternalError',
  'Expired',
  'ServiceUnavailable',
])

/** A status says `reason`, or says nothing known and has the HTTP code that reason stands for. */
function says(error: unknown, reason: StatusReason, code: number): boolean {
  const status = statusOf(error)
  if (status === undefined) return false
  return status.reason === reason || (status.code === code && !knownReasons.has(status.reason ?? ''))
}

export function isNotFound(error: unknown): boolean {
  return says(error, 'NotFound', 404)
}

/** A create met an object of that name. Distinct from a conflict, though both are 409. */
export function isAlreadyExists(error: unknown): boolean {
  return reasonOf(error) === 'AlreadyExists'
}

/** An update was made from an outdated object, or an apply met another owner. */
export function isConflict(error: unknown): boolean {
  return says(error, 'Conflict', 409)
}

export function isInvalid(error: unknown): boolean {
  return says(error, 'Invalid', 422)
}

export function isGone(error: unknown): boolean {
  return says(error, 'Gone', 410)
}

/** The history asked for has been compacted away: list again. */
export function isResourceExpired(error: unknown): boolean {
  return reasonOf(error) === 'Expired'
}

export function isBadRequest(error: unknown): boolean {
  return says(error, 'BadRequest', 400)
}

export function isForbidden(error: unknown): boolean {
  return says(error, 'Forbidden', 403)
}

/** The request ran out of time; it may still take effect. */
export function isTimeout(error: unknown): boolean {
  return says(error, 'Timeout', 504)
}

/** The server could not do it now and asks for another try. */
export function isServerTimeout(error: unknown): boolean {
  return reasonOf(error) === 'ServerTimeout'
}

export function isInternalError(error: unknown): boolean {
  return says(error, 'InternalError', 500)
}

export function isTooManyRequests(error: unknown): boolean {
  return reasonOf(error) === 'TooManyRequests' || statusOf(error)?.code === 429
}

export function isRequestEntityTooLarge(error: unknown): boolean {
  return reasonOf(error) === 'RequestEntityTooLarge' || statusOf(error)?.code === 413
}

/** The answer did not look like the API's: some other HTTP server may stand in between. */
export function isUnexpectedServerError(error: unknown): boolean {
  return causeOf(error, 'UnexpectedServerResponse') !== undefined
}

/** The version asked for lies in the future of this server: ask again in a moment. */
export function isTooLargeResourceVersion(error: unknown): boolean {
  return isTimeout(error) && causeOf(error, 'ResourceVersionTooLarge') !== undefined
}

/** How long the server asks to wait, when it does. Says nothing on whether to retry at all. */
export function suggestedDelaySeconds(error: unknown): number | undefined {
  const status = statusOf(error)
  const seconds = status?.details?.retryAfterSeconds ?? 0
  if (status?.details !== undefined && status.reason === 'ServerTimeout') return seconds
  return seconds > 0 ? seconds : undefined
}

/** Reads an answer as a failure; undefined when it is not a Status at all. */
export function statusErrorFrom(object: unknown): StatusError | undefined {
  if (typeof object !== 'object' || object === null) return undefined
  const { kind, apiVersion } = object as { kind?: unknown; apiVersion?: unknown }
  if (kind !== 'Status' || (apiVersion !== 'v1' && apiVersion !== 'meta.k8s.io/v1')) return undefined
  return new StatusError(object as Status)
}
