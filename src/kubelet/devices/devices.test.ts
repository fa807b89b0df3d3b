import assert from 'node:assert/strict'
import { test } from 'node:test'

import { checksumOf, DEVICE_STATE } from './device-checkpoint.ts'
import { byNearness, candidatesOf, type DeviceRequest } from './device-picking.ts'

test('the checksum of the device checkpoint equals upstream’s', () => {
  const entry = {
    PodUID: 'u1',
    ContainerName: 'c',
    ResourceName: 'example.com/x',
    DeviceIDs: { '-1': ['d1', 'd2'], 0: ['d3'] },
    AllocResp: Buffer.from([10, 20]).toString('base64'),
  }
  assert.equal(checksumOf({ PodDeviceEntries: [entry], RegisteredDevices: { b: ['x', 'y'], a: [] } }), 2274448788)
  assert.equal(checksumOf({ PodDeviceEntries: null, RegisteredDevices: {} }), 3467439661)
})

test('a device checkpoint with a wrong checksum is read as damaged, without devices', () => {
  const state = { PodDeviceEntries: null, RegisteredDevices: { 'example.com/x': ['d1'] } }
  const textWith = (checksum: number): string => JSON.stringify({ Data: state, Checksum: checksum })
  assert.deepEqual(DEVICE_STATE.parse(textWith(checksumOf(state))), state)
  assert.equal(DEVICE_STATE.parse(textWith(checksumOf(state) + 1)), undefined)
  assert.throws(() => DEVICE_STATE.parse('{"Data":{'))
})

const ASK: DeviceRequest & { who: string } = {
  who: 'pod "u" container "c"',
  resource: 'r',
  required: 2,
  has: undefined,
  healthy: new Set(['a', 'b', 'c']),
  reusable: new Set(),
  taken: new Set(),
}

test('the device allocation prefers reusable devices, and excludes allocated ones', () => {
  assert.deepEqual(candidatesOf(ASK), { chosen: [], needed: 2, available: ['a', 'b', 'c'] })
  const again = candidatesOf({ ...ASK, reusable: new Set(['c']), taken: new Set(['a', 'c']) })
  assert.deepEqual(again, { chosen: ['c'], needed: 1, available: ['b'] })
  assert.equal(candidatesOf({ ...ASK, has: new Set(['a', 'b']) }), undefined)
})

test('rejected device requests have upstream’s messages', () => {
  const cases: [Partial<typeof ASK>, string][] = [
    [{ healthy: undefined }, 'cannot allocate unregistered device r'],
    [{ healthy: new Set() }, 'no healthy devices present; cannot allocate unhealthy devices r'],
    [
      { has: new Set(['x', 'a']) },
      'previously allocated devices are no longer healthy; cannot allocate unhealthy devices r',
    ],
    [{ has: new Set(['a']) }, 'pod "u" container "c" changed request for resource "r" from 1 to 2'],
    [{ taken: new Set(['a', 'b']) }, 'requested number of devices unavailable for r. Requested: 2, Available: 1'],
  ]
  for (const [change, message] of cases) assert.throws(() => candidatesOf({ ...ASK, ...change }), { message })
})

test('the device allocation prefers devices on the requested NUMA nodes', () => {
  const nodes: Record<string, number[]> = { a: [1], b: [0], c: [], d: [0, 1] }
  const at = (id: string): number[] => nodes[id] ?? []
  assert.deepEqual(byNearness(['a', 'b', 'c', 'd'], at, [0]), { near: ['b', 'd'], others: ['a', 'c'] })
  assert.deepEqual(byNearness(['a', 'b'], at, undefined), { near: [], others: ['a', 'b'] })
})
