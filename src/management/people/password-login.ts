/** Checks a username and password, and delays further attempts after failures. */
import { tooManyRequestsError } from '#meta/status-errors.ts'

import type { User } from '../kinds/user.ts'
import type { LoginThrottle } from './login-throttle.ts'
import type { Users } from './users.ts'

export interface PasswordAttempt {
  readonly username: string
  readonly password: string
  /** The IP address of the client. */
  readonly address: string
}

export interface CheckedLogin {
  readonly user: User
  /** False when the password was changed, or the user disabled or deleted, since the check began. */
  isCurrent(): boolean
}

/** Undefined for a wrong username or password, and for a disabled user. Throws StatusError 400 and 429. */
export async function checkLogin(
  users: Users,
  throttle: LoginThrottle,
  { username, password, address }: PasswordAttempt,
): Promise<CheckedLogin | undefined> {
  const name = username.toLowerCase()
  const waitSeconds = throttle.begin(address, name)
  if (waitSeconds > 0) throw tooManyRequestsError('Too many failed log-ins; try again later', waitSeconds)
  const user = users.find(name)
  const changes = users.accessChanges(user)
  try {
    if (!(await users.hasPassword(user, password)) || user === undefined) return undefined
  } catch (error) {
    throttle.takeBack(address, name)
    throw error
  }
  if (user.spec.disabled === true) return undefined
  throttle.succeeded(address, name)
  return { user, isCurrent: () => users.accessChanges(user) === changes }
}

export interface ProviderAttempt extends PasswordAttempt {
  readonly provider: string
  /** Undefined for a wrong username or password. */
  readonly check: () => Promise<User | undefined>
}

/** The same with the account of an identity provider. Throws StatusError 429, and as `check`. */
export async function checkProviderLogin(
  users: Users,
  throttle: LoginThrottle,
  { provider, username, address, check }: ProviderAttempt,
): Promise<CheckedLogin | undefined> {
  const name = `${provider}/${username.toLowerCase()}`
  const waitSeconds = throttle.begin(address, name)
  if (waitSeconds > 0) throw tooManyRequestsError('Too many failed log-ins; try again later', waitSeconds)
  let user: User | undefined
  try {
    user = await check()
  } catch (error) {
    throttle.takeBack(address, name)
    throw error
  }
  if (user === undefined) return undefined
  throttle.succeeded(address, name)
  const changes = users.accessChanges(user)
  return { user, isCurrent: () => users.accessChanges(user) === changes && !users.isDisabled(user) }
}
