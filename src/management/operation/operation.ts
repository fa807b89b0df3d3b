/** Creates the health and metrics routes of the management server, for its operators. */
import type { RunningCluster } from '#cluster/cluster.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'

import type { Memberships } from '../access/memberships.ts'
import { MANAGEMENT_KINDS } from '../kinds/index.ts'
import type { TunnelHub } from '../links/tunnel-hub.ts'
import type { ManagementObjects } from '../objects.ts'
import type { PortOptions } from '../port/port.ts'
import type { Route } from '../port/route.ts'
import type { Replicas } from '../replicas/replicas.ts'
import { serverChecks } from './checks.ts'
import { healthRoutes } from './health.ts'
import { createServerMeters } from './meters.ts'
import { metricsRoute } from './metrics-route.ts'

export interface OperationOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly cluster: RunningCluster
  readonly objects: ManagementObjects
  readonly hub: TunnelHub
  readonly memberships: Memberships
  readonly replicas: Replicas
  readonly dataDir: string
  readonly isReady: () => boolean
  readonly lostAuditLines: () => number
}

export interface Operation {
  readonly routes: readonly Route[]
  readonly observe: NonNullable<PortOptions['observe']>
  close(): void
}

export function openOperation(options: OperationOptions): Operation {
  const { clock, log, cluster, objects, hub, memberships, replicas } = options
  const { backend } = cluster.running.server.registry.services
  const meters = createServerMeters({
    clock,
    hub: () => hub.counts(),
    objects: () => new Map(MANAGEMENT_KINDS.map(({ kind }) => [kind.kind, objects.list(kind).length])),
    replicas: () => replicas.peers.counts,
    leads: () => replicas.leadership.leads,
    lostAuditLines: options.lostAuditLines,
  })
  const onChange = (check: string, problem: string | undefined): void =>
    log.info(problem === undefined ? 'Health check passes again' : 'Health check failed', { check, problem })
  const checks = serverChecks({ ...options, backend })
  return {
    routes: [...healthRoutes({ clock, checks, onChange }), metricsRoute(memberships, () => meters.registry)],
    observe: (exchange) => meters.observe(exchange),
    close: () => meters[Symbol.dispose](),
  }
}
