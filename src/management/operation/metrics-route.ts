/** The route `/metrics`, for administrators and for users whose global role allows `get` on this path. */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { METRICS_CONTENT_TYPE, type Registry } from '#lib/metrics/metrics.ts'
import { forbiddenError } from '#meta/status-errors.ts'

import type { Memberships } from '../access/memberships.ts'
import type { Person } from '../person.ts'
import type { Route } from '../port/route.ts'

const PATH = '/metrics'

export function metricsRoute(memberships: Pick<Memberships, 'membersOf'>, registry: () => Registry): Route {
  return {
    method: 'GET',
    path: PATH,
    access: 'person',
    serve({ person }) {
      if (person === undefined || !mayRead(memberships, person))
        throw forbiddenError({ group: '', resource: '' }, '', 'metrics need the global role metrics-view')
      return { status: 200, headers: ['Content-Type', METRICS_CONTENT_TYPE], body: registry().render() }
    },
  }
}

function mayRead(memberships: Pick<Memberships, 'membersOf'>, { user }: Person): boolean {
  return memberships.membersOf(user).some(({ role }) => role.spec.scope === 'global' && role.spec.rules.some(allows))
}

/** As RBAC reads rules of paths: `*` at the end stands for anything. */
export function allows({ verbs, nonResourceURLs = [] }: PolicyRule): boolean {
  const isRead = verbs.includes('get') || verbs.includes('*')
  const covers = (url: string): boolean => url === PATH || (url.endsWith('*') && PATH.startsWith(url.slice(0, -1)))
  return isRead && nonResourceURLs.some(covers)
}
