/**
 * The kinds that store the management server's tokens in a cluster: ClusterAuthToken, ClusterUserAttribute, and a
 * Secret with the hash. Their names and fields are Rancher's.
 */
import type { CustomResourceDefinition } from '#apis/apiextensions/v1.ts'
import type { Secret } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { defineKind } from '#client/custom-kind.ts'
import type { KubeObject } from '#meta/object.ts'

export const AUTH_NAMESPACE = 'cattle-system'
/** Everything with this label belongs to the management server and is deleted when it is not wanted any more. */
export const AUTH_LABEL = 'management.hyperkube.io/authorized-endpoint'

/** Its name is the name of the Token. The definition requires no field. */
export interface ClusterAuthToken extends KubeObject {
  readonly userName?: string
  readonly enabled?: boolean
  readonly expiresAt?: string
}

/** Its name is the name of the User. The definition requires no field. */
export interface ClusterUserAttribute extends KubeObject {
  readonly groups?: readonly string[]
  readonly enabled?: boolean
}

const GROUP = 'cluster.cattle.io'
const VERSION = 'v3'

export const ClusterAuthTokens: Kind<ClusterAuthToken> = defineKind<ClusterAuthToken>({
  group: GROUP,
  version: VERSION,
  kind: 'ClusterAuthToken',
  plural: 'clusterauthtokens',
})
export const ClusterUserAttributes: Kind<ClusterUserAttribute> = defineKind<ClusterUserAttribute>({
  group: GROUP,
  version: VERSION,
  kind: 'ClusterUserAttribute',
  plural: 'clusteruserattributes',
})

const TEXT = { type: 'string' }
const BOOLEAN = { type: 'boolean' }

export const AUTH_DEFINITIONS: readonly CustomResourceDefinition[] = [
  definition(ClusterAuthTokens, {
    userName: TEXT,
    enabled: BOOLEAN,
    expiresAt: TEXT,
    description: TEXT,
    lastUsedAt: TEXT,
  }),
  definition(ClusterUserAttributes, {
    groups: { type: 'array', items: TEXT },
    enabled: BOOLEAN,
    lastRefresh: TEXT,
    needsRefresh: BOOLEAN,
  }),
]

function definition({ kind, plural, singular, listKind }: Kind, fields: object): CustomResourceDefinition {
  const properties = { apiVersion: TEXT, kind: TEXT, metadata: { type: 'object' }, ...fields }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}`, labels: { [AUTH_LABEL]: 'true' } },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: { plural, singular, kind, listKind },
      versions: [
        { name: VERSION, served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', properties } } },
      ],
    },
  } as unknown as CustomResourceDefinition
}

/** The algorithm comes first, so that a reader can refuse a hash that it does not know. */
const ALGORITHM = 'sha256:'
const FIELD = 'hash'

/** The data of the Secret of a token. */
export function hashData(hash: string): Record<string, string> {
  return { [FIELD]: Buffer.from(`${ALGORITHM}${hash}`).toString('base64') }
}

/** The hash in the Secret of a token, with its algorithm. Undefined: there is none. */
export function hashIn(secret: Secret | undefined): string | undefined {
  const stored = secret?.data?.[FIELD]
  return stored === undefined ? undefined : Buffer.from(stored, 'base64').toString()
}

/** Undefined: the hash is of another algorithm. */
export function sha256Of(hash: string): string | undefined {
  return hash.startsWith(ALGORITHM) ? hash.slice(ALGORITHM.length) : undefined
}
