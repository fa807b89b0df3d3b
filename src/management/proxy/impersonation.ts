/**
 * Lets users impersonate other users of the server, as with `kubectl --as`, if the cluster allows it. Administrators
 * and service accounts of the cluster cannot be impersonated.
 */
import { SelfSubjectAccessReviews, type SelfSubjectAccessReviewSpec } from '#apis/authorization/v1.ts'
import { foreignGroup, isUserOfServer } from '#cluster-agent/caller.ts'
import type { Clock } from '#lib/clock.ts'
import type { HeaderList } from '#lib/http/exchange.ts'
import { forbiddenError } from '#meta/status-errors.ts'

import { clusterClient } from '../clusters/cluster-client.ts'
import type { ClusterLink, ClusterUser } from '../links/link.ts'

export interface Impersonation {
  readonly user: string
  readonly groups: readonly string[]
}

/** One review for each. */
const MAX_GROUPS = 50
const EVERYONE = 'system:authenticated'

/** Undefined: the request is for the caller. Throws StatusError 403. `Impersonate-Uid` and `-Extra-*` are never passed on. */
export function impersonationOf(rawHeaders: HeaderList): Impersonation | undefined {
  const users: string[] = []
  const groups: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase()
    if (name === 'impersonate-user') users.push(rawHeaders[at + 1] ?? '')
    else if (name === 'impersonate-group') groups.push(rawHeaders[at + 1] ?? '')
  }
  if (users.length === 0 && groups.length === 0) return undefined
  const [user = ''] = users
  if (users.length !== 1) throw refused('impersonation needs one header Impersonate-User')
  if (!isUserOfServer(user))
    throw refused(`only users of the management server (u-...) can be impersonated, not "${user.slice(0, MAX_SHOWN)}"`)
  const foreign = foreignGroup(groups)
  if (foreign !== undefined)
    throw refused(
      `only groups of the management server (hk:...) can be impersonated, not "${foreign.slice(0, MAX_SHOWN)}"`,
    )
  if (groups.length > MAX_GROUPS) throw refused(`at most ${MAX_GROUPS} groups can be impersonated`)
  return { user, groups: [...new Set(groups)].filter((group) => group !== EVERYONE) }
}

const MAX_SHOWN = 253

interface Reviewing {
  readonly link: ClusterLink
  readonly clock: Clock
  readonly caller: ClusterUser
  readonly signal: AbortSignal
}

/** The impersonated user as the cluster sees it. Throws StatusError 403 if the cluster does not allow it to the caller. */
export async function impersonate(
  { link, clock, caller, signal }: Reviewing,
  { user, groups }: Impersonation,
): Promise<ClusterUser> {
  const client = clusterClient(link, clock, caller)
  const may = async (resource: 'users' | 'groups', name: string): Promise<void> => {
    const spec: SelfSubjectAccessReviewSpec = { resourceAttributes: { verb: 'impersonate', resource, name } }
    const { status } = await client.create(SelfSubjectAccessReviews, { metadata: {}, spec }, { signal })
    const isAllowed = status?.allowed ?? false
    if (!isAllowed || status?.denied === true)
      throw forbiddenError({ group: '', resource }, name, `User "${caller.name}" cannot impersonate it`)
  }
  await Promise.all([may('users', user), ...groups.map((group) => may('groups', group))])
  return { name: user, groups: [...groups, EVERYONE] }
}

function refused(why: string): Error {
  return forbiddenError({ group: '', resource: '' }, '', why)
}
