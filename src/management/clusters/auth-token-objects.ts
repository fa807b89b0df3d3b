/**
 * Builds the objects that describe API tokens and their users to the authorized endpoint of a cluster. Tokens with
 * limits that the endpoint cannot check, such as read-only ones, are left out.
 */
import type { Secret } from '#apis/core/v1.ts'
import {
  AUTH_LABEL,
  AUTH_NAMESPACE,
  type ClusterAuthToken,
  type ClusterUserAttribute,
  hashData,
} from '#cluster-agent/api-auth/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Memberships } from '../access/memberships.ts'
import type { Token } from '../kinds/token.ts'
import type { User } from '../kinds/user.ts'
import type { ClusterUser } from '../links/link.ts'

export interface AuthTokenObjects {
  readonly secrets: readonly Secret[]
  readonly tokens: readonly ClusterAuthToken[]
  readonly users: readonly ClusterUserAttribute[]
}

export const NO_AUTH_TOKENS: AuthTokenObjects = { secrets: [], tokens: [], users: [] }

/** The state of the server from which the objects are made. */
export interface AuthTokenSources {
  readonly tokens: readonly Token[]
  readonly user: (name: string) => User | undefined
  readonly memberships: Pick<Memberships, 'userIn'>
}

/** For the cluster: its usable API tokens of users who have a role there, and these users. */
export function authTokenObjects(
  { tokens, user, memberships }: AuthTokenSources,
  cluster: string,
  nowMs: number,
): AuthTokenObjects {
  const users = new Map<string, ClusterUser | undefined>()
  const userIn = (name: string): ClusterUser | undefined => {
    const found = users.has(name) ? undefined : user(name)
    if (found !== undefined) users.set(name, isActive(found) ? memberships.userIn(found, cluster) : undefined)
    return users.get(name)
  }
  const bound = tokens
    .filter((token) => isUsable(token, cluster, nowMs))
    .filter(({ spec }) => userIn(spec.user) !== undefined)
  return {
    secrets: bound.map(({ metadata, spec }) => ({
      ...objectOf('v1', 'Secret', metadata.name),
      type: 'Opaque',
      data: hashData(spec.hash),
    })),
    tokens: bound.map(({ metadata, spec }) => ({
      ...objectOf(API_VERSION, 'ClusterAuthToken', metadata.name),
      userName: spec.user,
      enabled: true,
      expiresAt: spec.expiresAt,
    })),
    users: [...users.values()].flatMap((found) =>
      found === undefined
        ? []
        : [{ ...objectOf(API_VERSION, 'ClusterUserAttribute', found.name), groups: found.groups, enabled: true }],
    ),
  }
}

/** When the first of the objects expires, in milliseconds since the epoch. Infinity: none does. */
export function firstExpiryMs({ tokens }: AuthTokenObjects): number {
  return Math.min(...tokens.map(({ expiresAt = '' }) => Date.parse(expiresAt)))
}

function isUsable({ metadata, spec }: Token, cluster: string, nowMs: number): boolean {
  const isOfCluster = spec.type === 'api' && spec.cluster === cluster
  const hasEnded =
    spec.disabled === true || metadata.deletionTimestamp !== undefined || !(Date.parse(spec.expiresAt) > nowMs)
  const isLimited = spec.readOnly === true || spec.idleSeconds !== undefined
  return isOfCluster && !hasEnded && !isLimited
}

/** The server refuses users who must change their password, so the cluster must do it too. */
function isActive({ metadata, spec }: User): boolean {
  return spec.disabled !== true && spec.mustChangePassword !== true && metadata.deletionTimestamp === undefined
}

const API_VERSION = 'cluster.cattle.io/v3'

function objectOf(apiVersion: string, kind: string, name = ''): KubeObject {
  return { apiVersion, kind, metadata: { namespace: AUTH_NAMESPACE, name, labels: { [AUTH_LABEL]: 'true' } } }
}
