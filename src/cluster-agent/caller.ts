/**
 * Checks for which user the management server sends a request, before the agent impersonates that user. A compromised
 * server can name only its own users and groups, no other identity of the cluster.
 */
import type { HeaderList } from '#lib/http/exchange.ts'

/** Names that only the management server gives: users such as `u-x7k2p`, and `hk:server`, the server itself. */
const USER = /^u-[a-z0-9]{1,60}$/
const SERVER = 'hk:server'
/** Groups that only the management server gives, such as `hk:cluster:cluster-owner`. */
const GROUP = /^hk:[\w.:-]{1,250}$/
const EVERYONE = 'system:authenticated'
const MAX_GROUPS = 500

export interface Caller {
  readonly user: string
  readonly groups: readonly string[]
}

/** The caller, or the reason why the request is refused. */
export function callerOf({ rawHeaders }: { readonly rawHeaders: HeaderList }): Caller | { readonly refused: string } {
  const users: string[] = []
  const groups: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase()
    const value = rawHeaders[at + 1] ?? ''
    if (name === 'impersonate-user') users.push(value)
    else if (name === 'impersonate-group') groups.push(value)
    else if (name.startsWith('impersonate-')) return { refused: `the header ${name} is not allowed` }
  }
  const [user = ''] = users
  if (users.length !== 1 || !(isUserOfServer(user) || user === SERVER))
    return { refused: 'the user is not one of the management server' }
  if (groups.length > MAX_GROUPS) return { refused: `more than ${MAX_GROUPS} groups` }
  return foreignGroup(groups) === undefined
    ? { user, groups }
    : { refused: 'a group is not one of the management server' }
}

/** Whether the name is one that the management server gives to people. */
export function isUserOfServer(name: string): boolean {
  return USER.test(name)
}

/** The first group that the management server does not give. */
export function foreignGroup(groups: readonly string[]): string | undefined {
  return groups.find((group) => group !== EVERYONE && !GROUP.test(group))
}
