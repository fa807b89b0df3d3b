/**
 * All scenarios, the longest first. Scenarios that take hours are missing, because upstream's program uses the real
 * clock. Examples are the cleanup of certificate requests and of unused tokens. Missed CronJobs also cover clock
 * changes.
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

/** By the name of the file that has their recordings. */
export const GROUPS: Readonly<Record<string, readonly Scenario[]>> = {
  jobs: JOBS,
  autoscaling: AUTOSCALING,
  sets: SETS,
  rollouts: ROLLOUTS,
  services: SERVICES,
  cluster: CLUSTER,
  volumes: VOLUMES,
  requests: REQUESTS,
  nodes: NODES,
}

const ALL = Object.values(GROUPS).flat()

const LONG = /CronJob|collected|tried again|ignores|fails too often/

export const SCENARIOS: readonly Scenario[] = [
  ...ALL.filter(({ name }) => LONG.test(name)),
  ...ALL.filter(({ name }) => !LONG.test(name)),
]
