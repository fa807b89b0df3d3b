/**
 * The contract of Backend as tests, which every implementation registers with `backendSuite`. Each test uses a separate
 * prefix, so that implementations may share an etcd.
 */
import { describe, it } from 'node:test'

import { createBench, type CreateBackend, type Test } from './contract/bench.fixture.ts'
import { boundedWatchTests } from './contract/bounded-watches.suite.ts'
import { commitTests } from './contract/commits.suite.ts'
import { compactionTests } from './contract/compaction.suite.ts'
import { forkTests } from './contract/forks.suite.ts'
import { leaseTests } from './contract/leases.suite.ts'
import { lifeTests } from './contract/lifecycle.suite.ts'
import { propertyTests } from './contract/properties.suite.ts'
import { rangeTests } from './contract/ranges.suite.ts'
import { timeTests } from './contract/times.suite.ts'
import { watchTests } from './contract/watches.suite.ts'

const TEST_TIMEOUT_MS = 60_000

export function backendSuite(name: string, create: CreateBackend): void {
  const test: Test = (title, body, { isOwn = false } = {}) => {
    it(title, { timeout: TEST_TIMEOUT_MS }, async (t) => {
      const under = await create(t, { isOwn })
      const bench = createBench(under)
      try {
        await body(bench, t)
      } finally {
        await (under.release?.() ?? under.backend.close())
      }
    })
  }
  describe(`storage backend ${name}`, () => {
    describe('commits', () => commitTests(test))
    describe('ranges', () => rangeTests(test))
    describe('compaction', () => compactionTests(test))
    describe('watches', () => watchTests(test))
    describe('bounded watches', () => boundedWatchTests(test))
    describe('leases', () => leaseTests(test))
    describe('times of commits', () => timeTests(test))
    describe('forks', () => forkTests(test))
    describe('lifecycle', () => lifeTests(test))
    describe('compared with a model', () => propertyTests(test))
  })
}
