/**
 * Impersonation by request headers. Constrained impersonation (KEP 5284) comes first: the requester needs
 * `impersonate:<mode>` for the user and `impersonate-on:<mode>:<verb>` for the action. The legacy verb `impersonate`
 * allows every action. The first mode that allows it counts; otherwise the first refusal is returned.
 */
import { type Access, type Authorizer, forbiddenAccess, PRIVILEGED_GROUP, resourceAccess } from '#auth/authorizer.ts'
import { extrasByPrefix, headerTexts } from '#auth/credentials/header-text.ts'
import {
  EXTRA,
  extraValue,
  parseNodeUser,
  parseServiceAccountUser,
  serviceAccountGroups,
} from '#auth/credentials/service-account-name.ts'
import type { User } from '#auth/user.ts'
import type { Impersonate, NoteImpersonation } from '#component/requests/request-filters.ts'
import { compareText, goQuote } from '#lib/go/text.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { badRequestError } from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { validateDomainPrefixedPath } from '#meta/validation/rules.ts'

export interface ImpersonationOptions {
  readonly authorizer: Authorizer
  /** The gate ConstrainedImpersonation; without it only the legacy verb counts. */
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

/** The user from the headers, without additions. Undefined for requests without impersonation. */
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

/** The form in which Go prints a user without a name, as in upstream's errors. */
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

interface ImpersonationRequest {
  readonly authorizer: Authorizer
  readonly user: User
  readonly info: Access
  readonly note: NoteImpersonation | undefined
}

interface Mode {
  /** `impersonate:<name>` and `impersonate-on:<name>:<verb>`; empty for the legacy mode. */
  readonly name: string
  /** True if the mode handles such users. */
  applies(wanted: User, asker: User): boolean
  /** Adapts the check for the authorizer. */
  ask?(request: ImpersonationRequest, access: Access): readonly [User, Access]
}

const LEGACY: Mode = { name: '', applies: () => true }

const CONSTRAINED_MODES: readonly Mode[] = [
  {
    name: 'associated-node',
    // A service account may impersonate the node that its token names.
    applies: (wanted, asker) =>
      isBare(wanted) &&
      parseServiceAccountUser(asker.name) !== undefined &&
      parseNodeUser(wanted.name) !== undefined &&
      extraValue(asker, EXTRA.nodeName) === parseNodeUser(wanted.name),
    // The right is the same for every node: the node was just checked, and policies should not depend on its name.
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

/** Only a name: the server determines everything else about nodes and service accounts. */
function isBare({ uid, groups, extra }: User): boolean {
  return uid === '' && groups.length === 0 && Object.keys(extra).length === 0
}

async function become(request: ImpersonationRequest, wanted: User, modes: readonly Mode[]): Promise<User> {
  let refusal: StatusError | undefined
  for (const mode of modes.filter((one) => one.applies(wanted, request.user))) {
    try {
      const user = await becomeBy(request, wanted, mode)
      request.note?.(user, mode.name === '' ? '' : `impersonate:${mode.name}`)
      return user
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      refusal ??= error
    }
  }
  throw refusal ?? forbiddenAccess(request.user, request.info, 'all impersonation modes failed')
}

async function becomeBy(request: ImpersonationRequest, wanted: User, mode: Mode): Promise<User> {
  const { info } = request
  const isConstrained = mode.name !== ''
  if (isConstrained) await check(request, mode, { ...info, verb: `impersonate-on:${mode.name}:${info.verb}` })
  await check(request, mode, nameAccess(wanted, mode))
  if (wanted.uid !== '') await check(request, mode, part(mode, AUTHENTICATION, { resource: 'uids', name: wanted.uid }))
  await checkGroups(request, mode, wanted.groups)
  await checkExtra(request, mode, wanted.extra)
  return complete(wanted, isConstrained)
}

const AUTHENTICATION = 'authentication.k8s.io'

function part({ name }: Mode, group: string, rest: Pick<Access, 'resource' | 'name'> & Partial<Access>): Access {
  return resourceAccess({ verb: name === '' ? 'impersonate' : `impersonate:${name}`, group, version: 'v1', ...rest })
}

/** In the legacy mode users and groups have no API group. */
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

/** From this number on, a right to all of them is checked first. */
const MANY = 4

async function checkGroups(request: ImpersonationRequest, mode: Mode, groups: readonly string[]): Promise<void> {
  const one = (name: string): Access => part(mode, identityGroup(mode), { resource: 'groups', name })
  if (mode.name !== '') {
    const { user } = request
    if (groups.includes('')) throw forbiddenAccess(user, one(''), 'impersonating the empty string group is not allowed')
    if (groups.includes(PRIVILEGED_GROUP)) {
      const why = 'impersonating the system:masters group is not allowed'
      throw forbiddenAccess(user, one(PRIVILEGED_GROUP), why)
    }
    if (groups.length >= MANY && (await may(request, mode, one('*')))) return
  }
  for (const group of groups) await check(request, mode, one(group))
}

async function checkExtra(request: ImpersonationRequest, mode: Mode, extra: User['extra']): Promise<void> {
  const one = (subresource: string, name: string): Access =>
    part(mode, AUTHENTICATION, { resource: 'userextras', subresource, name })
  const pairs = Object.entries(extra).flatMap(([key, values]) => values.map((value) => [key, value] as const))
  if (mode.name !== '') {
    const problem = findExtraProblem(extra)
    if (problem !== undefined) throw forbiddenAccess(request.user, one('', ''), problem)
    if (pairs.length >= MANY && (await may(request, mode, one('*', '*')))) return
  }
  for (const [key, value] of pairs) await check(request, mode, one(key, value))
}

function findExtraProblem(extra: User['extra']): string | undefined {
  for (const [key, values] of Object.entries(extra)) {
    if (key === '') return 'impersonating the empty string key in extra is not allowed'
    const errors = validateDomainPrefixedPath(fieldPath('extra.key'), key)
    if (errors.length > 0) return `impersonating an invalid key in extra is not allowed: ${aggregateText(errors)}`
    if (key !== key.toLowerCase())
      return `impersonating a non-lowercase key in extra is not allowed: ${JSON.stringify(key)}`
    if (values.includes('')) return 'impersonating the empty string value in extra is not allowed'
  }
  return undefined
}

async function may(request: ImpersonationRequest, mode: Mode, access: Access): Promise<boolean> {
  const [user, question] = mode.ask?.(request, access) ?? [request.user, access]
  return (await request.authorizer.authorize(user, question)).allowed
}

async function check(request: ImpersonationRequest, mode: Mode, access: Access): Promise<void> {
  const [user, question] = mode.ask?.(request, access) ?? [request.user, access]
  const { allowed, reason, error = '' } = await request.authorizer.authorize(user, question)
  if (!allowed) throw forbiddenAccess(user, question, [error, reason].filter((text) => text !== '').join(': '))
}

/** Adds the implicit groups of the user's kind, unless groups were requested. */
function complete(wanted: User, isConstrained: boolean): User {
  const account = parseServiceAccountUser(wanted.name)
  const groups = [...wanted.groups]
  if (groups.length === 0 && account !== undefined) groups.push(...serviceAccountGroups(account.namespace))
  if (isConstrained && parseNodeUser(wanted.name) !== undefined) groups.push('system:nodes')
  const implicitGroup =
    wanted.name === 'system:anonymous' || groups.includes('system:unauthenticated')
      ? 'system:unauthenticated'
      : 'system:authenticated'
  return { ...wanted, groups: groups.includes(implicitGroup) ? groups : [...groups, implicitGroup] }
}
