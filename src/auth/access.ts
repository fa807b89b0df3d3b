/**
 * Types of authentication, which finds the user of a request, and of authorization, which decides whether the user may
 * send it.
 */
import type { Exchange } from '#lib/http/exchange.ts'

import type { RequestInfo } from './request-info.ts'
import type { User } from './user.ts'

/** Undefined if the request has no credentials of this kind. Throws StatusError 401 for wrong credentials. */
export type Authenticate = (exchange: Exchange) => Promise<User | undefined> | User | undefined

export interface Decision {
  readonly allowed: boolean
  /** A denial that no later authorizer can overrule. */
  readonly denied?: boolean
  /** The reason, for access reviews and error messages. */
  readonly reason: string
}

/** `info` of the request; `user` is the impersonated user if the request impersonates one. */
export type Authorize = (user: User, info: RequestInfo) => Promise<Decision> | Decision

export const anonymous: User = { name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'], extra: {} }

export const allowAll: Authorize = () => ({ allowed: true, reason: '' })

/** Every authenticated user is a member of this group. */
export function authenticated(user: User): User {
  return user.groups.includes('system:authenticated')
    ? user
    : { ...user, groups: [...user.groups, 'system:authenticated'] }
}
