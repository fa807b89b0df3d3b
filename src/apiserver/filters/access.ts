/** Who is asking and whether they may: the two questions every request is asked before anything else looks at it. */
import type { Exchange } from '#lib/http/exchange.ts'

import type { User } from '../registry/resource.ts'
import type { RequestInfo } from '../request-info.ts'

/** Undefined: no credentials of this kind. Throws StatusError 401 for credentials that are wrong. */
export type Authenticate = (exchange: Exchange) => Promise<User | undefined> | User | undefined

export interface Decision {
  readonly allowed: boolean
  /** A no that nobody else could have overruled. */
  readonly denied?: boolean
  /** Why, for the answer to access reviews and for people. */
  readonly reason: string
}

/** `info` of the request, with the user already impersonated where asked for. */
export type Authorize = (user: User, info: RequestInfo) => Promise<Decision> | Decision

export const anonymous: User = { name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'], extra: {} }

export const allowAll: Authorize = () => ({ allowed: true, reason: '' })

/** Everybody who got in is in this group. */
export function authenticated(user: User): User {
  return user.groups.includes('system:authenticated')
    ? user
    : { ...user, groups: [...user.groups, 'system:authenticated'] }
}
