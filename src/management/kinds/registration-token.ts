/**
 * The kind RegistrationToken, with which an agent registers a cluster. The object contains only the hash of the
 * token.
 */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

import {
  defineManagementKind,
  type ManagementKind,
  immutable,
  INTEGER,
  list,
  NAME,
  oneOf,
  record,
  TEXT,
  TIME,
} from './definition.ts'
import { MACHINE_ROLES, type MachineRole } from './machine.ts'

export interface RegistrationToken extends KubeObject {
  readonly spec: RegistrationTokenSpec
}

export interface RegistrationTokenSpec {
  readonly cluster: string
  /** `cluster`, the default: for the agent of the cluster. `machine`: for agents of machines. */
  readonly purpose?: 'cluster' | 'machine'
  /** For machines: the roles that they may request. */
  readonly roles?: readonly MachineRole[]
  /** SHA-256 of the token, in hex. */
  readonly hash: string
  readonly expiresAt: string
  readonly usesLeft: number
  /** The User who created it. */
  readonly createdBy?: string
}

export const REGISTRATION_TOKEN: ManagementKind<RegistrationToken> = defineManagementKind<RegistrationToken>({
  kind: 'RegistrationToken',
  plural: 'registrationtokens',
  description: 'Lets the agent of a cluster or of a machine register with the server. The token itself is not stored.',
  spec: record(
    {
      cluster: immutable(NAME),
      purpose: immutable(oneOf('cluster', 'machine')),
      roles: immutable(list(oneOf(...MACHINE_ROLES), MACHINE_ROLES.length)),
      hash: immutable({ type: 'string', pattern: '^[0-9a-f]{64}$' }),
      expiresAt: TIME,
      usesLeft: INTEGER,
      createdBy: TEXT,
    },
    ['cluster', 'hash', 'expiresAt', 'usesLeft'],
  ),
  columns: [
    { name: 'Cluster', jsonPath: '.spec.cluster' },
    { name: 'Purpose', jsonPath: '.spec.purpose' },
    { name: 'Expires', jsonPath: '.spec.expiresAt' },
    { name: 'Uses Left', type: 'integer', jsonPath: '.spec.usesLeft' },
  ],
})
export const RegistrationTokens: Kind<RegistrationToken> = REGISTRATION_TOKEN.kind
