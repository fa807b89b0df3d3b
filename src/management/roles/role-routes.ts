/** The HTTP routes for roles. Built-in roles are read-only, except whether new users get them. */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { badRequestError, conflictError, forbiddenError, notFoundError } from '#meta/status-errors.ts'

import { BUILT_IN_ROLES } from '../access/built-in-roles.ts'
import { covers, grantedRules, requireCovered } from '../access/role-rules.ts'
import {
  type ClusterAccess,
  type PersonCall,
  personRoute,
  refuseUnknown,
  textField,
  viewOf,
} from '../clusters/requests.ts'
import { Members, type Role, Roles, type RoleSpec } from '../kinds/access.ts'
import { GROUP } from '../kinds/definition.ts'
import type { Reply, Route } from '../port/route.ts'
import { inheritsField, rulesField, scopeField } from './role-fields.ts'

const RESOURCE = { group: GROUP, resource: 'roles' }

export function roleRoutes(options: ClusterAccess): readonly Route[] {
  return [
    personRoute('GET', '/v3/roles', () => ({
      status: 200,
      body: { items: options.objects.list(Roles).map((role) => viewOf(role)) },
    })),
    personRoute('POST', '/v3/roles', (call) => createRole(options, call)),
    personRoute('GET', '/v3/roles/:role', (call) => ({ status: 200, body: viewOf(namedRole(options, call)) })),
    personRoute('PATCH', '/v3/roles/:role', (call) => changeRole(options, call)),
    personRoute('DELETE', '/v3/roles/:role', (call) => removeRole(options, call)),
  ]
}

function requireManager({ permissions }: ClusterAccess, { person }: PersonCall): void {
  if (permissions.may(person.user, 'manage', 'roles')) return
  throw forbiddenError(RESOURCE, '', 'roles need the global role roles-manage')
}

function namedRole({ objects }: ClusterAccess, { params }: PersonCall): Role {
  const found = objects.get(Roles, params['role'] ?? '')
  if (found === undefined) throw notFoundError(RESOURCE, params['role'] ?? '')
  return found
}

async function createRole(options: ClusterAccess, call: PersonCall): Promise<Reply> {
  requireManager(options, call)
  const { scope, displayName, description, rules = [], inherits, isDefault, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  const wantedScope = scopeField(scope)
  if (typeof displayName !== 'string' || displayName === '') throw badRequestError('displayName must be a text')
  const spec: RoleSpec = {
    scope: wantedScope,
    displayName,
    ...textField('description', description),
    rules: rulesField(rules, wantedScope),
    ...inheritsField(inherits, wantedScope),
    ...defaultField(isDefault, wantedScope),
  }
  requireOwn(options, call, spec)
  // The server chooses the name: no Member can name a role before it exists.
  const role = await options.objects.create(Roles, { metadata: { generateName: 'r-' }, spec })
  return { status: 201, body: viewOf(role) }
}

async function changeRole(options: ClusterAccess, call: PersonCall): Promise<Reply> {
  requireManager(options, call)
  const { metadata, spec: before } = namedRole(options, call)
  const { displayName, description, rules, inherits, isDefault, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  const name = metadata.name ?? ''
  const changes = {
    ...textField('displayName', displayName),
    ...textField('description', description),
    ...(rules !== undefined && { rules: rulesField(rules, before.scope) }),
    ...inheritsField(inherits, before.scope),
    ...defaultField(isDefault, before.scope),
  }
  const isBuiltIn = Object.hasOwn(BUILT_IN_ROLES, name)
  if (isBuiltIn && Object.keys(changes).some((field) => field !== 'isDefault'))
    throw forbiddenError(RESOURCE, name, 'built-in roles cannot change; create another one')
  const spec = { ...before, ...changes }
  requireOwn(options, call, spec)
  requireAtMembers(options, call, { name, spec })
  // Only the checked version may be replaced.
  const { resourceVersion } = metadata
  const changed = await options.objects.change(Roles, name, (now) => {
    if (now.metadata.resourceVersion !== resourceVersion) throw conflictError(RESOURCE, name, 'the role has changed')
    return { ...now, spec }
  })
  return { status: 200, body: viewOf(changed) }
}

async function removeRole(options: ClusterAccess, call: PersonCall): Promise<Reply> {
  requireManager(options, call)
  const { metadata } = namedRole(options, call)
  const name = metadata.name ?? ''
  if (Object.hasOwn(BUILT_IN_ROLES, name)) throw forbiddenError(RESOURCE, name, 'built-in roles cannot be removed')
  const count = options.objects.list(Members).filter(({ spec }) => spec.role === name).length
  if (count > 0) throw conflictError(RESOURCE, name, `${count} members have the role`)
  await options.objects.delete(Roles, name)
  return { status: 200, body: {} }
}

/** Throws StatusError 403 if the caller has the rights of the role nowhere. */
function requireOwn({ permissions }: ClusterAccess, { person }: PersonCall, spec: RoleSpec): void {
  const wanted = grantedRules(spec)
  const places = permissions.anywhere(person.user, spec.scope)
  if (places.some((owned) => covers(owned, wanted))) return
  requireCovered(places[0] ?? [], wanted, 'the role')
}

/** Throws StatusError 403 if a member of the role would get more than the caller has at the same place. */
function requireAtMembers(
  { objects, permissions }: ClusterAccess,
  { person }: PersonCall,
  { name, spec }: { readonly name: string; readonly spec: RoleSpec },
): void {
  const wanted: readonly PolicyRule[] = grantedRules(spec)
  for (const member of objects.list(Members)) {
    if (member.spec.role === name)
      requireCovered(permissions.at(person.user, member.spec), wanted, `member "${member.metadata.name}"`)
  }
}

function defaultField(value: unknown, scope: RoleSpec['scope']): Pick<RoleSpec, 'isDefault'> {
  if (value === undefined) return {}
  if (typeof value !== 'boolean') throw badRequestError('isDefault must be true or false')
  if (value && scope !== 'global') throw badRequestError('only roles of scope global can be the default')
  return { isDefault: value }
}
