import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { CATALOG, entryOf, plainName } from './catalog.ts'
import { type LastResult, readPage, readReference, type Result, testNames, testRuns, writePage } from './report.ts'

const NAMES = [
  '[sig-node] Pods Extended (pod generation) should start at 1 and increment per update [Conformance]',
  '[sig-node] Pods Extended Pods Set QOS Class should be set on Pods [Conformance]',
  '[sig-node] [DRA] CRUD Tests resource.k8s.io/v1 DeviceClass [Conformance]',
]

describe('catalog of conformance tests', () => {
  it('finds the group of a test by the longest prefix of its name without tags', () => {
    const found = NAMES.map((name) => [entryOf(name)?.group, entryOf(name)?.needs])
    assert.deepEqual(found, [
      ['node-pod-lifecycle', 'kubelet'],
      ['node-pod-lifecycle', 'api'],
      ['node-dra-api', 'api'],
    ])
    assert.equal(entryOf('[sig-new] Something nobody has seen [Conformance]'), undefined)
  })

  it('has no repeated prefix', () => {
    const prefixes = CATALOG.flatMap(({ tests }) => tests)
    assert.equal(new Set(prefixes).size, prefixes.length)
  })

  it('returns the name of a test without its tags', () => {
    const name = '[sig-apps] StatefulSet Basic [StatefulSetBasic] should scale [Slow] [MinimumKubeletVersion:1.34]'
    assert.equal(plainName(name), 'apps: StatefulSet Basic should scale')
  })
})

const spec = (State: string, LeafNodeText: string, LeafNodeType = 'It'): object => ({
  ContainerHierarchyTexts: ['[sig-node] Pods'],
  LeafNodeType,
  LeafNodeText,
  State,
  RunTime: 1.5e9,
  Failure: { Message: State === 'failed' ? 'it broke' : '' },
})

const REPORT = JSON.stringify([
  {
    SpecReports: [
      spec('passed', 'should run [Conformance]'),
      spec('failed', 'should stop [Conformance]'),
      spec('timedout', 'should end [Conformance]'),
      spec('skipped', 'should wait [Conformance]'),
      spec('passed', '', 'BeforeSuite'),
    ],
  },
  { SpecReports: null },
])

const ORIGIN = { version: 'v1', reference: '4 of 4 pass, at commit def' }

const last = (result: Result, commit = 'abc1234', date = '2026-01-02'): LastResult => ({ result, commit, date })

describe('report of conformance tests', () => {
  it('lists the tests that ran and their results', () => {
    assert.deepEqual(
      testRuns(REPORT).map(({ name, result, message }) => [name, result, message]),
      [
        ['[sig-node] Pods should run [Conformance]', 'passed', ''],
        ['[sig-node] Pods should stop [Conformance]', 'failed', 'it broke'],
        ['[sig-node] Pods should end [Conformance]', 'failed', ''],
      ],
    )
    assert.equal(testNames(REPORT).length, 4)
  })

  it('changes only the lines of the tests that ran', () => {
    const before = new Map([[plainName(NAMES[0]!), last('passed')]])
    const page = writePage(ORIGIN, NAMES, before)
    assert.match(page, /\*\*1 of 3 pass\*\*/)
    const results = readPage(page)
    assert.deepEqual(results, before)
    assert.match(page, /^- ✔ .* \(abc1234, 2026-01-02\)$/m)
    assert.equal(readReference(page), ORIGIN.reference)
    assert.equal(readReference(''), 'not run yet')
    results.set(plainName(NAMES[2]!), last('failed', 'def5678', '2026-01-01'))
    const after = writePage(ORIGIN, NAMES, results)
    assert.match(after, /\| node-dra-api \| 1 \| 0 \| 1 \|/)
    assert.match(after, /^- ✖ node: \[DRA\] CRUD Tests/m)
    assert.match(after, /^- · node: Pods Extended Pods Set/m)
    assert.match(after, /^- ✔ .* \(abc1234, 2026-01-02\)$/m)
    assert.match(after, /^\| def5678 \| 2026-01-01 \| 1 \|\n\| abc1234 \| 2026-01-02 \| 1 \|$/m)
  })

  it('accepts lines without a commit, and counts them', () => {
    const results = readPage(`- ✔ ${plainName(NAMES[0]!)}`)
    assert.deepEqual(results, new Map([[plainName(NAMES[0]!), last('passed', '', '')]]))
    assert.match(writePage(ORIGIN, NAMES, results), /^\| not recorded \| {2}\| 1 \|$/m)
  })

  it('counts the tests that run on each kind of cluster', () => {
    const page = writePage(ORIGIN, NAMES, new Map())
    assert.match(page, /^- 2 tests run on two simulated nodes.*\n- 1 tests run on one machine.*\n- 0 tests run on two/m)
  })

  it('counts tests that passed at the second or third attempt as passed, and names them', () => {
    const page = writePage(ORIGIN, NAMES, new Map([[plainName(NAMES[2]!), last('flaky')]]))
    assert.match(page, /\*\*1 of 3 pass\*\*/)
    assert.match(page, /^- ≈ node: \[DRA\] CRUD Tests/m)
    assert.equal(readPage(page).get(plainName(NAMES[2]!))?.result, 'flaky')
  })
})
