/** Leader election of components: the same flags in all of them, but for the name of the Lease. */
import { type FlagGroup, type FlagsOf, unsupported } from '#lib/flags/flag-support.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, string } from '#lib/flags/kinds.ts'

export interface LeaderElectionValues {
  readonly 'leader-elect': boolean
  readonly 'leader-elect-lease-duration': number
  readonly 'leader-elect-renew-deadline': number
  readonly 'leader-elect-resource-name': string
  readonly 'leader-elect-resource-namespace': string
  readonly 'leader-elect-retry-period': number
}

export function leaderElectionFlags(component: string): FlagsOf<LeaderElectionValues> & FlagGroup {
  return {
    'leader-elect': flag(bool, true, 'Whether to work only while being the leader of several of these'),
    'leader-elect-lease-duration': flag(duration, 15_000, 'How long others wait for a leader that is silent'),
    'leader-elect-renew-deadline': flag(duration, 10_000, 'How long a leader goes on that cannot say so'),
    'leader-elect-resource-lock': unsupported(string, 'leases', 'who leads is said in a Lease'),
    'leader-elect-resource-name': flag(string, component, 'Name of the Lease that says who leads'),
    'leader-elect-resource-namespace': flag(string, 'kube-system', 'Namespace of the Lease'),
    'leader-elect-retry-period': flag(duration, 2000, 'How often the Lease is looked at and renewed'),
  }
}

/** What client-go says of times that cannot be. */
export function leaderErrors(settings: LeaderElectionValues): string[] {
  if (!settings['leader-elect']) return []
  const [lease, renew] = [settings['leader-elect-lease-duration'], settings['leader-elect-renew-deadline']]
  if (lease <= renew) return ['leaseDuration must be greater than renewDeadline']
  const isLong = renew <= settings['leader-elect-retry-period'] * 1.2
  return isLong ? ['renewDeadline must be greater than retryPeriod*JitterFactor'] : []
}
