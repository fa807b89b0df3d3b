/**
 * The HTTPS port of a replica: its routes behind the gate that forwards to the leader, and the same routes for
 * forwarded requests.
 */
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import type { Authority } from '#lib/x509/authority.ts'

import type { TunnelHub } from '../links/tunnel-hub.ts'
import type { ManagementObjects } from '../objects.ts'
import { createPort, type PortOptions } from '../port/port.ts'
import type { Route } from '../port/route.ts'
import { acceptFreshTokens } from './fresh-tokens.ts'
import { createGate, refuseUnlessLeading } from './gate.ts'
import { AUDIT_ID, CLIENT_ADDRESS } from './peer-protocol.ts'
import { peerRoutes } from './peer-routes.ts'
import type { Replicas } from './replicas.ts'

export interface ReplicaPortOptions extends PortOptions {
  readonly clock: Clock
  readonly objects: ManagementObjects
  readonly replicas: Replicas
  readonly hub: Pick<TunnelHub, 'dial' | 'listen'>
  readonly ca: Authority
}

export interface ReplicaPort {
  readonly routes: readonly Route[]
  readonly serve: (exchange: Exchange) => Promise<void>
  /** Ends the connections of other replicas. */
  close(): Promise<void>
}

export function createReplicaPort(options: ReplicaPortOptions): ReplicaPort {
  const { replicas, objects } = options
  const port: PortOptions = { ...options, authenticate: acceptFreshTokens(options.authenticate, objects) }
  const forReplicas = createPort({
    ...port,
    addressOf: ({ headers }) => headerOf(headers, CLIENT_ADDRESS) ?? '',
    auditIdOf: ({ headers }) => headerOf(headers, AUDIT_ID),
    intercept: refuseUnlessLeading(replicas),
  })
  const connections = peerRoutes({ ...options, serve: forReplicas })
  const routes = [...options.routes, ...connections.routes]
  const { leadership, peers } = replicas
  const gate = createGate({ clock: options.clock, leadership, peers, isCurrent: () => replicas.isCurrent() })
  return { routes, serve: createPort({ ...port, routes, intercept: gate }), close: () => connections.close() }
}

function headerOf(headers: Exchange['headers'], name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : undefined
}
