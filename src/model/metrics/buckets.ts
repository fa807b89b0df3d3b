/** The table of bucket bounds of histograms. */

import { DEFAULT_BUCKETS, exponentialBuckets, linearBuckets } from '#lib/metrics/metrics.ts'
import type { Words } from '#lib/metrics/table.ts'

const DAY_SECONDS = 86_400
const SLI = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60]
const REQUEST = [0.005, 0.025, ...SLI]
const FILTER = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 5, 10, 15, 30]

export type BucketName =
  | Words<'admission ageRatio allNodes answerBytes bodyBytes certificate cacheWait condition conversion conversionWebhook decision demand eventBytes eviction expression filter'>[number]
  | Words<'jobDeletion jobSync load oneNode perSync queueLength request requestUse seats seatUse skew sli usual waiting watches watchList webhook'>[number]

export const BUCKETS: Readonly<Record<BucketName, readonly number[]>> = {
  conversion: exponentialBuckets(0.001, 2, 15),
  conversionWebhook: [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60],
  admission: [0.005, 0.025, 0.1, 0.5, 1, 2.5],
  ageRatio: exponentialBuckets(0.25, 2, 6),
  allNodes: exponentialBuckets(0.01, 4, 8),
  answerBytes: exponentialBuckets(1000, 10, 7),
  bodyBytes: linearBuckets(50_000, 100_000, 31),
  certificate: [
    0,
    1800,
    3600,
    7200,
    21_600,
    43_200,
    ...[1, 2, 4, 7, 30, 90, 180, 360].map((days) => days * DAY_SECONDS),
  ],
  cacheWait: [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3],
  condition: [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25],
  decision: exponentialBuckets(0.001, 2, 15),
  demand: [0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6],
  eventBytes: exponentialBuckets(1024, 2, 8),
  eviction: [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240],
  expression: [0.0000005, 0.001, 0.01, 0.1, 1],
  filter: FILTER,
  jobDeletion: exponentialBuckets(0.1, 2, 14),
  jobSync: exponentialBuckets(0.004, 2, 15),
  load: [0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1],
  oneNode: exponentialBuckets(0.001, 4, 8),
  perSync: exponentialBuckets(2, 2, 15),
  queueLength: [0, 10, 25, 50, 100, 250, 500, 1000],
  request: REQUEST,
  requestUse: [0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1],
  seats: [1, 2, 4, 8, 16, 32, 64, 100],
  seatUse: [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1],
  skew: exponentialBuckets(1, 2, 10),
  sli: SLI,
  usual: DEFAULT_BUCKETS,
  waiting: [0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30],
  watches: [0, 1, 10, 100, 1000, 10_000],
  watchList: [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60],
  webhook: [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25],
}
