/**
 * Creates all API errors that have a reason, with upstream's message, details and HTTP code. Fields are in upstream's
 * order.
 */
import { goQuote } from '#lib/go/text.ts'

import { groupKindText, groupResourceText, type GroupKind, type GroupResource } from './kind.ts'
import { type Status, type StatusCause, type StatusDetails, StatusError, type StatusReason } from './status.ts'
import { aggregateText, shownErrors } from './validation/field-error.ts'
import type { FieldError } from './validation/field-path.ts'

interface Failure {
  readonly code: number
  readonly message: string
  readonly reason?: StatusReason | undefined
  readonly details?: StatusDetails
}

/** An error of no kind below. Without a reason clients use only the code. */
export function failure({ code, message, reason, details }: Failure, options?: ErrorOptions): StatusError {
  const status: Status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' }
  if (message !== '') status.message = message
  if (reason !== undefined) status.reason = reason
  if (details !== undefined) status.details = details
  status.code = code
  return new StatusError(status, options)
}

export function notFoundError(resource: GroupResource, name: string): StatusError {
  const message = `${groupResourceText(resource)} ${goQuote(name)} not found`
  return failure({ code: 404, reason: 'NotFound', message, details: detailsOf(resource, name) })
}

export function alreadyExistsError(resource: GroupResource, name: string): StatusError {
  const message = `${groupResourceText(resource)} ${goQuote(name)} already exists`
  return failure({ code: 409, reason: 'AlreadyExists', message, details: detailsOf(resource, name) })
}

/** All generated names exist. */
export function generateNameConflictError(
  resource: GroupResource,
  name: string,
  retryAfterSeconds: number,
): StatusError {
  const exists = `${groupResourceText(resource)} ${goQuote(name)} already exists`
  const message = `${exists}, the server was not able to generate a unique name for the object`
  const details = withRetry(detailsOf(resource, name), retryAfterSeconds)
  return failure({ code: 409, reason: 'AlreadyExists', message, details })
}

/** The caller is not authenticated. */
export function unauthorizedError(message = ''): StatusError {
  return failure({ code: 401, reason: 'Unauthorized', message: message === '' ? 'not authorized' : message })
}

/** `resource` may be empty for non-resource paths, `name` for collections. */
export function forbiddenError(resource: GroupResource, name: string, why: string): StatusError {
  const what = groupResourceText(resource)
  const subject = name === '' ? `${what} is ` : `${what} ${goQuote(name)} is `
  const message = `${what === '' ? '' : subject}forbidden: ${why}`
  return failure({ code: 403, reason: 'Forbidden', message, details: detailsOf(resource, name) })
}

export function conflictError(resource: GroupResource, name: string, why: string): StatusError {
  const message = `Operation cannot be fulfilled on ${groupResourceText(resource)} ${goQuote(name)}: ${why}`
  return failure({ code: 409, reason: 'Conflict', message, details: detailsOf(resource, name) })
}

/** The object was changed since the caller read it. */
export function modifiedError(resource: GroupResource, name: string): StatusError {
  const advice = 'please apply your changes to the latest version and try again'
  return conflictError(resource, name, `the object has been modified; ${advice}`)
}

/** An apply conflicts with other field managers: one cause for each field. */
export function applyConflictError(causes: readonly StatusCause[], message: string): StatusError {
  return failure({ code: 409, reason: 'Conflict', message, details: withCauses({}, causes) })
}

/** The old reason; servers use `resourceExpiredError` today. */
export function goneError(message: string): StatusError {
  return failure({ code: 410, reason: 'Gone', message })
}

export function resourceExpiredError(message: string): StatusError {
  return failure({ code: 410, reason: 'Expired', message })
}

/** The object is invalid: one cause for each field error. Contains the Kind, not the resource. */
export function invalidError(kind: GroupKind, name: string, errors: readonly FieldError[]): StatusError {
  const what = `${groupKindText(kind)} ${goQuote(name)} is invalid`
  const message = errors.length === 0 ? what : `${what}: ${aggregateText(errors)}`
  const details = withCauses(detailsOf({ group: kind.group, resource: kind.kind }, name), fieldCauses(errors))
  return failure({ code: 422, reason: 'Invalid', message, details })
}

/** Field errors as status causes. */
export function fieldCauses(errors: readonly FieldError[]): StatusCause[] {
  return shownErrors(errors).map(({ error, body }) => ({ reason: error.type, message: body, field: error.field }))
}

export function badRequestError(message: string): StatusError {
  return failure({ code: 400, reason: 'BadRequest', message })
}

/** The client should retry later. */
export function tooManyRequestsError(message: string, retryAfterSeconds: number): StatusError {
  return failure({ code: 429, reason: 'TooManyRequests', message, details: withRetry({}, retryAfterSeconds) })
}

export function serviceUnavailableError(message: string): StatusError {
  return failure({ code: 503, reason: 'ServiceUnavailable', message })
}

export function methodNotSupportedError(resource: GroupResource, action: string): StatusError {
  const message = `${action} is not supported on resources of kind ${goQuote(groupResourceText(resource))}`
  return failure({ code: 405, reason: 'MethodNotAllowed', message, details: detailsOf(resource, '') })
}

/** A temporary failure. `operation` is a verb: `create`, `list`. */
export function serverTimeoutError(resource: GroupResource, operation: string, retryAfterSeconds: number): StatusError {
  const what = `The ${operation} operation against ${groupResourceText(resource)}`
  const message = `${what} could not be completed at this time, please try again.`
  const details = withRetry(detailsOf(resource, operation), retryAfterSeconds)
  return failure({ code: 500, reason: 'ServerTimeout', message, details })
}

export function internalError(cause: Error): StatusError {
  const message = `Internal error occurred: ${cause.message}`
  const details: StatusDetails = { causes: [{ message: cause.message }] }
  return failure({ code: 500, reason: 'InternalError', message, details }, { cause })
}

/** The request timed out; the operation may still take effect. */
export function timeoutError(message: string, retryAfterSeconds: number): StatusError {
  const details = withRetry({}, retryAfterSeconds)
  return failure({ code: 504, reason: 'Timeout', message: `Timeout: ${message}`, details })
}

/** The requested version is newer than this server's and did not arrive in time. */
export function tooLargeResourceVersionError(
  wanted: number | bigint,
  current: number | bigint,
  retryAfterSeconds: number,
): StatusError {
  const causes: StatusCause[] = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }]
  const message = `Timeout: Too large resource version: ${wanted}, current: ${current}`
  return failure({ code: 504, reason: 'Timeout', message, details: withRetry({ causes }, retryAfterSeconds) })
}

export function requestEntityTooLargeError(message: string): StatusError {
  return failure({ code: 413, reason: 'RequestEntityTooLarge', message: `Request entity too large: ${message}` })
}

/** The server supports none of the accepted media types. */
export function notAcceptableError(accepted: readonly string[]): StatusError {
  const message = `only the following media types are accepted: ${accepted.join(', ')}`
  return failure({ code: 406, reason: 'NotAcceptable', message })
}

/** The media type of the body is not supported. */
export function unsupportedMediaTypeError(accepted: readonly string[]): StatusError {
  const head = 'the body of the request was in an unknown format - accepted media types include'
  return failure({ code: 415, reason: 'UnsupportedMediaType', message: `${head}: ${accepted.join(', ')}` })
}

export interface GenericResponse {
  readonly code: number
  /** The HTTP method in capitals. */
  readonly method: string
  readonly resource?: GroupResource
  readonly name?: string
  /** The message of the other side, if there is one. */
  readonly serverMessage?: string
  readonly retryAfterSeconds?: number
  /** The answer was not in the API's format: the cause contains its text. */
  readonly unexpected?: boolean
}

const fromServer = (serverMessage: string): string => serverMessage

/** Client messages for answers that are no Status, by code. */
const generic = new Map<number, readonly [StatusReason, string | ((serverMessage: string) => string)]>([
  [400, ['BadRequest', 'the server rejected our request for an unknown reason']],
  [401, ['Unauthorized', 'the server has asked for the client to provide credentials']],
  [403, ['Forbidden', fromServer]],
  [404, ['NotFound', 'the server could not find the requested resource']],
  [405, ['MethodNotAllowed', 'the server does not allow this method on the requested resource']],
  [406, ['NotAcceptable', notAcceptableText]],
  [409, ['Conflict', 'the server reported a conflict']],
  [415, ['UnsupportedMediaType', fromServer]],
  [422, ['Invalid', 'the server rejected our request due to an error in our request']],
  [429, ['TooManyRequests', 'the server has received too many requests and has asked us to try again later']],
  [503, ['ServiceUnavailable', 'the server is currently unable to handle the request']],
  [
    504,
    [
      'Timeout',
      'the server was unable to return a response in the time allotted, but may still be processing the request',
    ],
  ],
])

/** An error with only an HTTP code; also used by the server without a better text. */
export function genericError(response: GenericResponse): StatusError {
  const { code, method, name = '', serverMessage = '', retryAfterSeconds = 0 } = response
  const resource = response.resource ?? { group: '', resource: '' }
  const [reason, text] = genericReason(code, method, serverMessage)
  // Without a method the text has a blank, as in upstream.
  const what = [method.toLowerCase(), groupResourceText(resource), ...(name === '' ? [] : [name])].join(' ')
  const message = resource.group === '' && resource.resource === '' ? text : `${text} (${what})`
  const causes: StatusCause[] = response.unexpected
    ? [{ reason: 'UnexpectedServerResponse', ...(serverMessage === '' ? {} : { message: serverMessage }) }]
    : []
  const details = withRetry(withCauses(detailsOf(resource, name), causes), retryAfterSeconds)
  return failure({ code, reason, message, details })
}

function genericReason(
  code: number,
  method: string,
  serverMessage: string,
): [reason: StatusReason | undefined, text: string] {
  const found = generic.get(code)
  if (found !== undefined) {
    const [reason, text] = found
    const exact = code === 409 && method === 'POST' ? 'AlreadyExists' : reason
    return [exact, typeof text === 'string' ? text : text(serverMessage)]
  }
  if (code >= 500) {
    return [
      'InternalError',
      `an error on the server (${goQuote(serverMessage)}) has prevented the request from succeeding`,
    ]
  }
  return [undefined, `the server responded with the status code ${code} but did not return more information`]
}

function notAcceptableText(serverMessage: string): string {
  const silent = serverMessage === '' || serverMessage === 'unknown'
  return silent ? 'the server was unable to respond with a content type that the client supports' : serverMessage
}

function detailsOf({ group, resource }: GroupResource, name: string): StatusDetails {
  const details: StatusDetails = {}
  if (name !== '') details.name = name
  if (group !== '') details.group = group
  if (resource !== '') details.kind = resource
  return details
}

function withCauses(details: StatusDetails, causes: readonly StatusCause[]): StatusDetails {
  return causes.length === 0 ? details : { ...details, causes: [...causes] }
}

function withRetry(details: StatusDetails, retryAfterSeconds: number): StatusDetails {
  return retryAfterSeconds === 0 ? details : { ...details, retryAfterSeconds }
}
