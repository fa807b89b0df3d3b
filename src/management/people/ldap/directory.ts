/**
 * Checks a password with an LDAP server and reads the account and its groups: searches the account, binds as it, then
 * searches groups.
 */
import type { LdapGroupSettings, LdapSettings } from '../../kinds/auth-provider.ts'
import { ProviderError } from '../provider-error.ts'
import type { LdapConnection, LdapEntry } from './connection.ts'
import { filterFor } from './filter.ts'

export interface DirectoryOptions {
  readonly settings: LdapSettings
  /** Of `bindDN`; empty without it. */
  readonly bindPassword: string
}

export interface DirectoryAccount {
  readonly subject: string
  readonly username: string
  readonly displayName: string | undefined
  readonly groups: readonly string[]
}

export interface LdapCredentials {
  readonly username: string
  readonly password: string
}

/** Longer names are refused. */
const MAX_USERNAME = 128
const MAX_PASSWORD_BYTES = 1024
/** The longest name that an object can store. */
const MAX_SUBJECT = 253
const MAX_GROUPS = 1000
/** So many groups are looked up in one search. */
const GROUPS_PER_SEARCH = 50
const MAX_SEARCHES = 50
const DEFAULT_DEPTH = 5

/** Undefined for a wrong username or password. Throws ProviderError. */
export async function findAccount(
  connection: LdapConnection,
  options: DirectoryOptions,
  { username, password }: LdapCredentials,
): Promise<DirectoryAccount | undefined> {
  // A bind without a password is anonymous, and succeeds for every name: RFC 4513, 5.1.2.
  if (!isLength(Buffer.byteLength(password), MAX_PASSWORD_BYTES) || !isLength(username.length, MAX_USERNAME))
    return undefined
  await bindService(connection, options)
  const entry = await findUser(connection, options.settings, username)
  // As many requests for unknown names as for others.
  const dn = entry?.dn ?? `cn=unknown,${options.settings.users.searchBase}`
  // An empty name is anonymous too.
  const isRight = dn !== '' && (await connection.bind(dn, password))
  if (!isRight || entry === undefined) return undefined
  return readAccount(connection, options, { entry, username })
}

function isLength(length: number, max: number): boolean {
  return length > 0 && length <= max
}

async function readAccount(
  connection: LdapConnection,
  options: DirectoryOptions,
  { entry, username }: { readonly entry: LdapEntry; readonly username: string },
): Promise<DirectoryAccount> {
  const { users, groups } = options.settings
  const name = valueOf(entry, users.usernameAttribute ?? 'uid') ?? username
  // The account itself need not see its groups.
  if (groups !== undefined) await bindService(connection, options)
  return {
    subject: subjectOf(entry, users.idAttribute ?? 'entryUUID'),
    username: name,
    displayName: valueOf(entry, users.displayNameAttribute ?? 'cn'),
    groups: groups === undefined ? [] : await groupsOf(connection, groups, { dn: entry.dn, username: name }),
  }
}

async function bindService(connection: LdapConnection, { settings, bindPassword }: DirectoryOptions): Promise<void> {
  if (settings.bindDN === undefined) return
  if (bindPassword === '') throw new ProviderError('The password of bindDN is empty')
  if (!(await connection.bind(settings.bindDN, bindPassword))) throw new ProviderError('The server refuses bindDN')
}

/** Several accounts with one name are an error: the username does not select one of them. */
async function findUser(
  connection: LdapConnection,
  { users }: LdapSettings,
  username: string,
): Promise<LdapEntry | undefined> {
  const { searchBase, filter = '(objectClass=person)', usernameAttribute = 'uid' } = users
  const { displayNameAttribute = 'cn', idAttribute = 'entryUUID' } = users
  const entries = await connection.search({
    base: searchBase,
    filter: filterFor(filter, usernameAttribute, [username]),
    attributes: [usernameAttribute, displayNameAttribute, idAttribute],
    maxEntries: 2,
  })
  if (entries.length > 1) throw new ProviderError('Several accounts have the same username')
  return entries[0]
}

function subjectOf(entry: LdapEntry, attribute: string): string {
  const subject = valueOf(entry, attribute)
  if (subject !== undefined && subject !== '' && subject.length <= MAX_SUBJECT) return subject
  throw new ProviderError(`The account has no usable attribute "${attribute}"`)
}

function valueOf({ attributes }: LdapEntry, name: string): string | undefined {
  return attributes[name.toLowerCase()]?.[0]
}

/** The names of the groups of an account, and of the groups that contain these, each once. */
async function groupsOf(
  connection: LdapConnection,
  settings: LdapGroupSettings,
  { dn, username }: { readonly dn: string; readonly username: string },
): Promise<readonly string[]> {
  const { nameAttribute = 'cn', memberValue = 'dn', maxDepth = DEFAULT_DEPTH } = settings
  /** By DN. */
  const groups = new Map<string, LdapEntry>()
  let members = [memberValue === 'dn' ? dn : username]
  let searches = 0
  for (let depth = 0; depth <= maxDepth && members.length > 0; depth++) {
    searches += Math.ceil(members.length / GROUPS_PER_SEARCH)
    if (searches > MAX_SEARCHES) throw new ProviderError('The account is in too many groups')
    const found = await groupsWith(connection, settings, members)
    const added = found.filter(({ dn: name }) => !groups.has(name.toLowerCase()))
    for (const group of added) groups.set(group.dn.toLowerCase(), group)
    if (groups.size > MAX_GROUPS) throw new ProviderError(`The account is in more than ${MAX_GROUPS} groups`)
    members = memberValue === 'dn' ? added.map((group) => group.dn) : []
  }
  const names = [...groups.values()].map((group) => valueOf(group, nameAttribute))
  return [...new Set(names.filter((name) => name !== undefined))]
}

/** The groups that have one of the members. */
async function groupsWith(
  connection: LdapConnection,
  settings: LdapGroupSettings,
  members: readonly string[],
): Promise<readonly LdapEntry[]> {
  const { searchBase, filter = '(objectClass=groupOfNames)' } = settings
  const { nameAttribute = 'cn', memberAttribute = 'member' } = settings
  const found: LdapEntry[] = []
  for (let from = 0; from < members.length; from += GROUPS_PER_SEARCH) {
    const some = members.slice(from, from + GROUPS_PER_SEARCH)
    const search = { base: searchBase, attributes: [nameAttribute], maxEntries: MAX_GROUPS }
    found.push(...(await connection.search({ ...search, filter: filterFor(filter, memberAttribute, some) })))
  }
  return found
}
