/** Lists the explainers of objects. The first one that applies to an object explains it. */
import type { Explainer } from '../explainer.ts'
import { autoscaling } from './autoscaling.ts'
import { containers } from './containers.ts'
import { endpoints } from './endpoints.ts'
import { eviction } from './eviction.ts'
import { rollout } from './rollout.ts'
import { scheduling } from './scheduling.ts'
import { termination } from './termination.ts'
import { volume } from './volume.ts'

export const EXPLAINERS: readonly Explainer[] = [
  termination,
  scheduling,
  eviction,
  containers,
  rollout,
  endpoints,
  volume,
  autoscaling,
]
