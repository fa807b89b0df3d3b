/** Runs the scheduler in the API server's process: it calls the server without a connection, with its own identity. */
import type { User } from '#auth/user.ts'
import { ApiClient } from '#client/api-client.ts'
import { findGates } from '#component/flags/gate-reach.ts'
import { createGates } from '#component/flags/gates.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { FeatureGates } from '#lib/flags/feature-gates.ts'
import { userAgent } from '#model/version.ts'
import { SCHEDULER_REACH } from '#scheduler/gates.ts'
import { startScheduler } from '#scheduler/start.ts'

const SCHEDULER: User = { name: 'system:kube-scheduler', uid: '', groups: ['system:authenticated'], extra: {} }

export interface InProcessScheduler extends Pick<EnvironmentOptions, 'clock' | 'random' | 'log'> {
  /** The server's gates; unsupported ones are logged. */
  readonly gates: FeatureGates
  readonly host: string
}

/** It stops before everything already on `closing`. */
export function startInProcessScheduler(
  { server }: Pick<RunningServer, 'server'>,
  { clock, random, log, gates, host }: InProcessScheduler,
  closing: AsyncDisposableStack,
): void {
  const { errors, notes } = findGates(gates, SCHEDULER_REACH)
  for (const note of [...errors, ...notes]) log.info('Feature gate has no effect in kube-scheduler', { reason: note })
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
