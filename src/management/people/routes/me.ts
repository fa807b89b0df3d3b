/** The HTTP routes `/v3/me` and `/v3/logout`: the caller's user, password and current token. */
import { badRequestError } from '#meta/status-errors.ts'

import type { User } from '../../kinds/user.ts'
import type { Reply, Route, RouteCall } from '../../port/route.ts'
import type { LoginThrottle } from '../login-throttle.ts'
import { checkLogin } from '../password-login.ts'
import { ENDED_SESSION, type Sessions } from '../sessions.ts'
import { isSession, type Tokens } from '../tokens.ts'
import type { Users } from '../users.ts'
import { forbidden, personOf, writerOf } from './caller.ts'
import { readFields } from './fields.ts'
import { reply, tokenView, userView } from './views.ts'

export interface MeParts {
  readonly users: Users
  readonly tokens: Tokens
  readonly sessions: Sessions
  readonly throttle: LoginThrottle
  readonly isAdministrator: (user: User) => boolean
}

export function meRoutes(parts: MeParts): Route[] {
  const common = { access: 'person', allowsInitialPassword: true } as const
  return [
    { ...common, method: 'GET', path: '/v3/me', serve: (call) => showMe(parts, call) },
    { ...common, method: 'POST', path: '/v3/me/password', serve: (call) => changePassword(parts, call) },
    { ...common, method: 'POST', path: '/v3/logout', serve: (call) => logOut(parts, call) },
  ]
}

function showMe({ isAdministrator }: MeParts, call: RouteCall): Reply {
  const { user, token } = personOf(call)
  return reply(200, {
    user: userView(user),
    groups: user.status?.groups ?? [],
    isAdministrator: isAdministrator(user),
    token: tokenView(token),
  })
}

async function changePassword(parts: MeParts, call: RouteCall): Promise<Reply> {
  const { user, hasCookie } = writerOf(call)
  const { current, password } = await readFields(call, { current: 'string', password: 'string' })
  if (current === password) throw badRequestError('The new password must be another one')
  const attempt = { username: user.spec.username, password: current, address: call.address }
  const checked = await checkLogin(parts.users, parts.throttle, attempt)
  if (checked?.user.metadata.name !== user.metadata.name) throw forbidden('The current password is wrong')
  const changed = await parts.users.setPassword(user.metadata.name ?? '', password, false)
  // All sessions have ended, also that of this request.
  const headers = hasCookie ? ['Set-Cookie', (await parts.sessions.start(changed)).cookie] : []
  return reply(200, { user: userView(changed) }, headers)
}

/** With `everywhere`, all sessions of the user end. API tokens stay: each can be deleted. */
async function logOut({ tokens }: MeParts, call: RouteCall): Promise<Reply> {
  const { token, user, hasCookie } = personOf(call)
  const { everywhere = false } = await readFields(call, { everywhere: 'boolean?' })
  if (everywhere) writerOf(call)
  await tokens.end(token)
  if (everywhere) await tokens.endOfUser(user.metadata.name ?? '', (one) => !isSession(one))
  return reply(204, undefined, hasCookie ? ['Set-Cookie', ENDED_SESSION] : [])
}
