/** Connects to the API server of a cluster with requests on the streams of an agent's tunnel. */
import type { Duplex } from 'node:stream'

import { API_SERVER_ADDRESS } from '#cluster-agent/agent.ts'
import type { Clock } from '#lib/clock.ts'
import { createRequestClient } from '#lib/tunnel/request-client.ts'
import { REQUEST_PROTOCOL } from '#lib/tunnel/request-head.ts'
import type { Tunnel } from '#lib/tunnel/tunnel.ts'

import type { ClusterLink } from './link.ts'

/** The streams lead to one API server, so the host is only a name. */
const URL = `http://${API_SERVER_ADDRESS}`

/** `dial` opens a stream for one request. */
export function tunnelLink(clock: Clock, dial: () => Duplex): ClusterLink {
  return {
    client: createRequestClient(clock, dial),
    url: URL,
    identityHeaders: ({ name, groups }) => ({ 'impersonate-user': name, 'impersonate-group': groups }),
  }
}

/** A stream for one request to the API server of the agent's cluster. */
export function dialApi(tunnel: Tunnel): Duplex {
  return tunnel.dial(REQUEST_PROTOCOL, API_SERVER_ADDRESS)
}
