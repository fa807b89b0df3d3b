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

export interface AuthProviderSpec {
  readonly type: 'oidc'
  readonly displayName?: string
  readonly disabled?: boolean
  readonly issuer: string
  readonly clientID: string
  /** The name of a Secret of the server's namespace with the key `clientSecret`. Public clients have none. */
  readonly clientSecretName?: string
  /** PEM; empty: the public authorities. */
  readonly certificateAuthority?: string
  /** Default: `openid profile email`. */
  readonly scopes?: readonly string[]
  /** Default: `sub`, `preferred_username` and `groups`. */
  readonly claims?: { readonly username?: string; readonly groups?: string }
  /** People without a User get one when they first log in. Default: false. */
  readonly createsUsers?: boolean
}

export const AUTH_PROVIDER: ManagementKind<AuthProvider> = defineManagementKind<AuthProvider>({
  kind: 'AuthProvider',
  plural: 'authproviders',
  description: 'An identity provider that people log in with.',
  spec: record(
    {
      type: immutable(oneOf('oidc')),
      displayName: TEXT,
      disabled: BOOLEAN,
      issuer: { type: 'string', pattern: '^https?://', maxLength: 1024 },
      clientID: NAME,
      clientSecretName: TEXT,
      certificateAuthority: { type: 'string', maxLength: 65_536 },
      scopes: list(NAME, 20),
      claims: record({ username: TEXT, groups: TEXT }),
      createsUsers: BOOLEAN,
    },
    ['type', 'issuer', 'clientID'],
  ),
  columns: [
    { name: 'Type', jsonPath: '.spec.type' },
    { name: 'Issuer', jsonPath: '.spec.issuer' },
  ],
})
export const AuthProviders: Kind<AuthProvider> = AUTH_PROVIDER.kind
