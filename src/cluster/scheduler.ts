/** The scheduler in the process of its server: without a connection, but with the identity that it would have outside. */
import type { User } from '#apiserver/registry/resource.ts'
import { ApiClient } from '#client/api-client.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { Surroundings } from '#control-plane/site.ts'
import { userAgent } from '#model/version.ts'
import { startScheduler } from '#scheduler/start.ts'

const SCHEDULER: User = { name: 'system:kube-scheduler', uid: '', groups: ['system:authenticated'], extra: {} }

export interface InProcessScheduler extends Pick<Surroundings, 'clock' | 'random' | 'log'> {
  readonly isEnabled: (gate: string) => boolean
  readonly host: string
}

/** It ends before what is on `closing` already. */
export function startInProcessScheduler(
  { server }: Pick<RunningServer, 'server'>,
  { clock, random, log, isEnabled, host }: InProcessScheduler,
  closing: AsyncDisposableStack,
): void {
  const stop = new AbortController()
  const client = new ApiClient({
    transport: server.clientAs(SCHEDULER),
    clock,
    userAgent: `${userAgent('kube-scheduler')}/scheduler`,
  })
  const running = startScheduler({ client, clock, random, log, isEnabled, host, signal: stop.signal })
  closing.defer(() => {
    stop.abort()
    return running.ended()
  })
}
