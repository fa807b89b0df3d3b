import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { resourcePoolStatusRequest } from './resourcepoolstatusrequest.ts'

const { read, create, update, cells } = tryRules(resourcePoolStatusRequest)
const body = { metadata: { name: 'q' }, spec: { driver: 'dra.example.com' } }
const pool = { driver: 'D', poolName: 'p', generation: 1, totalDevices: 4, availableDevices: 3, allocatedDevices: 1 }

function condition(type: string, status = 'True'): object {
  return { type, status, reason: 'R', message: 'm', lastTransitionTime: '2026-01-01T00:00:00Z' }
}

test('a ResourcePoolStatusRequest names a driver, and asks for a hundred pools by default', async () => {
  assert.equal(read(body).spec.limit, 100)
  assert.deepEqual((await create(body)).errors, [])
  const subdomain = 'a lowercase RFC 1123 subdomain must consist of'
  const table: readonly (readonly [string, unknown, readonly RegExp[]])[] = [
    ['spec.driver', '', [/^spec\.driver: Required value$/]],
    ['spec.driver', 'A_b', [/^spec\.driver: Invalid value: "A_b": an RFC 1123 subdomain must .*'Example\.com'/]],
    ['spec.driver', 'x'.repeat(254), [/must be no more than 253 bytes$/]],
    ['spec.poolName', '', [/^spec\.poolName: Invalid value: "": segment 0: must not be empty$/]],
    [
      'spec.poolName',
      'A//b',
      [
        new RegExp(`: Invalid value: "A": segment 0: ${subdomain}`),
        /: Invalid value: "A\/\/b": segment 1: must not be empty$/,
      ],
    ],
    ['spec.limit', 0, [/^spec\.limit: Invalid value: 0: must be greater than or equal to 1$/]],
    ['spec.limit', 1001, [/^spec\.limit: Invalid value: 1001: must be less than or equal to 1000$/]],
  ]
  for (const [path, value, expected] of table) {
    const { errors } = await create(changed(body, path, value))
    assert.equal(errors.length, expected.length, path)
    for (const [at, error] of expected.entries()) assert.match(errors[at] ?? '', error)
  }
})

test('a ResourcePoolStatusRequest rejects updates of spec', async () => {
  assert.deepEqual((await update(changed(body, 'spec.driver', 'other'), body)).errors, [
    'spec: Invalid value: null: field is immutable',
  ])
})

test('a ResourcePoolStatusRequest requires a complete status', async () => {
  const table: readonly (readonly [object, readonly string[]])[] = [
    [{ poolCount: 1, pools: [pool], conditions: [condition('Complete')] }, []],
    [{}, ['status.poolCount: Required value']],
    [{ poolCount: -1 }, ['status.poolCount: Invalid value: -1: must be greater than or equal to 0']],
    [
      { poolCount: 1, pools: [{ generation: 0, resourceSliceCount: 0, validationError: 'x'.repeat(257) }] },
      [
        'status.pools[0].driver: Required value',
        'status.pools[0].poolName: Required value',
        'status.pools[0].generation: Required value',
        'status.pools[0].resourceSliceCount: Invalid value: 0: must be greater than or equal to 1',
        'status.pools[0].validationError: Too long: may not be more than 256 bytes',
      ],
    ],
    [
      { poolCount: 0, conditions: Array.from({ length: 11 }, (_, at) => condition(`C${at}`)) },
      ['status.conditions: Too many: 11: must have at most 10 items'],
    ],
  ]
  for (const [status, errors] of table) {
    assert.deepEqual((await update({ ...body, status }, body, 'status')).errors, errors)
  }
})

test('a ResourcePoolStatusRequest rejects updates of status once it is set', async () => {
  const answered = { ...body, status: { poolCount: 1 } }
  assert.deepEqual((await update(answered, answered, 'status')).errors, [])
  assert.deepEqual((await update({ ...body, status: { poolCount: 2 } }, answered, 'status')).errors, [
    'status: Invalid value: {"poolCount":2}: field is immutable',
  ])
  assert.deepEqual((await update(body, answered, 'status')).errors, ['status: Invalid value: null: field is immutable'])
})

test('a ResourcePoolStatusRequest prints totals of the pools', () => {
  const show = (status?: object): unknown[] =>
    cells(status === undefined ? body : { ...body, status }, Date.parse('2026-01-01T00:02:00Z')).slice(2)
  assert.deepEqual(show(), ['-', '-', '-', '-', '-', 0, 'Pending', '<none>'])
  const pools = [pool, { ...pool, unavailableDevices: 2, validationError: 'e' }]
  const conditions = [condition('Complete')]
  assert.deepEqual(show({ poolCount: 2, pools, conditions }), ['8', '6', '2', '2', '1', 2, 'Complete', '2m'])
  assert.deepEqual(show({ poolCount: 5, pools, conditions })[6], 'Complete (2/5 pools)')
  const failed = show({ poolCount: 0, conditions: [condition('Failed')] })
  assert.deepEqual(failed, ['-', '-', '-', '-', '-', 0, 'Failed', '<none>'])
})
