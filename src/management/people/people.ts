/** The parts that manage people: users, passwords, sessions, tokens, and log-in with identity providers. */
import type { LoginProvider } from '#component/console/session-view.ts'
import type { Exchange } from '#lib/http/exchange.ts'

import type { Permissions } from '../access/permissions.ts'
import type { Member } from '../kinds/access.ts'
import type { User } from '../kinds/user.ts'
import type { ManagementObjects } from '../objects.ts'
import type { Person } from '../person.ts'
import type { Route } from '../port/route.ts'
import { identify } from './authenticate.ts'
import { FirstLogin, type FirstLoginCode } from './first-login/first-login.ts'
import { firstLoginRoutes } from './first-login/routes.ts'
import type { OpenLdap } from './ldap/connection.ts'
import { LdapLogin } from './ldap/login.ts'
import { LoginThrottle } from './login-throttle.ts'
import { OidcLogin } from './oidc/login.ts'
import { type CreateClient, Providers } from './oidc/providers.ts'
import { Passwords, type PasswordsOptions } from './passwords.ts'
import { loginProviders, loginRoutes } from './routes/login.ts'
import { meRoutes } from './routes/me.ts'
import { createOwnToken, tokenRoutes } from './routes/tokens.ts'
import { userRoutes } from './routes/users.ts'
import { Sessions } from './sessions.ts'
import { Tokens } from './tokens.ts'
import { Users } from './users.ts'

export interface PeopleOptions {
  /** Synced. The namespace of the server must exist. */
  readonly objects: ManagementObjects
  readonly isAdministrator: (user: User) => boolean
  readonly permissions: Pick<Permissions, 'may' | 'coversUser'>
  /** The global Role that the first administrator gets. */
  readonly administratorRole: string
  /** The address at which browsers reach this server: `https://host`. */
  readonly serverUrl: () => string
  /** Called when the first administrator has set a password. */
  readonly onFirstLogin?: () => Promise<void>
  /** Default: argon2id of node:crypto with 19 MiB and two passes. */
  readonly passwordHash?: Pick<PasswordsOptions, 'cost' | 'derive'>
  /** Default: an HTTP client that trusts the authority of the provider. */
  readonly createProviderClient?: CreateClient
  /** Default: encrypted connections with the package `ldapts`. */
  readonly openLdap?: OpenLdap
}

export interface People {
  /**
   * The caller of a request; undefined without credentials. Throws StatusError: 401 for wrong or several credentials,
   * 403 for a cookie in a request that did not come from our pages. `address` is that of the client behind proxies.
   */
  authenticate(exchange: Exchange, address?: string): Promise<Person | undefined>
  readonly routes: readonly Route[]
  /** The ways to log in. */
  providers(): readonly LoginProvider[]
  /** Creates an API token of the caller, for one cluster or for all, and returns its text. */
  createToken(person: Person, description: string, cluster: string | undefined): Promise<string>
  /**
   * A new code with which the first administrator sets a password; undefined when that has happened. Creates the user
   * `admin` if there is no user. Call it at each start.
   */
  issueFirstLogin(): Promise<FirstLoginCode | undefined>
  /** False if no administrator would remain without the Member. */
  keepsAdministrator(removed: Member): boolean
  close(): Promise<void>
}

export function createPeople(options: PeopleOptions): People {
  const { objects, isAdministrator, permissions, administratorRole, serverUrl, passwordHash, openLdap } = options
  const { clock, random } = objects
  const tokens = new Tokens(objects)
  const sessions = new Sessions(tokens)
  const passwords = new Passwords({ clock, random, ...passwordHash })
  const users = new Users({ objects, passwords, tokens, isAdministrator, administratorRole })
  const providers = new Providers(objects, options.createProviderClient)
  const oidc = new OidcLogin({ objects, providers, users, serverUrl })
  const ldap = new LdapLogin({ objects, users, ...(openLdap !== undefined && { open: openLdap }) })
  const firstLogin = new FirstLogin(objects, users)
  const parts = {
    objects,
    firstLogin,
    onFirstLogin: options.onFirstLogin ?? (() => Promise.resolve()),
    users,
    tokens,
    sessions,
    providers,
    oidc,
    ldap,
    isAdministrator,
    permissions,
    throttle: new LoginThrottle(clock),
  }
  return {
    authenticate: async (exchange, address = exchange.peer.address) => identify(tokens, exchange, address),
    routes: [loginRoutes, firstLoginRoutes, meRoutes, tokenRoutes, userRoutes].flatMap((routesOf) => routesOf(parts)),
    providers: () => loginProviders(parts),
    createToken: (person, description, cluster) => createOwnToken(parts, person, { description, cluster }),
    keepsAdministrator: (removed) => users.keepsAdministrator(removed),
    issueFirstLogin: () => firstLogin.issue(),
    async close() {
      await tokens.close()
      await providers.close()
    },
  }
}
