/** All scenarios, those that take longest first. */
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
