/** The leader election flags of components: the same in all of them, except for the name of the Lease. */
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagGroup, FlagsOf } from '#lib/flags/flag-support.ts'

const LEADER_ELECTION = {
  'leader-elect': 'bool =true If true, run only while this replica is the leader.',
  'leader-elect-lease-duration': 'duration =15s Time that other replicas wait for the leader to renew its Lease.',
  'leader-elect-renew-deadline': 'duration =10s Time after which a leader that cannot renew its Lease stops.',
  'leader-elect-resource-lock': 'string =leases unsupported: leader election uses a Lease',
  'leader-elect-resource-name': 'string Name of the Lease.',
  'leader-elect-resource-namespace': 'string =kube-system Namespace of the Lease.',
  'leader-elect-retry-period': 'duration =2s Time between attempts to acquire or renew the Lease.',
} as const

export interface LeaderElectionValues extends RowValues<typeof LEADER_ELECTION> {}

export function leaderElectionFlags(component: string): FlagsOf<LeaderElectionValues> & FlagGroup {
  const flags = flagRows(LEADER_ELECTION)
  const name = { ...flags['leader-elect-resource-name'], initial: component }
  return { ...flags, 'leader-elect-resource-name': name }
}

/** client-go's texts for invalid durations. */
export function leaderErrors(settings: LeaderElectionValues): string[] {
  if (!settings['leader-elect']) return []
  const [lease, renew] = [settings['leader-elect-lease-duration'], settings['leader-elect-renew-deadline']]
  if (lease <= renew) return ['leaseDuration must be greater than renewDeadline']
  const isLong = renew <= settings['leader-elect-retry-period'] * 1.2
  return isLong ? ['renewDeadline must be greater than retryPeriod*JitterFactor'] : []
}
