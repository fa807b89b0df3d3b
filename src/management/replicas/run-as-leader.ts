/** Runs the tasks of the leader: all controllers, and the marking of agents whose replica has died. */
import { ApiClient } from '#client/api-client.ts'
import type { RunningCluster } from '#cluster/cluster.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import { userAgent } from '#model/version.ts'
import type { Controller } from '#reconcile/controller.ts'
import { runControllers } from '#reconcile/manager.ts'

import type { ManagementSettings } from '../clusters/cluster-status.ts'
import type { ManagementObjects } from '../objects.ts'
import type { LeaderWork } from './leadership.ts'
import { recordLostAgents } from './lost-agents.ts'
import type { Replicas } from './replicas.ts'

export interface LeaderParts {
  readonly around: { readonly clock: Clock; readonly random: Random; readonly log: Logger }
  readonly cluster: RunningCluster
  readonly objects: ManagementObjects
  readonly settings: ManagementSettings
  readonly replicas: Replicas
  readonly controllers: readonly Controller<ManagementSettings>[]
}

const SERVER = { name: 'hk:server', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }
const AGENT = userAgent('hyperkube-server')

/** Does the work whenever this replica leads. Resolves when a leader is known, or after five seconds without one. */
export async function runAsLeader(parts: LeaderParts, closing: AsyncDisposableStack): Promise<void> {
  const { around, replicas } = parts
  const stop = new AbortController()
  const running = replicas.leadership.run(leaderWork(parts), stop.signal).catch((error: unknown) => {
    if (!stop.signal.aborted) around.log.error(error, 'Leader election failed')
  })
  closing.defer(() => {
    stop.abort()
    return running
  })
  await untilKnown(replicas, around.clock)
}

function leaderWork({ around, cluster, objects, settings, replicas, controllers }: LeaderParts): LeaderWork {
  const { clock, random, log } = around
  return async (signal, guarded) => {
    const transport = guarded(cluster.running.server.clientAs(SERVER))
    const client = new ApiClient({ transport, clock, userAgent: AGENT })
    const controlling = runControllers(
      {
        controllers,
        clock,
        random,
        log,
        connect: () => ({ transport }),
        userAgent: AGENT,
        settings,
        isEnabled: () => true,
      },
      signal,
    ).catch((error: unknown) => log.error(error, 'Controllers stopped'))
    const isAlive = (replica: string): boolean => replicas.isAlive(replica)
    await Promise.all([
      controlling,
      cluster.runControllers(signal, guarded),
      recordLostAgents({ objects, client, isAlive, log }, signal),
    ])
  }
}

const LOOK_MS = 20
const LOOKS = 250

async function untilKnown({ leadership }: Replicas, clock: Clock): Promise<void> {
  for (let looks = 0; looks < LOOKS && !leadership.leads && leadership.leader === undefined; looks++)
    await sleep(clock, LOOK_MS)
}
