/** A short run of the stores' reliability harness, for every `npm test`; main.ts has the long one. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type BackendName, whyNoBackend } from './arena.ts'
import { DEFECTS } from './defects.ts'
import { type FaultName, FAULTS } from './faults.ts'
import { type RunResult, runOnce } from './run.ts'

const RUNS_TO_FIND = 20
const TEST_TIMEOUT_MS = 120_000

/** Each seeded defect, and the rule that must detect it. */
const SEEDED: readonly (readonly [defect: string, rule: RegExp])[] = [
  ['dropped-event', /reliable|resumable|atomic/],
  ['duplicated-event', /unique/],
  ['reordered-event', /ordered/],
  ['early-bookmark', /bookmarkable|real-time order/],
  ['lost-tail', /reliable/],
  ['stale-get', /real-time order|linearizable/],
  ['revision-back', /real-time order/],
  ['wrong-previous', /prev-value/],
  ['gap-at-compaction', /resumable|reliable/],
  ['split-list', /linearizable/],
  ['torn-batch', /linearizable|atomic/],
  ['lost-lease', /lease|linearizable/],
  ['lost-write', /unique revision|linearizable/],
  ['ignored-guard', /linearizable/],
  ['split-revision', /atomic/],
  ['unfiltered-event', /filter/],
  ['false-creation', /is-create/],
  ['old-events', /filter/],
]

async function findDefect(defect: string, rule: RegExp): Promise<number | undefined> {
  for (let run = 1; run <= RUNS_TO_FIND; run++) {
    const fault = run % 2 === 0 ? 'none' : 'compaction'
    const { violations } = await runOnce({ backend: 'memory', fault, seed: run, defect, trafficMs: 120 })
    if (violations.some((violation) => rule.test(violation.rule))) return run
  }
  return undefined
}

async function cleanRun(backend: BackendName, fault: FaultName, seed: number): Promise<RunResult> {
  const result = await runOnce({ backend, fault, seed, trafficMs: 200 })
  const again = `node test/reliability/main.ts --backend ${backend} --fault ${fault} --runs 1 --seed ${seed}`
  assert.deepEqual(result.violations, [], `again: ${again}`)
  assert.ok(result.commits > 20, `there was traffic: ${result.commits} commits`)
  return result
}

describe('reliability harness of storage backends', { concurrency: 2 }, () => {
  it('has a test for each seeded defect', () => {
    assert.deepEqual(
      SEEDED.map(([defect]) => defect),
      Object.keys(DEFECTS),
    )
  })

  for (const [defect, rule] of SEEDED) {
    it(`finds the seeded defect ${defect} within ${RUNS_TO_FIND} runs`, { timeout: TEST_TIMEOUT_MS }, async () => {
      assert.ok((await findDefect(defect, rule)) !== undefined)
    })
  }

  it('finds nothing wrong with the memory backend', { timeout: TEST_TIMEOUT_MS }, async () => {
    for (const fault of ['none', 'compaction'] as const) await cleanRun('memory', fault, 11)
  })
})

/** Backend, fault, and how many runs of it. */
const FAULTED: readonly (readonly [BackendName, FaultName, number])[] = [
  ['sqlite', 'kill', 4],
  ['sqlite', 'commit-kill', 2],
  ['sqlite', 'compaction', 1],
  ['sqlite', 'power', 2],
  ['sqlite', 'full', 1],
  ['etcd', 'kill', 1],
  ['etcd', 'leader', 1],
  ['etcd', 'pause', 1],
]

describe('reliability of a storage backend', { concurrency: 2 }, () => {
  for (const [backend, fault, runs] of FAULTED) {
    const skip = whyNoBackend(backend) ?? FAULTS[fault].whyNot?.() ?? false
    for (let run = 1; run <= runs; run++) {
      it(`${backend} passes with fault "${fault}", seed ${run}`, { skip, timeout: TEST_TIMEOUT_MS }, async () => {
        await cleanRun(backend, fault, run)
      })
    }
  }
})
