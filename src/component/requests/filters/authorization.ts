/** Authorization filter: checks whether the user may send the request. Throws StatusError 403 if not. */
import type { Decision } from '#auth/access.ts'
import { forbiddenAccess } from '#auth/authorizer.ts'

import type { ActiveRequest } from '../active-request.ts'
import type { CreateFilter } from './filter.ts'

export const authorization: CreateFilter = ({ authorize }) => {
  return (request) => {
    const { user, info, trail } = request
    let decision
    try {
      decision = trail === undefined ? authorize(user, info) : trail.authorizing(authorize, user, info)
    } catch (error) {
      fail(request, error)
    }
    if (!(decision instanceof Promise)) return settle(request, decision)
    return decision.then(
      (made) => settle(request, made),
      (error: unknown) => fail(request, error),
    )
  }
}

function settle({ meter, user, info }: ActiveRequest, { allowed, denied, reason }: Decision): void {
  meter.decided(allowed ? 'allowed' : denied === true ? 'denied' : 'no-opinion')
  if (!allowed) throw forbiddenAccess(user, info, reason)
}

function fail({ meter }: ActiveRequest, error: unknown): never {
  meter.decided('error')
  throw error
}
