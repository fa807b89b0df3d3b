/**
 * Creates, changes and deletes Users with their passwords, tokens and memberships. Changes run one at a time, so that
 * usernames stay unique and one administrator always remains.
 */
import type { Draft } from '#client/api-client.ts'
import { pick } from '#lib/random.ts'
import { generateName } from '#meta/object.ts'
import { alreadyExistsError, badRequestError, forbiddenError, notFoundError } from '#meta/status-errors.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import { type Member, Members, Roles } from '../kinds/access.ts'
import { type User, Users as UserKind, type UserSpec, type UserStatus } from '../kinds/user.ts'
import type { ManagementObjects } from '../objects.ts'
import { hashIn, PasswordSecrets } from './password-secrets.ts'
import type { Passwords } from './passwords.ts'
import { isSession, type Tokens } from './tokens.ts'

export interface UsersOptions {
  readonly objects: ManagementObjects
  readonly passwords: Passwords
  readonly tokens: Tokens
  readonly isAdministrator: (user: User) => boolean
  /** The global Role that the first administrator gets. */
  readonly administratorRole: string
}

export interface UserPlan {
  readonly username: string
  readonly displayName?: string | undefined
  readonly mustChangePassword?: boolean
  readonly identities?: readonly Identity[]
  /** Without it the user cannot log in with a password. */
  readonly password?: string | undefined
  /** Further global Roles besides those that all new users get. */
  readonly roles?: readonly string[]
}

/** An account of an identity provider. */
export interface Identity {
  readonly provider: string
  readonly subject: string
}

const FIRST_USERNAME = 'admin'
const USERNAME = /^[a-z0-9]([a-z0-9._@-]{0,126}[a-z0-9])?$/
const RESOURCE = { group: UserKind.group, resource: UserKind.plural }

export class Users {
  readonly #options: UsersOptions
  readonly #objects: ManagementObjects
  readonly #secrets: PasswordSecrets
  /** By user: the number of changes that ended tokens. */
  readonly #accessChanges = new Map<string, number>()
  #lastChange: Promise<unknown> = Promise.resolve()

  constructor(options: UsersOptions) {
    this.#options = options
    this.#objects = options.objects
    this.#secrets = new PasswordSecrets(options.objects)
  }

  list(): readonly User[] {
    return this.#objects.list(UserKind)
  }

  /** Throws StatusError 404. */
  get(name: string): User {
    const user = this.#objects.get(UserKind, name)
    if (user === undefined) throw notFoundError(RESOURCE, name)
    return user
  }

  /** In any case of letters. If other programs made two of that name, the older one. */
  find(username: string): User | undefined {
    const wanted = username.toLowerCase()
    return this.list()
      .filter(({ spec }) => spec.username === wanted)
      .toSorted((a, b) => ageText(a).localeCompare(ageText(b)))[0]
  }

  ofIdentity({ provider, subject }: Identity): User | undefined {
    return this.list().find(({ spec }) =>
      spec.identities?.some((one) => one.provider === provider && one.subject === subject),
    )
  }

  /** Throws StatusError: 400 for an invalid username or password, 409 if the username is taken. */
  create(plan: UserPlan): Promise<User> {
    return this.#serially(() => this.#create(plan, async () => undefined))
  }

  /** The User of an identity, created if there is none, with a suffix if the username is taken. */
  ensureOfIdentity(identity: Identity, plan: Pick<UserPlan, 'username' | 'displayName'>): Promise<User> {
    return this.#serially(async () => {
      const known = this.ofIdentity(identity)
      if (known !== undefined) return known
      let { username } = plan
      for (let n = 2; this.find(username) !== undefined; n++) username = `${plan.username}-${n}`
      return this.#create({ ...plan, username, identities: [identity] }, async () => undefined)
    })
  }

  /** Stores the User last: without it, the objects that were created before allow no log-in. */
  async #create(
    { password, roles = [], ...plan }: UserPlan,
    beforeLast: (name: string) => Promise<void>,
  ): Promise<User> {
    const username = plan.username.toLowerCase()
    if (!USERNAME.test(username)) {
      throw badRequestError(`The username "${username}" must consist of letters, digits and ". _ @ -" in between`)
    }
    if (this.find(username) !== undefined) throw alreadyExistsError(RESOURCE, username)
    const hash = password === undefined ? undefined : await this.#options.passwords.hash(password)
    const name = this.#freeName()
    try {
      if (hash !== undefined) await this.#secrets.write(name, hash)
      for (const role of new Set([...this.#defaultRoles(), ...roles])) await this.#addMember(name, role)
      await beforeLast(name)
      const { displayName, mustChangePassword, identities } = plan
      const spec: UserSpec = {
        username,
        ...(displayName !== undefined && { displayName }),
        ...(mustChangePassword !== undefined && { mustChangePassword }),
        ...(identities !== undefined && { identities }),
      }
      return await this.#objects.create(UserKind, { metadata: { name }, spec })
    } catch (error) {
      await this.#deleteBelongings(name)
      throw error
    }
  }

  #freeName(): string {
    for (;;) {
      const name = generateName('u-', this.#objects.random)
      if (this.#objects.get(UserKind, name) === undefined) return name
    }
  }

  #defaultRoles(): string[] {
    const roles = this.#objects.list(Roles).filter(({ spec }) => spec.isDefault === true && spec.scope === 'global')
    return roles.map(({ metadata }) => metadata.name ?? '')
  }

  async #addMember(user: string, role: string): Promise<void> {
    const name = generateName('m-', this.#objects.random) + pick(this.#objects.random, '0123456789', 5)
    await this.#objects.create(Members, { metadata: { name }, spec: { role, user } })
  }

  /**
   * Creates the administrator `admin`, who has no password, if there is no user at all. `prepare` gets the name of the User
   * before it exists. Returns undefined if there are users.
   */
  ensureFirst(prepare: (name: string) => Promise<void>): Promise<User | undefined> {
    return this.#serially(async () => {
      if (this.list().length > 0) return undefined
      return this.#create({ username: FIRST_USERNAME, roles: [this.#options.administratorRole] }, prepare)
    })
  }

  /** Sets the password of a user who has none. Throws StatusError: 409 if there is one already, and as `Passwords.hash`. */
  async setFirstPassword(name: string, password: string): Promise<User> {
    const hash = await this.#options.passwords.hash(password)
    return this.#serially(async () => {
      const user = this.get(name)
      await this.#secrets.create(name, hash)
      return user
    })
  }

  async canUsePassword(name: string): Promise<boolean> {
    return (await this.#secrets.read(name)) !== undefined
  }

  /** Takes as long for unknown users and for those without a password. Throws StatusError 400 and 429 as Passwords. */
  async hasPassword(user: User | undefined, password: string): Promise<boolean> {
    const secret = await this.#secrets.read(user?.metadata.name ?? 'u-unknown')
    const result = await this.#options.passwords.check(password, user === undefined ? undefined : hashIn(secret))
    if (result === 'outdated' && secret !== undefined) {
      // Passwords of older rules may be too short to be hashed again; they stay valid.
      const hash = await this.#options.passwords.hash(password).catch(() => undefined)
      if (hash !== undefined) await this.#secrets.refresh(secret, hash)
    }
    return result !== 'wrong'
  }

  /** Ends all sessions of the user. API tokens stay. */
  async setPassword(name: string, password: string, mustChangePassword: boolean): Promise<User> {
    const hash = await this.#options.passwords.hash(password)
    return this.#serially(async () => {
      this.get(name)
      await this.#secrets.write(name, hash)
      const user = await this.#changeSpec(name, { mustChangePassword })
      this.#noteAccessChange(name)
      await this.#options.tokens.endOfUser(name, (token) => !isSession(token))
      return user
    })
  }

  setDisplayName(name: string, displayName: string): Promise<User> {
    return this.#changeSpec(name, { displayName })
  }

  /** Disabling ends all tokens of the user. Throws StatusError 403 for the last administrator. */
  setDisabled(name: string, disabled: boolean): Promise<User> {
    return this.#serially(async () => {
      if (disabled) this.#requireOtherAdministrator(name)
      const user = await this.#changeSpec(name, { disabled })
      this.#noteAccessChange(name)
      if (disabled) await this.#options.tokens.endOfUser(name)
      return user
    })
  }

  /** Throws StatusError: 404, or 403 for the last administrator. A deletion that was interrupted can be repeated. */
  delete(name: string): Promise<void> {
    return this.#serially(async () => {
      this.#requireOtherAdministrator(name)
      await this.#changeSpec(name, { disabled: true })
      this.#noteAccessChange(name)
      await this.#deleteBelongings(name)
      await this.#objects.delete(UserKind, name)
    })
  }

  /** Grows when a password was changed or a user was disabled or deleted, before the tokens end. */
  accessChanges(user: User | undefined): number {
    return this.#accessChanges.get(user?.metadata.name ?? '') ?? 0
  }

  /** Also for a user who is deleted meanwhile. */
  isDisabled({ metadata }: User): boolean {
    const user = this.#objects.get(UserKind, metadata.name ?? '')
    return user === undefined || user.spec.disabled === true
  }

  #noteAccessChange(name: string): void {
    this.#accessChanges.set(name, (this.#accessChanges.get(name) ?? 0) + 1)
  }

  #requireOtherAdministrator(name: string): void {
    const { isAdministrator } = this.#options
    if (!isAdministrator(this.get(name))) return
    const isOther = (user: User): boolean => user.metadata.name !== name && user.spec.disabled !== true
    if (this.list().some((user) => isOther(user) && isAdministrator(user))) return
    throw forbiddenError(RESOURCE, name, 'the last administrator must stay; make another user administrator first')
  }

  /** False if no enabled user would be administrator without the Member. */
  keepsAdministrator({ metadata, spec }: Member): boolean {
    const { administratorRole } = this.#options
    if (spec.role !== administratorRole) return true
    const others = this.#objects
      .list(Members)
      .filter((member) => member.spec.role === administratorRole && member.metadata.name !== metadata.name)
      .map((member) => member.spec)
    return this.list().some(
      ({ metadata: { name }, spec: { disabled }, status }) =>
        disabled !== true &&
        others.some(({ user, group }) => user === name || (group !== undefined && status?.groups?.includes(group))),
    )
  }

  async #deleteBelongings(name: string): Promise<void> {
    await this.#options.tokens.endOfUser(name)
    for (const { metadata, spec } of this.#objects.list(Members)) {
      if (spec.user === name) await this.#objects.delete(Members, metadata.name ?? '')
    }
    await this.#secrets.delete(name)
  }

  #changeSpec(name: string, spec: Partial<UserSpec>): Promise<User> {
    return this.#objects.change(UserKind, name, (user) => ({ ...user, spec: { ...user.spec, ...spec } }))
  }

  /** A failure is logged: the user is logged in all the same. `groups` are those of one provider. */
  async noteLogin(name: string, groups?: ProviderGroups): Promise<void> {
    const now = timeOf(this.#objects.clock.now())
    const change = (user: User): Draft<User> => {
      const status: UserStatus = { ...user.status, lastLoginAt: now }
      if (groups === undefined) return { ...user, status }
      const others = user.status?.groups?.filter((group) => !group.startsWith(`${groups.provider}:`)) ?? []
      return { ...user, status: { ...status, groups: [...others, ...groups.names], groupsReadAt: now } }
    }
    try {
      await this.#objects.change(UserKind, name, change, { subresource: 'status' })
    } catch (error) {
      // Groups determine access, so a log-in fails if they cannot be stored.
      if (groups !== undefined) throw error
      if (!isNotFound(error)) this.#objects.log.error(error, 'Failed to write last log-in of user', { user: name })
    }
  }

  #serially<T>(task: () => Promise<T>): Promise<T> {
    const run = this.#lastChange.then(task)
    this.#lastChange = run.catch(() => undefined)
    return run
  }
}

export interface ProviderGroups {
  readonly provider: string
  /** `<provider>:<group>`. */
  readonly names: readonly string[]
}

function ageText({ metadata }: User): string {
  return `${metadata.creationTimestamp} ${metadata.name}`
}
