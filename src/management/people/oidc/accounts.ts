/**
 * Finds or creates the User of an OpenID identity, by provider and subject. It never matches by username, which users
 * of a provider may choose.
 */
import type { Claims } from '#lib/jwt/token.ts'
import { forbiddenError } from '#meta/status-errors.ts'

import type { AuthProviderSpec } from '../../kinds/auth-provider.ts'
import { type User, Users as UserKind } from '../../kinds/user.ts'
import type { Users } from '../users.ts'

interface ProviderAccount {
  readonly provider: string
  readonly spec: AuthProviderSpec
  /** Of a verified ID token. */
  readonly claims: Claims
}

const MAX_GROUPS = 1000
const MAX_GROUP_CHARACTERS = 253
const MAX_USERNAME_CHARACTERS = 120
const MAX_DISPLAY_NAME_CHARACTERS = 1024

/** Stores the groups of the provider. Throws StatusError 403 for unknown identities and disabled users. */
export async function userOfIdentity(users: Users, { provider, spec, claims }: ProviderAccount): Promise<User> {
  const identity = { provider, subject: String(claims['sub']) }
  const user = users.ofIdentity(identity) ?? (await createUser(users, { provider, spec, claims }))
  if (user.spec.disabled === true) throw refusal('the user is disabled')
  const { name = '' } = user.metadata
  await users.noteLogin(name, { provider, names: groupsOf(provider, claims[spec.claims?.groups ?? 'groups']) })
  return user
}

async function createUser(users: Users, { provider, spec, claims }: ProviderAccount): Promise<User> {
  if (spec.createsUsers !== true) throw refusal(`nobody here has this account of the provider "${provider}"`)
  const { sub, name } = claims
  const username = usernameFrom(claims[spec.claims?.username ?? 'preferred_username'])
  const displayName = typeof name === 'string' ? name.slice(0, MAX_DISPLAY_NAME_CHARACTERS) : undefined
  return users.ensureOfIdentity({ provider, subject: String(sub) }, { username, displayName })
}

/** Other characters than a username may have become `-`. */
function usernameFrom(claim: unknown): string {
  const text = typeof claim === 'string' ? claim.slice(0, MAX_USERNAME_CHARACTERS).toLowerCase() : ''
  const username = text.replaceAll(/[^a-z0-9._@-]+/g, '-').replaceAll(/^[._@-]+|[._@-]+$/g, '')
  return username === '' ? 'user' : username
}

/** A provider may send one group without a list. */
function groupsOf(provider: string, claim: unknown): string[] {
  const list: unknown[] = Array.isArray(claim) ? claim : [claim]
  const groups = list
    .filter((group): group is string => typeof group === 'string' && group !== '')
    .map((group) => `${provider}:${group}`)
  return [...new Set(groups)].filter((group) => group.length <= MAX_GROUP_CHARACTERS).slice(0, MAX_GROUPS)
}

function refusal(why: string): Error {
  return forbiddenError({ group: UserKind.group, resource: UserKind.plural }, '', why)
}
