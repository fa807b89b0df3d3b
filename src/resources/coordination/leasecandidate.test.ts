import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { leaseCandidate } from './leasecandidate.ts'

const { create, update, cells } = tryRules(leaseCandidate)
const body = {
  metadata: { name: 'Scheduler_1-', namespace: 'kube-system' },
  spec: {
    leaseName: 'kube-scheduler',
    binaryVersion: '1.36.0',
    emulationVersion: '1.35.0',
    strategy: 'OldestEmulationVersion',
  },
}

test('a LeaseCandidate requires leaseName, versions and a strategy', async () => {
  assert.deepEqual((await create(body)).errors, [])
  assert.deepEqual((await create(changed(body, 'spec.strategy', 'example.com/mine'))).errors, [])
  const semver = 'must be a valid semantic version'
  const needed = "spec.emulationVersion: Required value: must be specified when `strategy` is 'OldestEmulationVersion'"
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['spec.leaseName', '', ['spec.leaseName: Required value']],
    ['spec.binaryVersion', '', ['spec.binaryVersion: Required value']],
    ['spec.emulationVersion', undefined, [needed]],
    ['spec.emulationVersion', '0.0.0', [needed]],
    ['spec.emulationVersion', '1.35', [`spec.emulationVersion: Invalid value: "1.35": ${semver}`, needed]],
    [
      'spec.binaryVersion',
      'v1',
      [
        `spec.binaryVersion: Invalid value: "v1": ${semver}`,
        'spec.binaryVersion: Invalid value: "v1": must be greater than or equal to `emulationVersion`',
      ],
    ],
    [
      'spec.binaryVersion',
      '1.35.0-rc.1',
      ['spec.binaryVersion: Invalid value: "1.35.0-rc.1": must be greater than or equal to `emulationVersion`'],
    ],
    ['spec.strategy', '', ['spec.strategy: Required value']],
    [
      'spec.strategy',
      'mine',
      ['spec.strategy.strategy: Unsupported value: "mine": supported values: "OldestEmulationVersion"'],
    ],
    ['metadata.name', '..', ['metadata.name: Invalid value: "..": must not be \'..\'']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a LeaseCandidate rejects updates of leaseName', async () => {
  assert.deepEqual((await update(changed(body, 'spec.leaseName', 'other'), body)).errors, [
    'spec.leaseName: Invalid value: "other": field is immutable',
  ])
  assert.deepEqual((await update(changed(body, 'spec.binaryVersion', '1.37.0'), body)).errors, [])
})

test('a LeaseCandidate prints its versions, and may be created by PUT', () => {
  assert.deepEqual(cells(body), ['Scheduler_1-', 'kube-scheduler', '1.36.0', '1.35.0', '<unknown>'])
  assert.deepEqual([leaseCandidate.putCreates, leaseCandidate.putNeedsVersion], [true, true])
})
