/**
 * One-time codes that let the first administrator set a password. The Secret `first-login` names the User and has the hashes of
 * the codes; it exists until that User has a password.
 */
import { type Secret, Secrets } from '#apis/core/v1.ts'
import { hashOfSecret, isSameHash } from '#cluster-agent/api-auth/token-text.ts'
import { forbiddenError, unauthorizedError } from '#meta/status-errors.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import { type User, Users as UserKind } from '../../kinds/user.ts'
import { MANAGEMENT_NAMESPACE, type ManagementObjects } from '../../objects.ts'
import type { Users } from '../users.ts'

/** A code that was issued at a start of the server. */
export interface FirstLoginCode {
  readonly username: string
  readonly code: string
  readonly expiresAtMs: number
}

interface StoredCode {
  /** SHA-256 in hex. */
  readonly hash: string
  readonly expiresAt: string
}

interface Pending {
  readonly secret: Secret
  readonly user: string
  readonly codes: readonly StoredCode[]
}

const SECRET_NAME = 'first-login'
const CODE_BYTES = 32
export const CODE_LIFETIME_MS = 3_600_000
/** One for each start of a server within the lifetime. */
const MAX_CODES = 20
const MAX_CODE_CHARACTERS = 100
const ABSENT_MS = 10_000

export class FirstLogin {
  readonly #objects: ManagementObjects
  readonly #users: Users
  /** Until then no request asks the API. Another replica may issue a code at any time. */
  #absentUntilMs = 0

  constructor(objects: ManagementObjects, users: Users) {
    this.#objects = objects
    this.#users = users
  }

  /** Creates the first administrator if there is no user, and issues a code until that administrator has a password. */
  async issue(): Promise<FirstLoginCode | undefined> {
    await this.#users.ensureFirst((name) => this.#write({ user: name, codes: [] }))
    const pending = await this.#pending()
    if (pending === undefined) return undefined
    const { clock, random } = this.#objects
    const code = random.bytes(CODE_BYTES).toString('base64url')
    const expiresAtMs = clock.now() + CODE_LIFETIME_MS
    const valid = pending.codes.filter(({ expiresAt }) => Date.parse(expiresAt) > clock.now()).slice(1 - MAX_CODES)
    const codes = [...valid, { hash: hashOfSecret(code), expiresAt: timeOf(expiresAtMs) }]
    await this.#write({ user: pending.user, codes })
    this.#absentUntilMs = 0
    return { username: this.#users.get(pending.user).spec.username, code, expiresAtMs }
  }

  /** False: no code is valid. */
  get isPending(): boolean {
    return this.#objects.clock.elapsed() >= this.#absentUntilMs
  }

  /** The user whose password the code sets; undefined for a code that is wrong, used or expired. */
  async userOf(code: string): Promise<User | undefined> {
    if (!this.isPending) return undefined
    const pending = await this.#pending()
    if (pending === undefined) {
      this.#absentUntilMs = this.#objects.clock.elapsed() + ABSENT_MS
      return undefined
    }
    if (code.length > MAX_CODE_CHARACTERS) return undefined
    const now = this.#objects.clock.now()
    const hash = hashOfSecret(code)
    const isValid = pending.codes.some((one) => isSameHash(hash, one.hash) && Date.parse(one.expiresAt) > now)
    return isValid ? this.#users.get(pending.user) : undefined
  }

  /** Sets the password, once. Throws StatusError: 401 for an invalid code, 400 for an invalid password, 403 for a disabled user. */
  async complete(code: string, password: string): Promise<User> {
    const found = await this.userOf(code)
    if (found === undefined) throw invalidCode()
    const { name = '' } = found.metadata
    if (found.spec.disabled === true)
      throw forbiddenError({ group: UserKind.group, resource: UserKind.plural }, name, 'the user is disabled')
    try {
      const user = await this.#users.setFirstPassword(name, password)
      await this.#end()
      return user
    } catch (error) {
      // Another request was faster.
      if (isAlreadyExists(error)) throw invalidCode()
      throw error
    }
  }

  /** Undefined, and no Secret is left, when the user has a password or is gone. */
  async #pending(): Promise<Pending | undefined> {
    const secret = await this.#objects.secret(SECRET_NAME)
    if (secret === undefined) return undefined
    const user = textIn(secret, 'user')
    const isOpen = this.#objects.get(UserKind, user) !== undefined && !(await this.#users.canUsePassword(user))
    if (isOpen) return { secret, user, codes: JSON.parse(textIn(secret, 'codes')) as StoredCode[] }
    await this.#end()
    return undefined
  }

  async #write({ user, codes }: Omit<Pending, 'secret'>): Promise<void> {
    const metadata = { name: SECRET_NAME, namespace: MANAGEMENT_NAMESPACE }
    const data = { user: base64(user), codes: base64(JSON.stringify(codes)) }
    const current = await this.#objects.secret(SECRET_NAME)
    if (current === undefined) await this.#objects.client.create(Secrets, { metadata, data })
    else await this.#objects.client.update(Secrets, { ...current, metadata, data })
  }

  async #end(): Promise<void> {
    await this.#objects.client
      .delete(Secrets, { namespace: MANAGEMENT_NAMESPACE, name: SECRET_NAME })
      .catch((error) => {
        if (!isNotFound(error)) throw error
      })
  }
}

function invalidCode(): Error {
  return unauthorizedError('The code is wrong, was used or has expired; restart the server to get another one')
}

function textIn({ data }: Secret, key: string): string {
  return Buffer.from(data?.[key] ?? '', 'base64').toString()
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
