/** The scheduler in the process of its server: without a connection, but with the identity that it would have outside. */
import type { User } from '#apiserver/registry/resource.ts'
import { ApiClient } from '#client/api-client.ts'
import { findGates } from '#control-plane/flags/gate-reach.ts'
import { createGates } from '#control-plane/flags/gates.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { Surroundings } from '#control-plane/site.ts'
import type { FeatureGates } from '#lib/flags/feature-gates.ts'
import { userAgent } from '#model/version.ts'
import { SCHEDULER_REACH } from '#scheduler/gates.ts'
import { startScheduler } from '#scheduler/start.ts'

const SCHEDULER: User = { name: 'system:kube-scheduler', uid: '', groups: ['system:authenticated'], extra: {} }

export interface InProcessScheduler extends Pick<Surroundings, 'clock' | 'random' | 'log'> {
  /** Its server's, which may be more than it has; what it does not do is told. */
  readonly gates: FeatureGates
  readonly host: string
}

/** It ends before what is on `closing` already. */
export function startInProcessScheduler(
  { server }: Pick<RunningServer, 'server'>,
  { clock, random, log, gates, host }: InProcessScheduler,
  closing: AsyncDisposableStack,
): void {
  const { errors, notes } = findGates(gates, SCHEDULER_REACH)
  for (const note of [...errors, ...notes]) log.info(`kube-scheduler: ${note}`)
  const stop = new AbortController()
  const client = new ApiClient({
    transport: server.clientAs(SCHEDULER),
    clock,
    userAgent: `${userAgent('kube-scheduler')}/scheduler`,
  })
  const running = startScheduler({
    client,
    clock,
    random,
    log,
    isEnabled: createGates(gates),
    host,
    signal: stop.signal,
  })
  closing.defer(() => {
    stop.abort()
    return running.ended()
  })
}
