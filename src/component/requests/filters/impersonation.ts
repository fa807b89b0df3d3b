/** Impersonation filter: replaces the user by the one that the headers name. Throws StatusError 400 and 403. */
import type { User } from '#auth/user.ts'

import type { ActiveRequest } from '../active-request.ts'
import type { CreateFilter } from './filter.ts'

export const impersonation: CreateFilter = ({ impersonate }) => {
  if (impersonate === undefined) return undefined
  const settle = (request: ActiveRequest, user: User): void => {
    request.user = user
    request.meter.passed('impersonation')
  }
  return (request) => {
    const found = impersonate(request.user, request.info, request.exchange, request.trail?.impersonated)
    return found instanceof Promise ? found.then((user) => settle(request, user)) : settle(request, found)
  }
}
