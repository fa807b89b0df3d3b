/** Log-in with a username and password of an LDAP provider. */
import { notFoundError, serviceUnavailableError, tooManyRequestsError } from '#meta/status-errors.ts'

import { AuthProviders, type LdapProviderSpec } from '../../kinds/auth-provider.ts'
import type { User } from '../../kinds/user.ts'
import type { ManagementObjects } from '../../objects.ts'
import { userOfAccount } from '../accounts.ts'
import { ProviderError } from '../provider-error.ts'
import type { Users } from '../users.ts'
import { openLdap, type OpenLdap } from './connection.ts'
import { type DirectoryAccount, findAccount, type LdapCredentials } from './directory.ts'

export interface LdapLoginOptions {
  readonly objects: ManagementObjects
  readonly users: Users
  /** Default: one connection for each log-in, with the package `ldapts`. */
  readonly open?: OpenLdap
}

/** Each takes a connection of the LDAP server. */
const MAX_RUNNING = 20

export class LdapLogin {
  readonly #objects: ManagementObjects
  readonly #users: Users
  readonly #open: OpenLdap
  #running = 0

  constructor({ objects, users, open = (address) => openLdap(objects.clock, address) }: LdapLoginOptions) {
    this.#objects = objects
    this.#users = users
    this.#open = open
  }

  /**
   * Undefined for a wrong username or password. Throws StatusError: 404 for an unknown provider, 403 if no user has this
   * account or the user is disabled, 429 when too many log in at the same time, 503 if the provider cannot be used.
   */
  async check(provider: string, credentials: LdapCredentials): Promise<User | undefined> {
    const spec = this.#specOf(provider)
    if (this.#running >= MAX_RUNNING) throw tooManyRequestsError('Too many log-ins are under way', 1)
    this.#running++
    try {
      const account = await this.#account(spec, credentials)
      if (account === undefined) return undefined
      return await userOfAccount(this.#users, { ...account, provider, createsUsers: spec.createsUsers === true })
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      this.#objects.log.error(error, 'Failed to query LDAP server', { provider })
      throw serviceUnavailableError(`The identity provider "${provider}" cannot be used now`)
    } finally {
      this.#running--
    }
  }

  #specOf(provider: string): LdapProviderSpec {
    const spec = this.#objects.get(AuthProviders, provider)?.spec
    if (spec?.type === 'ldap' && spec.disabled !== true) return spec
    throw notFoundError({ group: AuthProviders.group, resource: AuthProviders.plural }, provider)
  }

  async #account(
    { ldap: settings, certificateAuthority }: LdapProviderSpec,
    credentials: LdapCredentials,
  ): Promise<DirectoryAccount | undefined> {
    const { bindSecretName } = settings
    const bindPassword = bindSecretName === undefined ? '' : await this.#bindPassword(bindSecretName)
    const connection = await this.#open({ url: settings.url, certificateAuthority })
    try {
      return await findAccount(connection, { settings, bindPassword }, credentials)
    } finally {
      connection.close()
    }
  }

  async #bindPassword(name: string): Promise<string> {
    const data = (await this.#objects.secret(name))?.data?.['password']
    if (data === undefined) throw new ProviderError(`The Secret "${name}" has no key "password"`)
    return Buffer.from(data, 'base64').toString()
  }
}
