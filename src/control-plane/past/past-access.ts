/**
 * Decides who may read the past. A user needs the permission to read the past at all, and the permission for the request
 * today. In a namespace, a user without that permission in all namespaces also needs the permission of then. A namespace
 * that was deleted and created again shows such users nothing of its predecessor.
 */
import type { Authorize, Decision } from '#auth/access.ts'
import { type Access, asAuthorize, type Authorizer, resourceAccess } from '#auth/authorizer.ts'
import type { RequestInfo } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'

import { isPastRange } from './past-moment.ts'

/** The permission to read the past at all: no default role but cluster-admin has it. */
const MOMENTS: Access = resourceAccess({ verb: 'get', group: 'hyperkube.io', version: 'v1', resource: 'moments' })

export interface NamespacePast {
  /** RBAC by the roles and bindings of then. */
  readonly authorizer: Authorizer
  /** The uid of a namespace then; undefined: there was none. */
  uidOf(namespace: string): Promise<string | undefined>
}

export interface PastAccessOptions {
  /** The rules of today. */
  readonly authorizer: Authorizer
  /** The uid of a namespace today. */
  readonly uidOf: (namespace: string) => Promise<string | undefined>
  /** Calls back with the state at a moment. */
  readonly withPast: <T>(moment: string, task: (past: NamespacePast) => Promise<T>) => Promise<T>
}

/** Authorizes requests of both kinds; those for today as the authorizer does. */
export function createPastAccess({ authorizer, uidOf, withPast }: PastAccessOptions): Authorize {
  const today = asAuthorize(authorizer)
  const decide = async (user: User, { moment = '', ...access }: RequestInfo): Promise<Decision> => {
    if (!(await today(user, MOMENTS)).allowed) return refusal('only users who may get moments.hyperkube.io may read it')
    const decision = await today(user, access)
    if (!decision.allowed || !access.isResource || access.namespace === '') return decision
    if ((await today(user, { ...access, namespace: '' })).allowed) return decision
    if (isPastRange(moment)) return refusal('changes need the permission in all namespaces')
    return withPast(moment, async (past) => {
      const { namespace } = access
      if (!(await asAuthorize(past.authorizer)(user, access)).allowed) return refusal('it was not allowed at that time')
      const [then, now] = await Promise.all([past.uidOf(namespace), uidOf(namespace)])
      return then !== undefined && then === now ? decision : refusal('the namespace has been created again since then')
    })
  }
  return (user, info) => (info.moment === undefined ? today(user, info) : decide(user, info))
}

function refusal(reason: string): Decision {
  return { allowed: false, reason: `the past is not readable: ${reason}` }
}
