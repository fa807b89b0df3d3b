/**
 * Finds or creates the User for an account of an identity provider, by provider and subject. It never matches by
 * username, which users of a provider may choose.
 */
import { forbiddenError } from '#meta/status-errors.ts'

import { type User, Users as UserKind } from '../kinds/user.ts'
import type { Users } from './users.ts'

/** An account as its provider describes it, after its owner has logged in there. */
export interface ProviderAccount {
  readonly provider: string
  /** People without a User get one. */
  readonly createsUsers: boolean
  /** Never changes, and is never given to another account. */
  readonly subject: string
  readonly username: unknown
  readonly displayName: unknown
  /** A list of names, or one name. */
  readonly groups: unknown
}

const MAX_GROUPS = 1000
const MAX_GROUP_CHARACTERS = 253
const MAX_USERNAME_CHARACTERS = 120
const MAX_DISPLAY_NAME_CHARACTERS = 1024

/** Stores the groups of the provider. Throws StatusError 403 for unknown identities and disabled users. */
export async function userOfAccount(users: Users, account: ProviderAccount): Promise<User> {
  const { provider, subject, groups } = account
  const user = users.ofIdentity({ provider, subject }) ?? (await createUser(users, account))
  if (user.spec.disabled === true) throw refusal('the user is disabled')
  const { name = '' } = user.metadata
  await users.noteLogin(name, { provider, names: groupsOf(provider, groups) })
  return user
}

async function createUser(users: Users, account: ProviderAccount): Promise<User> {
  const { provider, subject, createsUsers, displayName: name } = account
  if (!createsUsers) throw refusal(`no user of this server has the account of the provider "${provider}"`)
  const username = usernameFrom(account.username)
  const displayName = typeof name === 'string' ? name.slice(0, MAX_DISPLAY_NAME_CHARACTERS) : undefined
  return users.ensureOfIdentity({ provider, subject }, { username, displayName })
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
