/** Short runs of the API server's reliability tests, for every `npm test`; commands.ts has the long ones. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { whyNoBackend } from '../arena.ts'
import { runFuzz } from './fuzz/fuzz.ts'
import { isKnownError } from './fuzz/known-errors.ts'
import { requestFor } from './fuzz/requests.ts'
import { besiege } from './hostile/hostile.ts'
import { runKills } from './kills.ts'
import { Ledger } from './ledger.ts'
import { runManagers } from './managers.ts'
import { runTerms } from './terms.ts'

const options = { timeout: 180_000 }

describe('API server under random load', { concurrency: 1 }, () => {
  it('answers random requests without a crash or an unexpected 500', options, async () => {
    const report = await runFuzz({ seed: 1, first: 0, requests: 1500, clients: 8, datastore: 'sqlite' })
    assert.deepEqual(report.problems, [], 'again: node test/reliability/main.ts fuzz --seed 1 --requests 1500')
    assert.ok((report.statuses.get(200) ?? 0) + (report.statuses.get(201) ?? 0) > 100, 'some requests succeed')
  })

  it('survives attacks, and serves other clients meanwhile', options, async () => {
    const attacks = ['garbage', 'slow-headers', 'rapid-reset', 'continuation-flood', 'json-bodies', 'yaml-bodies']
    const phases = await besiege({ attacks, durationMs: 1500, scale: 0.05, datastore: 'memory' })
    assert.equal(phases.length, attacks.length + 1)
    for (const { attack, problems, latency } of phases) {
      assert.deepEqual(problems, [], `again: node test/reliability/main.ts hostile --attack ${attack}`)
      assert.ok(latency.get.count > 0, `under ${attack} somebody was served`)
    }
  })

  it('keeps the invariants of controllers while their manager is killed, and all work finishes', options, async () => {
    const violations = await runManagers({ rounds: 2, seed: 1, progress: () => undefined })
    assert.deepEqual(violations, [], 'again: node test/reliability/main.ts managers --rounds 2 --seed 1')
  })

  for (const datastore of ['sqlite', 'etcd'] as const) {
    const skip = datastore === 'etcd' ? (whyNoBackend('etcd') ?? false) : false
    it(`keeps acknowledged writes if it is killed, on ${datastore}`, { ...options, skip }, async () => {
      const report = await runKills({ datastore, times: 2, writers: 8, seed: 1 })
      const again = `node test/reliability/main.ts kills --datastore ${datastore} --times 2 --seed 1`
      assert.deepEqual(report.problems, [], `again: ${again}`)
      assert.ok(report.acknowledged >= 40 && report.events >= report.acknowledged)
    })
  }

  it('loses no request on SIGTERM', options, async () => {
    const report = await runTerms({ datastore: 'sqlite', times: 2, clients: 4, seed: 1 })
    assert.deepEqual(report.problems, [], 'again: node test/reliability/main.ts terms --times 2 --clients 4 --seed 1')
    assert.ok(report.answered > 0 && report.watches > 0)
  })
})

describe('fuzzer of the API server', () => {
  it('generates the same request from the same seed and number', () => {
    for (const number of [0, 7, 99]) assert.deepEqual(requestFor(3, number), requestFor(3, number))
    assert.notDeepEqual(requestFor(3, 1), requestFor(4, 1))
  })

  it('distinguishes errors that upstream also returns from others', () => {
    assert.ok(isKnownError('POST', 'resourceVersion should not be set on objects to be created'))
    assert.ok(!isKnownError('POST', 'Internal error occurred: x.y is not a function'))
  })
})

describe('ledger of acknowledged writes', () => {
  const found = (
    content: string | undefined,
    version: number,
  ): ReadonlyMap<string, { content: string; version: number }> =>
    new Map(content === undefined ? [] : [['a', { content, version }]])

  it('accepts acknowledged writes, and both outcomes of unacknowledged ones', () => {
    const ledger = new Ledger()
    ledger.attempt('a', 'one')(5)
    ledger.compare(found('one', 5), 6)
    ledger.attempt('a', 'two')
    ledger.compare(found('two', 7), 7)
    ledger.attempt('a', undefined)
    ledger.compare(found('two', 7), 8)
    assert.deepEqual(ledger.problems, [])
  })

  it('detects lost, reverted and invented writes, and versions that decrease', () => {
    const cases: [Content: string | undefined, version: number, list: number][] = [
      [undefined, 0, 9],
      ['zero', 4, 9],
      ['one', 6, 9],
      ['one', 5, 4],
    ]
    for (const [content, version, list] of cases) {
      const ledger = new Ledger()
      ledger.attempt('a', 'one')(5)
      ledger.compare(found(content, version), list)
      assert.equal(ledger.problems.length, 1, `${content} at ${version}`)
    }
    const ledger = new Ledger()
    ledger.attempt('a', 'one')(5)
    ledger.attempt('a', 'two')(5)
    assert.equal(ledger.problems.length, 1)
  })
})
