/**
 * All scenarios, those that take longest first. What takes hours is not among them, since upstream's program has no other
 * clock than the machine's: requests for certificates that are cleaned away, tokens of accounts that nobody used for a year.
 * Clocks that change are looked at by what CronJobs missed then.
 */
import { AUTOSCALING } from './autoscaling.ts'
import { CLUSTER } from './cluster.ts'
import { JOBS } from './jobs.ts'
import { NODES } from './nodes.ts'
import { REQUESTS } from './requests.ts'
import { ROLLOUTS } from './rollouts.ts'
import type { Scenario } from './scenario.ts'
import { SERVICES } from './services.ts'
import { SETS } from './sets.ts'
import { VOLUMES } from './volumes.ts'

const ALL: readonly Scenario[] = [
  ...JOBS,
  ...AUTOSCALING,
  ...SETS,
  ...ROLLOUTS,
  ...SERVICES,
  ...CLUSTER,
  ...VOLUMES,
  ...REQUESTS,
  ...NODES,
]

const LONG = /CronJob|collected|tried again|ignores|fails too often/

export const SCENARIOS: readonly Scenario[] = [
  ...ALL.filter(({ name }) => LONG.test(name)),
  ...ALL.filter(({ name }) => !LONG.test(name)),
]
