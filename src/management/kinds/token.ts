/**
 * The kind Token: a browser session or an API token. The object contains only the hash of the secret; clients send
 * `hk_<name>_<secret>`.
 */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

import {
  BOOLEAN,
  defineManagementKind,
  type ManagementKind,
  immutable,
  INTEGER,
  NAME,
  oneOf,
  record,
  TEXT,
  TIME,
} from './definition.ts'

export interface Token extends KubeObject {
  readonly spec: TokenSpec
  readonly status?: TokenStatus
}

export interface TokenSpec {
  /** The name of the User. */
  readonly user: string
  readonly type: 'session' | 'api'
  readonly description?: string
  /** SHA-256 of the secret, in hex. */
  readonly hash: string
  readonly expiresAt: string
  /** The token ends when it was not used for this long. */
  readonly idleSeconds?: number
  readonly disabled?: boolean
  /** The token works for this cluster only. */
  readonly cluster?: string
  /** Requests that change something are refused. */
  readonly readOnly?: boolean
}

export interface TokenStatus {
  /** Written at most once a minute. */
  readonly lastUsedAt?: string
  readonly lastAddress?: string
}

export const TOKEN: ManagementKind<Token> = defineManagementKind<Token>({
  kind: 'Token',
  plural: 'tokens',
  description: 'A session of a browser, or an API token. The secret itself is not stored.',
  spec: record(
    {
      user: immutable(NAME),
      type: immutable(oneOf('session', 'api')),
      description: TEXT,
      hash: immutable({ type: 'string', pattern: '^[0-9a-f]{64}$' }),
      expiresAt: TIME,
      idleSeconds: INTEGER,
      disabled: BOOLEAN,
      cluster: TEXT,
      readOnly: BOOLEAN,
    },
    ['user', 'type', 'hash', 'expiresAt'],
  ),
  status: record({ lastUsedAt: TIME, lastAddress: TEXT }),
  columns: [
    { name: 'User', jsonPath: '.spec.user' },
    { name: 'Type', jsonPath: '.spec.type' },
    { name: 'Cluster', jsonPath: '.spec.cluster' },
    { name: 'Expires', jsonPath: '.spec.expiresAt' },
    { name: 'Last Used', type: 'date', jsonPath: '.status.lastUsedAt' },
  ],
})
export const Tokens: Kind<Token> = TOKEN.kind
