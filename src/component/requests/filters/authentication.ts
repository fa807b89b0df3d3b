/** Authentication filter: finds the user of a request. Throws StatusError 401 for invalid credentials. */
import { anonymous, authenticated } from '#auth/access.ts'
import type { User } from '#auth/user.ts'
import { unauthorizedError } from '#meta/status-errors.ts'

import type { ActiveRequest } from '../active-request.ts'
import type { CreateFilter } from './filter.ts'

export const authentication: CreateFilter = ({ authenticate, allowsAnonymous = true, anonymousPaths }) => {
  const settle = (request: ActiveRequest, user: User | undefined): void => {
    if (user === undefined && (!allowsAnonymous || anonymousPaths?.includes(request.path) === false)) {
      request.meter.identified('failure', '')
      throw unauthorizedError('Unauthorized')
    }
    request.user = user === undefined ? anonymous : authenticated(user)
    request.meter.identified('success', request.user.name)
    if (request.user.warnings !== undefined) request.warnings.push(...request.user.warnings)
    request.trace?.identified(request.user)
  }
  const refuse = ({ meter }: ActiveRequest, error: unknown): never => {
    meter.identified('error', '')
    throw error
  }
  return (request) => {
    let found
    try {
      found = authenticate(request.exchange)
    } catch (error) {
      refuse(request, error)
    }
    if (!(found instanceof Promise)) return settle(request, found)
    return found.then(
      (user) => settle(request, user),
      (error: unknown) => refuse(request, error),
    )
  }
}
