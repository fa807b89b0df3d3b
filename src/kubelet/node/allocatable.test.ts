import assert from 'node:assert/strict'
import { test } from 'node:test'

import { allocatableOf, overReserved, reservedError } from './allocatable.ts'

const CAPACITY = { cpu: '2', 'ephemeral-storage': '264212084Ki', memory: '24682740Ki', pods: '110' }

test("node allocatable excludes eviction thresholds with upstream's arithmetic, to the byte", () => {
  assert.deepEqual(allocatableOf(CAPACITY), {
    cpu: '2',
    'ephemeral-storage': '243497856212',
    memory: '24580340Ki',
    pods: '110',
  })
})

test('node allocatable excludes system-reserved and kube-reserved', () => {
  const reserved = { systemReserved: { cpu: '200m', memory: '1Gi' }, kubeReserved: { cpu: '300m' }, evictionHard: {} }
  const { cpu, memory } = allocatableOf(CAPACITY, reserved)
  assert.deepEqual([cpu, memory], ['1500m', '23634164Ki'])
})

test('node allocatable is never negative, and its memory excludes huge pages', () => {
  const capacity = { memory: '4Gi', 'hugepages-1Gi': '1Gi' }
  assert.deepEqual(allocatableOf(capacity, { kubeReserved: { memory: '1Gi' } }), {
    memory: '2Gi',
    'hugepages-1Gi': '1Gi',
  })
  assert.equal(allocatableOf({ memory: '1Gi' }, { kubeReserved: { memory: '2Gi' } })['memory'], '0')
  assert.equal(
    overReserved({ memory: '1Gi' }, { kubeReserved: { memory: '2Gi' } }),
    'invalid Node Allocatable configuration. Resource "memory" has a reservation of 2Gi but capacity of 1Gi. Expected capacity >= reservation.',
  )
  assert.equal(overReserved(CAPACITY, {}), undefined)
})

const refusals: readonly [reserved: Parameters<typeof reservedError>[0], text: string][] = [
  [{ evictionHard: { 'memory.available': '0' } }, 'eviction threshold memory.available must be positive: 0'],
  [
    { evictionHard: { 'nodefs.available': '101%' } },
    'eviction percentage threshold nodefs.available must be <= 100%: 101%',
  ],
  [
    { systemReserved: { cpu: '-1' } },
    '--system-reserved value failed to parse: resource quantity for "cpu" cannot be negative: -1',
  ],
  [
    { kubeReserved: { cpu: 'x' } },
    `--kube-reserved value failed to parse: failed to parse quantity "x" for "cpu" resource: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
  ],
]
for (const [reserved, text] of refusals) {
  test(`reserved resources are refused: ${JSON.stringify(reserved)}`, () => {
    assert.equal(reservedError(reserved), text)
  })
}
