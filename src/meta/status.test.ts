import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import {
  alreadyExistsError,
  applyConflictError,
  badRequestError,
  conflictError,
  failure,
  forbiddenError,
  generateNameConflictError,
  genericError,
  goneError,
  internalError,
  invalidError,
  methodNotSupportedError,
  modifiedError,
  notAcceptableError,
  notFoundError,
  requestEntityTooLargeError,
  resourceExpiredError,
  serverTimeoutError,
  serviceUnavailableError,
  timeoutError,
  tooLargeResourceVersionError,
  tooManyRequestsError,
  unauthorizedError,
  unsupportedMediaTypeError,
} from './status-errors.ts'
import {
  causeOf,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isGone,
  isInternalError,
  isInvalid,
  isNotFound,
  isRequestEntityTooLarge,
  isResourceExpired,
  isServerTimeout,
  isTimeout,
  isTooLargeResourceVersion,
  isTooManyRequests,
  isUnexpectedServerError,
  reasonOf,
  type Status,
  StatusError,
  statusErrorFrom,
  statusOf,
  suggestedDelaySeconds,
} from './status.ts'
import { fieldPath } from './validation/field-path.ts'

const pods = { group: '', resource: 'pods' }
const deployments = { group: 'apps', resource: 'deployments' }

/** The compact form of a status: code, reason, message and details as JSON. */
function brief({ status }: StatusError): [number | undefined, string | undefined, string | undefined, string] {
  return [status.code, status.reason, status.message, JSON.stringify(status.details)]
}

const table: [StatusError, ...ReturnType<typeof brief>][] = [
  [notFoundError(pods, 'a'), 404, 'NotFound', 'pods "a" not found', '{"name":"a","kind":"pods"}'],
  [
    alreadyExistsError(deployments, 'a'),
    409,
    'AlreadyExists',
    'deployments.apps "a" already exists',
    '{"name":"a","group":"apps","kind":"deployments"}',
  ],
  [
    generateNameConflictError(pods, 'a', 1),
    409,
    'AlreadyExists',
    'pods "a" already exists, the server was not able to generate a unique name for the object',
    '{"name":"a","kind":"pods","retryAfterSeconds":1}',
  ],
  [forbiddenError(pods, 'a', 'why'), 403, 'Forbidden', 'pods "a" is forbidden: why', '{"name":"a","kind":"pods"}'],
  [forbiddenError(pods, '', 'why'), 403, 'Forbidden', 'pods is forbidden: why', '{"kind":"pods"}'],
  [forbiddenError({ group: '', resource: '' }, '', 'why'), 403, 'Forbidden', 'forbidden: why', '{}'],
  [
    modifiedError({ group: '', resource: 'configmaps' }, 'a'),
    409,
    'Conflict',
    'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
    '{"name":"a","kind":"configmaps"}',
  ],
  [
    methodNotSupportedError(pods, 'delete'),
    405,
    'MethodNotAllowed',
    'delete is not supported on resources of kind "pods"',
    '{"kind":"pods"}',
  ],
  [
    serverTimeoutError(pods, 'list', 2),
    500,
    'ServerTimeout',
    'The list operation against pods could not be completed at this time, please try again.',
    '{"name":"list","kind":"pods","retryAfterSeconds":2}',
  ],
  [
    internalError(new Error('boom')),
    500,
    'InternalError',
    'Internal error occurred: boom',
    '{"causes":[{"message":"boom"}]}',
  ],
  [
    tooLargeResourceVersionError(999_999, 253, 1),
    504,
    'Timeout',
    'Timeout: Too large resource version: 999999, current: 253',
    '{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}',
  ],
  [tooManyRequestsError('slow', 10), 429, 'TooManyRequests', 'slow', '{"retryAfterSeconds":10}'],
  [timeoutError('t', 0), 504, 'Timeout', 'Timeout: t', '{}'],
  [
    genericError({ code: 404, method: 'GET' }),
    404,
    'NotFound',
    'the server could not find the requested resource',
    '{}',
  ],
  [
    genericError({ code: 409, method: 'POST', resource: pods, name: 'a' }),
    409,
    'AlreadyExists',
    'the server reported a conflict (post pods a)',
    '{"name":"a","kind":"pods"}',
  ],
  [
    genericError({ code: 502, method: 'GET', serverMessage: 'bad <gateway>', unexpected: true }),
    502,
    'InternalError',
    'an error on the server ("bad <gateway>") has prevented the request from succeeding',
    '{"causes":[{"reason":"UnexpectedServerResponse","message":"bad <gateway>"}]}',
  ],
  [
    genericError({ code: 418, method: 'GET' }),
    418,
    undefined,
    'the server responded with the status code 418 but did not return more information',
    '{}',
  ],
]

/** Errors without details. */
const bare: [StatusError, number, string, string][] = [
  [unauthorizedError(), 401, 'Unauthorized', 'not authorized'],
  [unauthorizedError('Unauthorized'), 401, 'Unauthorized', 'Unauthorized'],
  [badRequestError('b'), 400, 'BadRequest', 'b'],
  [goneError('g'), 410, 'Gone', 'g'],
  [resourceExpiredError('old'), 410, 'Expired', 'old'],
  [serviceUnavailableError('s'), 503, 'ServiceUnavailable', 's'],
  [
    requestEntityTooLargeError('limit is 3145728'),
    413,
    'RequestEntityTooLarge',
    'Request entity too large: limit is 3145728',
  ],
  [
    notAcceptableError(['application/json', 'application/yaml']),
    406,
    'NotAcceptable',
    'only the following media types are accepted: application/json, application/yaml',
  ],
  [
    unsupportedMediaTypeError(['application/json']),
    415,
    'UnsupportedMediaType',
    'the body of the request was in an unknown format - accepted media types include: application/json',
  ],
]

describe('API errors', () => {
  for (const [error, ...expected] of table)
    it(`have upstream's text: ${error.message}`, () => assert.deepEqual(brief(error), expected))
  for (const [error, code, reason, message] of bare) {
    it(`have upstream's text: ${error.message}`, () => {
      const expected = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code }
      assert.deepEqual(error.status, expected)
      assert.equal(JSON.stringify(error.status), JSON.stringify(expected))
    })
  }

  it('list field errors as causes, and duplicates once in the message', () => {
    const errors = [
      fieldPath('spec.a').required(''),
      fieldPath('spec.b').invalid(0, 'must be more'),
      fieldPath('spec.a').required(''),
    ]
    const { status } = invalidError({ group: 'apps', kind: 'Deployment' }, 'a', errors)
    assert.equal(
      status.message,
      'Deployment.apps "a" is invalid: [spec.a: Required value, spec.b: Invalid value: 0: must be more]',
    )
    assert.deepEqual(status.details, {
      name: 'a',
      group: 'apps',
      kind: 'Deployment',
      causes: [
        { reason: 'FieldValueRequired', message: 'Required value', field: 'spec.a' },
        { reason: 'FieldValueInvalid', message: 'Invalid value: 0: must be more', field: 'spec.b' },
        { reason: 'FieldValueRequired', message: 'Required value', field: 'spec.a' },
      ],
    })
    assert.equal(invalidError({ group: '', kind: 'Pod' }, 'a', []).message, 'Pod "a" is invalid')
  })

  it('contain the causes of an apply conflict', () => {
    const causes = [{ reason: 'FieldManagerConflict' as const, message: 'conflict with "m1"', field: '.data.k' }]
    const error = applyConflictError(causes, 'Apply failed with 1 conflict: conflict with "m1": .data.k')
    assert.deepEqual(error.status.details, { causes })
    assert.equal(causeOf(error, 'FieldManagerConflict')?.field, '.data.k')
  })
})

describe('predicates of API errors', () => {
  it('find a Status in the causes of an error', () => {
    const wrapped = new Error('sync failed', { cause: new Error('get', { cause: notFoundError(pods, 'a') }) })
    assert.ok(isNotFound(wrapped))
    assert.equal(reasonOf(wrapped), 'NotFound')
    assert.equal(statusOf(new Error('x')), undefined)
    assert.ok(!isNotFound(undefined) && !isNotFound('NotFound'))
  })

  it('distinguish conflicts from existing names, though both are 409', () => {
    assert.ok(isConflict(conflictError(pods, 'a', 'w')) && !isAlreadyExists(conflictError(pods, 'a', 'w')))
    assert.ok(isAlreadyExists(alreadyExistsError(pods, 'a')) && !isConflict(alreadyExistsError(pods, 'a')))
  })

  it('use the code only if the reason is unknown', () => {
    const odd = failure({ code: 403, message: 'm' })
    assert.ok(isForbidden(odd))
    const named = new StatusError({ ...odd.status, reason: 'Expired' })
    assert.ok(!isForbidden(named) && isResourceExpired(named) && !isGone(named))
    assert.ok(isForbidden(new StatusError({ ...odd.status, reason: 'SomethingNew' })))
    assert.ok(isTooManyRequests(new StatusError({ ...odd.status, reason: 'Invalid', code: 429 })))
    assert.ok(isRequestEntityTooLarge(new StatusError({ ...odd.status, reason: 'Invalid', code: 413 })))
  })

  it('distinguish client timeouts from server timeouts', () => {
    const future = tooLargeResourceVersionError(2, 1, 1)
    assert.ok(isTimeout(future) && isTooLargeResourceVersion(future) && !isServerTimeout(future))
    assert.ok(!isTooLargeResourceVersion(timeoutError('t', 1)))
    assert.ok(isServerTimeout(serverTimeoutError(pods, 'get', 0)) && !isInternalError(serverTimeoutError(pods, 'g', 0)))
    assert.ok(isUnexpectedServerError(genericError({ code: 500, method: 'GET', unexpected: true })))
  })

  it('return the retry delay', () => {
    assert.equal(suggestedDelaySeconds(serverTimeoutError(pods, 'get', 0)), 0)
    assert.equal(suggestedDelaySeconds(tooManyRequestsError('m', 3)), 3)
    assert.equal(suggestedDelaySeconds(timeoutError('t', 0)), undefined)
    assert.equal(suggestedDelaySeconds(new Error('x')), undefined)
  })

  it('accept only a Status', () => {
    const status: Status = invalidError({ group: '', kind: 'Pod' }, 'a', []).status
    const error = statusErrorFrom(JSON.parse(JSON.stringify(status)))
    assert.ok(error instanceof StatusError && isInvalid(error))
    assert.equal(error.message, 'Pod "a" is invalid')
    for (const other of [null, 'x', {}, { kind: 'Status', apiVersion: 'v2' }, { kind: 'Pod', apiVersion: 'v1' }]) {
      assert.equal(statusErrorFrom(other), undefined)
    }
  })
})
