/**
 * The kind User: a person or program that may log in. Its name, `u-x7k2p`, is also the username in every cluster. A
 * Secret contains the hash of its password.
 */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

import { BOOLEAN, defineManagementKind, type ManagementKind, list, NAME, record, TEXT, TIME } from './definition.ts'

export interface User extends KubeObject {
  readonly spec: UserSpec
  readonly status?: UserStatus
}

export interface UserSpec {
  /** The name for log-in, in lower case. */
  readonly username: string
  readonly displayName?: string
  /** Default: false. A disabled user can do nothing, from the next request on. */
  readonly disabled?: boolean
  /** Until the user sets another password, only that is allowed. */
  readonly mustChangePassword?: boolean
  /** Accounts of identity providers that are this user. */
  readonly identities?: readonly { readonly provider: string; readonly subject: string }[]
}

export interface UserStatus {
  readonly lastLoginAt?: string
  /** Groups of the identity providers, as `<provider>:<group>`. */
  readonly groups?: readonly string[]
  readonly groupsReadAt?: string
}

export const USER: ManagementKind<User> = defineManagementKind<User>({
  kind: 'User',
  plural: 'users',
  description: 'A person or a program that may log in to the management server.',
  spec: record(
    {
      username: { type: 'string', pattern: '^[a-z0-9]([a-z0-9._@-]{0,126}[a-z0-9])?$' },
      displayName: TEXT,
      disabled: BOOLEAN,
      mustChangePassword: BOOLEAN,
      identities: list(record({ provider: NAME, subject: NAME }, ['provider', 'subject']), 20),
    },
    ['username'],
  ),
  status: record({ lastLoginAt: TIME, groups: list(NAME), groupsReadAt: TIME }),
  columns: [
    { name: 'Username', jsonPath: '.spec.username' },
    { name: 'Display Name', jsonPath: '.spec.displayName' },
    { name: 'Disabled', type: 'boolean', jsonPath: '.spec.disabled' },
    { name: 'Last Login', type: 'date', jsonPath: '.status.lastLoginAt' },
  ],
})
export const Users: Kind<User> = USER.kind
