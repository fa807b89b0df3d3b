/** Returns the user who calls a route, and rejects tokens that may not use the route. */
import { failure, unauthorizedError } from '#meta/status-errors.ts'
import type { StatusError } from '#meta/status.ts'

import type { Person } from '../../person.ts'
import type { RouteCall } from '../../port/route.ts'

/** Any token. */
export function personOf({ person }: RouteCall): Person {
  if (person === undefined) throw unauthorizedError('Unauthorized')
  return person
}

/** Throws StatusError 403 for tokens of one cluster. */
export function readerOf(call: RouteCall): Person {
  const person = personOf(call)
  const { cluster } = person.token.spec
  if (cluster !== undefined) throw forbidden(`The token works for the cluster "${cluster}" only`)
  return person
}

/** Throws StatusError 403 for tokens of one cluster and for those that may not change anything. */
export function writerOf(call: RouteCall): Person {
  const person = readerOf(call)
  if (person.token.spec.readOnly === true) throw forbidden('The token is read-only')
  return person
}

export function forbidden(message: string): StatusError {
  return failure({ code: 403, reason: 'Forbidden', message })
}
