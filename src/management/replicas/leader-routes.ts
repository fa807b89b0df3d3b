/**
 * Lists the routes that only the leader of the replicas serves, because they need all counters and locks in one
 * process.
 */
import type { Route } from '../port/route.ts'

/** Log-in counts failures, and users must stay unique. The list of providers is the same everywhere. */
const PREFIXES = ['/v3-public/', '/v3/users', '/v3/members', '/v3/roles', '/v3/me/']
/** Its controllers must not write into a cluster while it is removed. */
const CLUSTER = '/v3/clusters/:cluster'
const ANYWHERE: ReadonlySet<string> = new Set(['/v3-public/providers'])

export function needsLeader({ method, path }: Pick<Route, 'method' | 'path'>): boolean {
  if (method === 'DELETE' && path === CLUSTER) return true
  if (ANYWHERE.has(path) || !PREFIXES.some((prefix) => path.startsWith(prefix))) return false
  // Reads of users are the same everywhere; log-ins are begun and completed by GET.
  return method !== 'GET' || path.startsWith('/v3-public/')
}
