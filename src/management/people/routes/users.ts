/** The HTTP routes below `/v3/users`, with which administrators manage user accounts. */
import type { User } from '../../kinds/user.ts'
import type { Person } from '../../person.ts'
import type { Reply, Route, RouteCall } from '../../port/route.ts'
import type { Users } from '../users.ts'
import { forbidden, readerOf, requireAdministrator, writerOf } from './caller.ts'
import { readFields } from './fields.ts'
import { reply, userView } from './views.ts'

export interface UserParts {
  readonly users: Users
  readonly isAdministrator: (user: User) => boolean
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

function listUsers({ users, isAdministrator }: UserParts, call: RouteCall): Reply {
  requireAdministrator(isAdministrator, readerOf(call))
  return reply(200, { items: users.list().map(userView) })
}

async function createUser({ users, isAdministrator }: UserParts, call: RouteCall): Promise<Reply> {
  requireAdministrator(isAdministrator, writerOf(call))
  const { password, mustChangePassword = password !== undefined, ...fields } = await readFields(call, NEW_FIELDS)
  return reply(201, userView(await users.create({ ...fields, password, mustChangePassword })))
}

async function changeUser({ users, isAdministrator }: UserParts, call: RouteCall): Promise<Reply> {
  const person = writerOf(call)
  requireAdministrator(isAdministrator, person)
  const { displayName, disabled, password } = await readFields(call, CHANGED_FIELDS)
  const { name = '' } = call.params
  if (isSelf(person, name) && disabled === true) throw forbidden('Nobody may disable themselves')
  if (isSelf(person, name) && password !== undefined) throw forbidden('Change your own password with /v3/me/password')
  let user = users.get(name)
  if (displayName !== undefined) user = await users.setDisplayName(name, displayName)
  if (password !== undefined) user = await users.setPassword(name, password, true)
  if (disabled !== undefined) user = await users.setDisabled(name, disabled)
  return reply(200, userView(user))
}

async function deleteUser({ users, isAdministrator }: UserParts, call: RouteCall): Promise<Reply> {
  const person = writerOf(call)
  requireAdministrator(isAdministrator, person)
  const { name = '' } = call.params
  if (isSelf(person, name)) throw forbidden('Nobody may delete themselves')
  await users.delete(name)
  return reply(204)
}

function isSelf({ user }: Person, name: string): boolean {
  return user.metadata.name === name
}
