/**
 * Creates an API client that reaches a managed cluster through its link, as the management server itself. Responses
 * are limited in size, because the cluster may be hostile.
 */
import { ApiClient, type Transport } from '#client/api-client.ts'
import type { Clock } from '#lib/clock.ts'
import type { HttpRequest } from '#lib/http/client.ts'
import { userAgent } from '#model/version.ts'

import { type ClusterLink, type ClusterUser, SERVER_USER } from '../links/link.ts'

/** About the nodes of a cluster with 5000 of them. */
const MAX_BYTES = 64 << 20

export function clusterClient(link: ClusterLink, clock: Clock, user: ClusterUser = SERVER_USER): ApiClient {
  const identity = link.identityHeaders(user)
  const transport: Transport = {
    request: (request: HttpRequest) =>
      link.client.request({ ...request, headers: { ...request.headers, ...identity } }),
  }
  return new ApiClient({
    transport,
    server: link.url,
    clock,
    userAgent: userAgent('hyperkube-server'),
    maxBytes: MAX_BYTES,
  })
}
