/**
 * The HTTP routes below `/v3/users`, for users with the global role `users-manage`. Only administrators disable or
 * delete administrators. Callers can set the password only of users whose permissions they have, because they could
 * then log in as them.
 */
import type { Permissions } from '../../access/permissions.ts'
import type { User } from '../../kinds/user.ts'
import type { Person } from '../../person.ts'
import type { Reply, Route, RouteCall } from '../../port/route.ts'
import type { Users } from '../users.ts'
import { forbidden, readerOf, writerOf } from './caller.ts'
import { readFields } from './fields.ts'
import { reply, userView } from './views.ts'

export interface UserParts {
  readonly users: Users
  readonly isAdministrator: (user: User) => boolean
  readonly permissions: Pick<Permissions, 'may' | 'coversUser'>
}

const NEW_FIELDS = {
  username: 'string',
  displayName: 'string?',
  password: 'string?',
  mustChangePassword: 'boolean?',
} as const
const CHANGED_FIELDS = { displayName: 'string?', disabled: 'boolean?', password: 'string?' } as const

export function userRoutes(parts: UserParts): Route[] {
  const access = 'person'
  return [
    { method: 'GET', path: '/v3/users', access, serve: (call) => listUsers(parts, call) },
    { method: 'POST', path: '/v3/users', access, serve: (call) => createUser(parts, call) },
    { method: 'PATCH', path: '/v3/users/:name', access, serve: (call) => changeUser(parts, call) },
    { method: 'DELETE', path: '/v3/users/:name', access, serve: (call) => deleteUser(parts, call) },
  ]
}

function requireManager({ permissions }: UserParts, { user }: Person): void {
  if (!permissions.may(user, 'manage', 'users')) throw forbidden('Users need the global role users-manage')
}

function listUsers(parts: UserParts, call: RouteCall): Reply {
  requireManager(parts, readerOf(call))
  return reply(200, { items: parts.users.list().map(userView) })
}

async function createUser(parts: UserParts, call: RouteCall): Promise<Reply> {
  requireManager(parts, writerOf(call))
  const { password, mustChangePassword = password !== undefined, ...fields } = await readFields(call, NEW_FIELDS)
  return reply(201, userView(await parts.users.create({ ...fields, password, mustChangePassword })))
}

async function changeUser(parts: UserParts, call: RouteCall): Promise<Reply> {
  const person = writerOf(call)
  requireManager(parts, person)
  const { users, permissions } = parts
  const { displayName, disabled, password } = await readFields(call, CHANGED_FIELDS)
  const { name = '' } = call.params
  if (isSelf(person, name) && disabled === true) throw forbidden('Users cannot disable themselves')
  if (isSelf(person, name) && password !== undefined) throw forbidden('Change your own password with /v3/me/password')
  let user = users.get(name)
  requireAdministratorFor(parts, person, user)
  if (password !== undefined && !permissions.coversUser(person.user, user))
    throw forbidden('The user has rights that you do not have')
  if (displayName !== undefined) user = await users.setDisplayName(name, displayName)
  if (password !== undefined) user = await users.setPassword(name, password, true)
  if (disabled !== undefined) user = await users.setDisabled(name, disabled)
  return reply(200, userView(user))
}

async function deleteUser(parts: UserParts, call: RouteCall): Promise<Reply> {
  const person = writerOf(call)
  requireManager(parts, person)
  const { name = '' } = call.params
  if (isSelf(person, name)) throw forbidden('Users cannot delete themselves')
  requireAdministratorFor(parts, person, parts.users.get(name))
  await parts.users.delete(name)
  return reply(204)
}

function requireAdministratorFor({ isAdministrator }: UserParts, { user }: Person, target: User): void {
  if (isAdministrator(target) && !isAdministrator(user))
    throw forbidden('Only administrators may change administrators')
}

function isSelf({ user }: Person, name: string): boolean {
  return user.metadata.name === name
}
