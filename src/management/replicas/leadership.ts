/**
 * Leader election among the replicas of the management server. The leader runs the controllers and serves requests
 * that need one process.
 */
import type { ApiClient, Transport } from '#client/api-client.ts'
import { Fence } from '#client/fence.ts'
import { lead, LeadershipLost } from '#client/leader-election.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'

import { MANAGEMENT_NAMESPACE } from '../objects.ts'

/** `around` refuses writes of a process that no longer leads. */
export type LeaderWork = (signal: AbortSignal, around: (transport: Transport) => Transport) => Promise<void>

export interface Leadership {
  /** Whether this replica leads at this moment. */
  readonly leads: boolean
  /** The id of the replica that leads; undefined while there is none. */
  readonly leader: string | undefined
  /** Does the work while this replica leads, again and again, until the signal is aborted. */
  run(work: LeaderWork, signal: AbortSignal): Promise<void>
}

/** For a server without replicas. */
export function leadAlone(id: string): Leadership {
  return { leads: true, leader: id, run: (work, signal) => work(signal, (transport) => transport) }
}

export interface ElectionOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
  readonly id: string
}

const LEASE = 'hyperkube-server'

/** By a Lease of the management cluster. */
export function electLeader({ client, random, log, id }: ElectionOptions): Leadership {
  let leads = (): boolean => false
  let leader: string | undefined
  const onLeader = (identity: string): void => {
    leader = identity === '' ? undefined : identity
    log.info('New leader elected', { leader: identity })
  }
  const onError = (error: unknown): void => log.error(error, 'Failed to acquire or renew the leader lease')
  const election = { client, random, namespace: MANAGEMENT_NAMESPACE, name: LEASE, identity: id, onLeader, onError }
  const once = async (work: LeaderWork, signal: AbortSignal): Promise<void> => {
    const fence = new Fence()
    try {
      await lead(election, signal, (working, isLeading) => {
        leads = isLeading
        fence.guard(isLeading)
        return work(working, (transport) => fence.around(transport))
      })
    } catch (error) {
      if (!(error instanceof LeadershipLost)) throw error
      log.info('Stopped leading', { id })
    } finally {
      leads = () => false
    }
  }
  return {
    get leads() {
      return leads()
    },
    get leader() {
      return leader
    },
    async run(work, signal) {
      while (!signal.aborted) await once(work, signal)
    },
  }
}
