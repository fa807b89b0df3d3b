/**
 * metav1.Status, the result of an API request, and StatusError, the error class of server and client. The constructors
 * are in `status-errors.ts`; this file has the types and predicates.
 */
import type { FieldErrorType } from './validation/field-path.ts'

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

/** A cause of a status. Admission adds more types: unknown ones are valid. */
export type CauseType =
  | FieldErrorType
  | 'UnexpectedServerResponse'
  | 'FieldManagerConflict'
  | 'ResourceVersionTooLarge'
  | 'NamespaceTerminating'
  | 'DisruptionBudget'

/** Any text, with editor completion for the known ones. */
type Other = string & Record<never, never>

export interface StatusCause {
  reason?: CauseType | Other
  message?: string
  /** The path of the invalid field, such as `items[0].name`. */
  field?: string
}

export interface StatusDetails {
  name?: string
  group?: string
  /** The resource for most errors, the Kind if the error concerns the object's content. */
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

/** A failed request with a status. Its message is that of the status. */
export class StatusError extends Error {
  override readonly name: string = 'StatusError'
  readonly status: Status

  constructor(status: Status, options?: ErrorOptions) {
    super(status.message ?? '', options)
    this.status = status
  }
}

/** The status of `error`, or of its first cause with one. */
export function statusOf(error: unknown): Status | undefined {
  let current = error
  for (let depth = 0; depth < 16 && current instanceof Error; depth++) {
    if (current instanceof StatusError) return current.status
    current = current.cause
  }
  return undefined
}

/** The reason of a failed request; undefined without one. */
export function reasonOf(error: unknown): string | undefined {
  return statusOf(error)?.reason
}

/** The first cause of that type, if there is one. */
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

/** True if a status has `reason`, or an unknown reason and the HTTP code of `reason`. */
function hasReason(error: unknown, reason: StatusReason, code: number): boolean {
  const status = statusOf(error)
  if (status === undefined) return false
  return status.reason === reason || (status.code === code && !knownReasons.has(status.reason ?? ''))
}

export function isNotFound(error: unknown): boolean {
  return hasReason(error, 'NotFound', 404)
}

/** An object with that name exists. Not a conflict, though both are 409. */
export function isAlreadyExists(error: unknown): boolean {
  return reasonOf(error) === 'AlreadyExists'
}

/** The server rejected an object because its namespace is being deleted. */
export function isNamespaceTerminating(error: unknown): boolean {
  const causes = error instanceof StatusError ? error.status.details?.causes : undefined
  return causes?.some(({ reason }) => reason === 'NamespaceTerminating') ?? false
}

/** An update of an outdated object, or an apply with conflicts. */
export function isConflict(error: unknown): boolean {
  return hasReason(error, 'Conflict', 409)
}

export function isInvalid(error: unknown): boolean {
  return hasReason(error, 'Invalid', 422)
}

export function isGone(error: unknown): boolean {
  return hasReason(error, 'Gone', 410)
}

/** The requested history was compacted: list again. */
export function isResourceExpired(error: unknown): boolean {
  return reasonOf(error) === 'Expired'
}

export function isBadRequest(error: unknown): boolean {
  return hasReason(error, 'BadRequest', 400)
}

export function isForbidden(error: unknown): boolean {
  return hasReason(error, 'Forbidden', 403)
}

/** The request timed out; it may still take effect. */
export function isTimeout(error: unknown): boolean {
  return hasReason(error, 'Timeout', 504)
}

/** A temporary failure; the server asks for a retry. */
export function isServerTimeout(error: unknown): boolean {
  return reasonOf(error) === 'ServerTimeout'
}

export function isInternalError(error: unknown): boolean {
  return hasReason(error, 'InternalError', 500)
}

export function isTooManyRequests(error: unknown): boolean {
  return reasonOf(error) === 'TooManyRequests' || statusOf(error)?.code === 429
}

export function isRequestEntityTooLarge(error: unknown): boolean {
  return reasonOf(error) === 'RequestEntityTooLarge' || statusOf(error)?.code === 413
}

/** The answer was not the API's: another HTTP server may be in between. */
export function isUnexpectedServerError(error: unknown): boolean {
  return causeOf(error, 'UnexpectedServerResponse') !== undefined
}

/** The requested version is newer than this server's: retry soon. */
export function isTooLargeResourceVersion(error: unknown): boolean {
  return isTimeout(error) && causeOf(error, 'ResourceVersionTooLarge') !== undefined
}

/** The retry delay from the server, if there is one. Does not decide whether to retry. */
export function suggestedDelaySeconds(error: unknown): number | undefined {
  const status = statusOf(error)
  const seconds = status?.details?.retryAfterSeconds ?? 0
  if (status?.details !== undefined && status.reason === 'ServerTimeout') return seconds
  return seconds > 0 ? seconds : undefined
}

/** Parses an answer as an error; undefined if it is no Status. */
export function statusErrorFrom(object: unknown): StatusError | undefined {
  if (typeof object !== 'object' || object === null) return undefined
  const { kind, apiVersion } = object as { kind?: unknown; apiVersion?: unknown }
  if (kind !== 'Status' || (apiVersion !== 'v1' && apiVersion !== 'meta.k8s.io/v1')) return undefined
  return new StatusError(object as Status)
}
