/**
 * The interface of a link, through which the management server sends requests to the API server of a cluster. It
 * includes the headers that name the user.
 */
import type { RequestHeaders } from '#component/forwarding/headers.ts'
import type { HttpClient } from '#lib/http/client.ts'

/** The user of a request as the cluster sees it. */
export interface ClusterUser {
  readonly name: string
  readonly groups: readonly string[]
}

export interface ClusterLink {
  readonly client: Pick<HttpClient, 'request' | 'upgrade'>
  /** Scheme, host and port for requests of `client`. */
  readonly url: string
  /** The Machine through which it leads while the agent of the cluster is away. */
  readonly machine?: string
  /** The headers that tell the cluster who the user is. */
  identityHeaders(user: ClusterUser): RequestHeaders
}

/** The links by cluster. */
export interface ClusterLinks {
  /** Undefined while there is none. */
  get(cluster: string): ClusterLink | undefined
}

/** The server itself, for example when it applies roles. The agents let it pass. */
export const SERVER_USER: ClusterUser = {
  name: 'hk:server',
  groups: ['hk:cluster:cluster-owner', 'system:authenticated'],
}
