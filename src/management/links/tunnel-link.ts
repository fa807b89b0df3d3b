/** Connects to the API server of a cluster over HTTP on the streams of an agent's tunnel. */
import type { Duplex } from 'node:stream'

import { API_SERVER_ADDRESS } from '#cluster-agent/agent.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'

import type { ClusterLink } from './link.ts'

export type HttpLink = ClusterLink & { readonly client: HttpClient }

/** Requests use HTTP/1.1 on streams, so the host is only a name. */
const URL = `http://${API_SERVER_ADDRESS}`

/** Close `client` when the tunnel has ended. */
export function tunnelLink(clock: Clock, dial: () => Duplex): HttpLink {
  return {
    client: createHttpClient({ clock, connect: () => Promise.resolve(dial()), http1Only: true }),
    url: URL,
    identityHeaders: ({ name, groups }) => ({ 'impersonate-user': name, 'impersonate-group': groups }),
  }
}
