/** The kind AuthProvider: an identity provider with which users log in. It refers to Secrets for client secrets. */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

import {
  BOOLEAN,
  defineManagementKind,
  type ManagementKind,
  immutable,
  list,
  NAME,
  oneOf,
  record,
  TEXT,
} from './definition.ts'

export interface AuthProvider extends KubeObject {
  readonly spec: AuthProviderSpec
}

export type AuthProviderSpec = OidcProviderSpec | LdapProviderSpec

interface CommonSpec {
  readonly displayName?: string
  readonly disabled?: boolean
  /** PEM; empty: the public authorities. */
  readonly certificateAuthority?: string
  /** People without a User get one when they first log in. Default: false. */
  readonly createsUsers?: boolean
}

export interface OidcProviderSpec extends CommonSpec {
  readonly type: 'oidc'
  readonly issuer: string
  readonly clientID: string
  /** The name of a Secret of the server's namespace with the key `clientSecret`. Public clients have none. */
  readonly clientSecretName?: string
  /** Default: `openid profile email`. */
  readonly scopes?: readonly string[]
  /** Default: `sub`, `preferred_username` and `groups`. */
  readonly claims?: { readonly username?: string; readonly groups?: string }
}

export interface LdapProviderSpec extends CommonSpec {
  readonly type: 'ldap'
  readonly ldap: LdapSettings
}

export interface LdapSettings {
  /** `ldaps://host[:port]`, or `ldap://host[:port]`, which is always encrypted with StartTLS. */
  readonly url: string
  /** The account that searches; absent: anonymous. */
  readonly bindDN?: string
  /** The name of a Secret of the server's namespace with the key `password`. */
  readonly bindSecretName?: string
  readonly users: LdapUserSettings
  /** Absent: users have no groups. */
  readonly groups?: LdapGroupSettings
}

export interface LdapUserSettings {
  readonly searchBase: string
  /** Default: `(objectClass=person)`. */
  readonly filter?: string
  /** The attribute that people log in with. Default: `uid`; in Active Directory `sAMAccountName`. */
  readonly usernameAttribute?: string
  /** Default: `cn`. */
  readonly displayNameAttribute?: string
  /** Identifies an account for ever. Default: `entryUUID`; in Active Directory `objectGUID`. */
  readonly idAttribute?: string
}

export interface LdapGroupSettings {
  readonly searchBase: string
  /** Default: `(objectClass=groupOfNames)`. */
  readonly filter?: string
  /** Default: `cn`. */
  readonly nameAttribute?: string
  /** Default: `member`; `memberUid` of posixGroup. */
  readonly memberAttribute?: string
  /** The value of `memberAttribute`: the DN of the member (default), or the username. Only DNs have groups in groups. */
  readonly memberValue?: 'dn' | 'username'
  /** How many steps groups are followed through the groups that contain them. Default: 5. */
  readonly maxDepth?: number
}

const DN = { type: 'string', minLength: 1, maxLength: 1024 }
const FILTER = { type: 'string', pattern: '^\\(.*\\)$', maxLength: 1024 }
const ATTRIBUTE = { type: 'string', pattern: '^[A-Za-z][A-Za-z0-9;-]{0,127}$' }

const LDAP = record(
  {
    url: { type: 'string', pattern: '^ldaps?://[^/?#@\\s]+/?$', maxLength: 1024 },
    bindDN: DN,
    bindSecretName: TEXT,
    users: record(
      {
        searchBase: DN,
        filter: FILTER,
        usernameAttribute: ATTRIBUTE,
        displayNameAttribute: ATTRIBUTE,
        idAttribute: ATTRIBUTE,
      },
      ['searchBase'],
    ),
    groups: record(
      {
        searchBase: DN,
        filter: FILTER,
        nameAttribute: ATTRIBUTE,
        memberAttribute: ATTRIBUTE,
        memberValue: oneOf('dn', 'username'),
        maxDepth: { type: 'integer', minimum: 0, maximum: 20 },
      },
      ['searchBase'],
    ),
  },
  ['url', 'users'],
)

export const AUTH_PROVIDER: ManagementKind<AuthProvider> = defineManagementKind<AuthProvider>({
  kind: 'AuthProvider',
  plural: 'authproviders',
  description: 'An identity provider that people log in with.',
  spec: {
    ...record(
      {
        type: immutable(oneOf('oidc', 'ldap')),
        displayName: TEXT,
        disabled: BOOLEAN,
        issuer: { type: 'string', pattern: '^https?://', maxLength: 1024 },
        clientID: NAME,
        clientSecretName: TEXT,
        certificateAuthority: { type: 'string', maxLength: 65_536 },
        scopes: list(NAME, 20),
        claims: record({ username: TEXT, groups: TEXT }),
        createsUsers: BOOLEAN,
        ldap: LDAP,
      },
      ['type'],
    ),
    'x-kubernetes-validations': [
      {
        rule: "self.type == 'oidc' ? has(self.issuer) && has(self.clientID) && !has(self.ldap) : has(self.ldap) && !has(self.issuer)",
        message: 'a provider of type oidc needs issuer and clientID, one of type ldap needs ldap',
      },
    ],
  },
  columns: [
    { name: 'Type', jsonPath: '.spec.type' },
    { name: 'Issuer', jsonPath: '.spec.issuer' },
    { name: 'LDAP', jsonPath: '.spec.ldap.url' },
  ],
})
export const AuthProviders: Kind<AuthProvider> = AUTH_PROVIDER.kind
