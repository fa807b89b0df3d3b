/**
 * Accepts an API token that another replica created a moment ago, before the watch event has arrived at this replica.
 */
import type { Exchange } from '#lib/http/exchange.ts'
import { StatusError } from '#meta/status.ts'

import { Tokens } from '../kinds/token.ts'
import { Users } from '../kinds/user.ts'
import type { ManagementObjects } from '../objects.ts'
import { tokenNamesOf } from '../people/authenticate.ts'
import type { People } from '../people/people.ts'

/** Wrong tokens must not become a flood of requests to the datastore. */
const MAX_AT_ONCE = 8

export function acceptFreshTokens(
  authenticate: People['authenticate'],
  objects: Pick<ManagementObjects, 'get' | 'arrives'>,
): People['authenticate'] {
  let asking = 0
  const hasArrived = async (exchange: Exchange): Promise<boolean> => {
    const [name, ...others] = tokenNamesOf(exchange)
    const isKnown = name === undefined || others.length > 0 || objects.get(Tokens, name) !== undefined
    if (isKnown || asking >= MAX_AT_ONCE) return false
    asking++
    try {
      if (!(await objects.arrives(Tokens, name))) return false
      return await objects.arrives(Users, objects.get(Tokens, name)?.spec.user ?? '-')
    } finally {
      asking--
    }
  }
  return async (exchange, address) => {
    try {
      return await authenticate(exchange, address)
    } catch (error) {
      const isUnknown = error instanceof StatusError && error.status.code === 401
      if (isUnknown && (await hasArrived(exchange))) return authenticate(exchange, address)
      throw error
    }
  }
}
