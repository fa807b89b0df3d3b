/**
 * Impersonation: a request made in somebody else's name, by headers. Constrained impersonation (KEP 5284) comes first:
 * the asker needs `impersonate:<mode>` for whom, and `impersonate-on:<mode>:<verb>` for what. Whoever may `impersonate` in
 * the old way may do everything in the other's name. The first mode that allows it counts; the first refusal is told.
 */
import { compareText, goQuote } from '#lib/go-text.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { badRequestError } from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import { validateDomainPrefixedPath } from '#meta/validation/rules.ts'

import {
  type Access,
  type Authorizer,
  forbiddenAccess,
  PRIVILEGED_GROUP,
  resourceAccess,
} from '../authorizers/authorizer.ts'
import { extrasByPrefix, headerTexts } from '../credentials/header-text.ts'
import {
  EXTRA,
  extraValue,
  parseNodeUser,
  parseServiceAccountUser,
  serviceAccountGroups,
} from '../credentials/service-account-name.ts'
import type { User } from '../registry/resource.ts'

/**
 * The user a request counts as: the one who asks, or whom it asks to be. Between authentication and authorization.
 * Throws StatusError 400 and 403.
 */
export type Impersonate = (
  user: User,
  info: Access,
  exchange: Pick<Exchange, 'rawHeaders'>,
  note?: NoteImpersonation,
) => User | Promise<User>

/** Told whom a request counts as instead, and within what limits: `impersonate:<mode>`, or empty for none. */
export type NoteImpersonation = (user: User, constraint: string) => void

export interface ImpersonationOptions {
  readonly authorizer: Authorizer
  /** The gate ConstrainedImpersonation; without it only the old verb counts. */
  readonly isConstrained: boolean
}

export function createImpersonation({ authorizer, isConstrained }: ImpersonationOptions): Impersonate {
  const modes = isConstrained ? [...CONSTRAINED_MODES, LEGACY] : [LEGACY]
  return (user, info, { rawHeaders }, note) => {
    const wanted = wantedUser({ rawHeaders })
    return wanted === undefined ? user : become({ authorizer, user, info, note }, wanted, modes)
  }
}

const PREFIX = 'impersonate-'
const EXTRA_PREFIX = 'impersonate-extra-'

/** As the headers say, nothing added. Undefined for the many requests that impersonate nobody. */
function wantedUser(exchange: Pick<Exchange, 'rawHeaders'>): User | undefined {
  if (!mentions(exchange.rawHeaders)) return undefined
  const [name = ''] = headerTexts(exchange, 'impersonate-user')
  const [uid = ''] = headerTexts(exchange, 'impersonate-uid')
  const groups = headerTexts(exchange, 'impersonate-group')
  const extra = extrasByPrefix(exchange, [EXTRA_PREFIX])
  if (name !== '') return { name, uid, groups, extra }
  if (uid === '' && groups.length === 0 && Object.keys(extra).length === 0) return undefined
  throw badRequestError(`requested ${goInfoText(uid, groups, extra)} without impersonating a user name`)
}

/** A user without name as Go prints its own: upstream shows it so. */
function goInfoText(uid: string, groups: readonly string[], extra: User['extra']): string {
  const list = (texts: readonly string[]): string =>
    texts.length === 0 ? '[]string(nil)' : `[]string{${texts.map(goQuote).join(', ')}}`
  const keys = Object.keys(extra).sort(compareText)
  const pairs = keys.map((key) => `${goQuote(key)}:${list(extra[key] ?? [])}`).join(', ')
  const map = keys.length === 0 ? '(nil)' : `{${pairs}}`
  return `&user.DefaultInfo{Name:"", UID:${goQuote(uid)}, Groups:${list(groups)}, Extra:map[string][]string${map}}`
}

function mentions(rawHeaders: readonly string[]): boolean {
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.length > PREFIX.length && name.slice(0, PREFIX.length).toLowerCase() === PREFIX) return true
  }
  return false
}

interface Asked {
  readonly authorizer: Authorizer
  readonly user: User
  readonly info: Access
  readonly note: NoteImpersonation | undefined
}

interface Mode {
  /** `impersonate:<name>` and `impersonate-on:<name>:<verb>`; empty for the old way. */
  readonly name: string
  /** Whether it is about such a user at all. */
  applies(wanted: User, asker: User): boolean
  /** How the question is put to the authorizer. */
  ask?(asked: Asked, access: Access): readonly [User, Access]
}

const LEGACY: Mode = { name: '', applies: () => true }

const CONSTRAINED_MODES: readonly Mode[] = [
  {
    name: 'associated-node',
    // A service account whose token says which node it runs on may be that node.
    applies: (wanted, asker) =>
      isBare(wanted) &&
      parseServiceAccountUser(asker.name) !== undefined &&
      parseNodeUser(wanted.name) !== undefined &&
      extraValue(asker, EXTRA.nodeName) === parseNodeUser(wanted.name),
    // The same right for every node: which one it is has just been checked, and policies should not depend on it.
    ask: ({ user }, access) => [
      { ...user, extra: { 'authentication.kubernetes.io/associated-node-keys': Object.keys(user.extra).sort() } },
      access.verb === 'impersonate:associated-node' ? { ...access, name: '*' } : access,
    ],
  },
  { name: 'arbitrary-node', applies: (wanted) => isBare(wanted) && parseNodeUser(wanted.name) !== undefined },
  {
    name: 'serviceaccount',
    applies: (wanted) => isBare(wanted) && parseServiceAccountUser(wanted.name) !== undefined,
  },
  {
    name: 'user-info',
    applies: ({ name }) => parseNodeUser(name) === undefined && parseServiceAccountUser(name) === undefined,
  },
]

/** Only a name: everything else about nodes and service accounts is the server's to say. */
function isBare({ uid, groups, extra }: User): boolean {
  return uid === '' && groups.length === 0 && Object.keys(extra).length === 0
}

async function become(asked: Asked, wanted: User, modes: readonly Mode[]): Promise<User> {
  let refusal: StatusError | undefined
  for (const mode of modes.filter((one) => one.applies(wanted, asked.user))) {
    try {
      const user = await becomeBy(asked, wanted, mode)
      asked.note?.(user, mode.name === '' ? '' : `impersonate:${mode.name}`)
      return user
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      refusal ??= error
    }
  }
  throw refusal ?? forbiddenAccess(asked.user, asked.info, 'all impersonation modes failed')
}

async function becomeBy(asked: Asked, wanted: User, mode: Mode): Promise<User> {
  const { info } = asked
  const isConstrained = mode.name !== ''
  if (isConstrained) await check(asked, mode, { ...info, verb: `impersonate-on:${mode.name}:${info.verb}` })
  await check(asked, mode, nameAccess(wanted, mode))
  if (wanted.uid !== '') await check(asked, mode, part(mode, AUTHENTICATION, { resource: 'uids', name: wanted.uid }))
  await checkGroups(asked, mode, wanted.groups)
  await checkExtra(asked, mode, wanted.extra)
  return complete(wanted, isConstrained)
}

const AUTHENTICATION = 'authentication.k8s.io'

function part({ name }: Mode, group: string, rest: Pick<Access, 'resource' | 'name'> & Partial<Access>): Access {
  return resourceAccess({ verb: name === '' ? 'impersonate' : `impersonate:${name}`, group, version: 'v1', ...rest })
}

/** Users and groups have no group of the API in the old way. */
function identityGroup({ name }: Mode): string {
  return name === '' ? '' : AUTHENTICATION
}

function nameAccess({ name }: User, mode: Mode): Access {
  const group = identityGroup(mode)
  const account = parseServiceAccountUser(name)
  if (account !== undefined) return part(mode, group, { resource: 'serviceaccounts', ...account })
  const node = mode.name === '' ? undefined : parseNodeUser(name)
  return node === undefined
    ? part(mode, group, { resource: 'users', name })
    : part(mode, group, { resource: 'nodes', name: node })
}

/** From so many on, a right to all of them is looked for first. */
const MANY = 4

async function checkGroups(asked: Asked, mode: Mode, groups: readonly string[]): Promise<void> {
  const one = (name: string): Access => part(mode, identityGroup(mode), { resource: 'groups', name })
  if (mode.name !== '') {
    const { user } = asked
    if (groups.includes('')) throw forbiddenAccess(user, one(''), 'impersonating the empty string group is not allowed')
    if (groups.includes(PRIVILEGED_GROUP)) {
      const why = 'impersonating the system:masters group is not allowed'
      throw forbiddenAccess(user, one(PRIVILEGED_GROUP), why)
    }
    if (groups.length >= MANY && (await may(asked, mode, one('*')))) return
  }
  for (const group of groups) await check(asked, mode, one(group))
}

async function checkExtra(asked: Asked, mode: Mode, extra: User['extra']): Promise<void> {
  const one = (subresource: string, name: string): Access =>
    part(mode, AUTHENTICATION, { resource: 'userextras', subresource, name })
  const pairs = Object.entries(extra).flatMap(([key, values]) => values.map((value) => [key, value] as const))
  if (mode.name !== '') {
    const problem = findExtraProblem(extra)
    if (problem !== undefined) throw forbiddenAccess(asked.user, one('', ''), problem)
    if (pairs.length >= MANY && (await may(asked, mode, one('*', '*')))) return
  }
  for (const [key, value] of pairs) await check(asked, mode, one(key, value))
}

function findExtraProblem(extra: User['extra']): string | undefined {
  for (const [key, values] of Object.entries(extra)) {
    if (key === '') return 'impersonating the empty string key in extra is not allowed'
    const errors = validateDomainPrefixedPath('extra.key', key)
    if (errors.length > 0) return `impersonating an invalid key in extra is not allowed: ${aggregateText(errors)}`
    if (key !== key.toLowerCase())
      return `impersonating a non-lowercase key in extra is not allowed: ${JSON.stringify(key)}`
    if (values.includes('')) return 'impersonating the empty string value in extra is not allowed'
  }
  return undefined
}

async function may(asked: Asked, mode: Mode, access: Access): Promise<boolean> {
  const [user, question] = mode.ask?.(asked, access) ?? [asked.user, access]
  return (await asked.authorizer.authorize(user, question)).allowed
}

async function check(asked: Asked, mode: Mode, access: Access): Promise<void> {
  const [user, question] = mode.ask?.(asked, access) ?? [asked.user, access]
  const { allowed, reason, error = '' } = await asked.authorizer.authorize(user, question)
  if (!allowed) throw forbiddenAccess(user, question, [error, reason].filter((text) => text !== '').join(': '))
}

/** With the groups everybody of the kind has, unless groups were asked for. */
function complete(wanted: User, isConstrained: boolean): User {
  const account = parseServiceAccountUser(wanted.name)
  const groups = [...wanted.groups]
  if (groups.length === 0 && account !== undefined) groups.push(...serviceAccountGroups(account.namespace))
  if (isConstrained && parseNodeUser(wanted.name) !== undefined) groups.push('system:nodes')
  const everybody =
    wanted.name === 'system:anonymous' || groups.includes('system:unauthenticated')
      ? 'system:unauthenticated'
      : 'system:authenticated'
  return { ...wanted, groups: groups.includes(everybody) ? groups : [...groups, everybody] }
}
