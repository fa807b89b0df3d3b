/**
 * Decides who may read the past, and who may make the history forget. A user needs the permission to read the past at all, and the present permission for the
 * request. In a namespace, a user without that permission in all namespaces also needs it by the rules of that time. A namespace
 * that was deleted and created again shows such users nothing of its predecessor.
 */
import type { Authorize, Decision } from '#auth/access.ts'
import { type Access, asAuthorize, type Authorizer, resourceAccess } from '#auth/authorizer.ts'
import type { RequestInfo } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'

import { isMomentsPath } from './moments.ts'
import { isPastRange } from './past-moment.ts'

/** The permission to read the past at all: no default role but cluster-admin has it. */
const MOMENTS: Access = resourceAccess({ verb: 'get', group: 'hyperkube.io', version: 'v1', resource: 'moments' })
/** The permission to make the history forget. */
const FORGET: Access = { ...MOMENTS, verb: 'delete' }

export interface PastNamespaces {
  /** RBAC by the roles and bindings of that time. */
  readonly authorizer: Authorizer
  /** The uid of a namespace then; undefined: there was none. */
  uidOf(namespace: string): Promise<string | undefined>
}

export interface PastAccessOptions {
  /** The present rules. */
  readonly authorizer: Authorizer
  /** The present uid of a namespace. */
  readonly uidOf: (namespace: string) => Promise<string | undefined>
  /** Calls back with the state at a moment. */
  readonly withPastState: <T>(moment: string, task: (past: PastNamespaces) => Promise<T>) => Promise<T>
}

/** Authorizes requests for the present state as the authorizer does, and those for the past by all rules above. */
export function createPastAccess({ authorizer, uidOf, withPastState }: PastAccessOptions): Authorize {
  const authorizeNow = asAuthorize(authorizer)
  const decide = async (user: User, { moment = '', ...access }: RequestInfo): Promise<Decision> => {
    if (!(await authorizeNow(user, MOMENTS)).allowed)
      return refusal('only users who may get moments.hyperkube.io may read it')
    const isForgetting = access.verb === 'delete' || access.verb === 'deletecollection'
    if (isForgetting && !(await authorizeNow(user, FORGET)).allowed)
      return refusal('only users who may delete moments.hyperkube.io may make it forget')
    const decision = await authorizeNow(user, access)
    if (!decision.allowed || !access.isResource || access.namespace === '') return decision
    if ((await authorizeNow(user, { ...access, namespace: '' })).allowed) return decision
    if (isPastRange(moment)) return refusal('changes need the permission in all namespaces')
    return withPastState(moment, async (past) => {
      const { namespace } = access
      if (!(await asAuthorize(past.authorizer)(user, access)).allowed) return refusal('it was not allowed at that time')
      const [then, now] = await Promise.all([past.uidOf(namespace), uidOf(namespace)])
      return then !== undefined && then === now ? decision : refusal('the namespace has been created again since then')
    })
  }
  return (user, info) => {
    if (info.moment !== undefined) return decide(user, info)
    // To read which moments there are takes the permission to read the past.
    return authorizeNow(user, isMomentsPath(info) && info.verb === 'list' ? MOMENTS : info)
  }
}

function refusal(reason: string): Decision {
  return { allowed: false, reason: `the past is not readable: ${reason}` }
}
