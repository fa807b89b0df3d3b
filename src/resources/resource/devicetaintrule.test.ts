import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { deviceTaintRule } from './devicetaintrule.ts'

const { read, create, update, cells } = tryRules(deviceTaintRule)
const body = {
  metadata: { name: 'r' },
  spec: {
    deviceSelector: { driver: 'dra.example.com', pool: 'p/q', device: 'd' },
    taint: { key: 'example.com/broken', value: 'v', effect: 'NoSchedule', timeAdded: '2025-12-31T23:55:00Z' },
  },
}

test('a DeviceTaintRule selects devices by driver, pool or device name, or all devices', async () => {
  assert.deepEqual((await create(body)).errors, [])
  assert.deepEqual((await create(changed(body, 'spec.deviceSelector', undefined))).errors, [])
  const table: readonly (readonly [string, unknown, RegExp])[] = [
    ['spec.deviceSelector.driver', '', /^spec\.deviceSelector\.driver: Required value$/],
    ['spec.deviceSelector.pool', '', /^spec\.deviceSelector\.pool: Required value$/],
    ['spec.deviceSelector.device', 'a.b', /^spec\.deviceSelector\.device: .*must not contain dots$/],
    ['spec.taint.key', 'a/b/c', /^spec\.taint\.key: Invalid value: "a\/b\/c": a valid label key must/],
    ['spec.taint.value', '-', /^spec\.taint\.value: Invalid value: "-": a valid label must/],
    ['spec.taint.effect', '', /^spec\.taint\.effect: Required value$/],
    [
      'spec.taint.effect',
      'Prefer',
      /^spec\.taint\.effect: Unsupported value: "Prefer": supported values: "NoExecute", "NoSchedule", "None"$/,
    ],
  ]
  for (const [path, value, error] of table) {
    const { errors } = await create(changed(body, path, value))
    assert.equal(errors.length, 1, path)
    assert.match(errors[0] ?? '', error)
  }
})

test('a DeviceTaintRule sets timeAdded when the effect changes', async () => {
  assert.match(read(changed(body, 'spec.taint.timeAdded', undefined)).spec.taint.timeAdded ?? '', /^\d{4}-/)
  const evicting = changed(body, 'spec.taint.effect', 'NoExecute')
  const { object } = await update(evicting, body)
  assert.notEqual(object.spec.taint.timeAdded, body.spec.taint.timeAdded)
  const next = changed(evicting, 'spec.taint.timeAdded', '2026-02-02T00:00:00Z')
  assert.equal((await update(next, body)).object.spec.taint.timeAdded, '2026-02-02T00:00:00Z')
  const relabelled = changed(body, 'spec.taint.value', 'w')
  assert.equal((await update(relabelled, body)).object.spec.taint.timeAdded, body.spec.taint.timeAdded)
})

test('a DeviceTaintRule keeps an unknown effect that the old object has', async () => {
  const foreign = changed(body, 'spec.taint.effect', 'Later')
  assert.deepEqual((await update(foreign, foreign)).errors, [])
  assert.equal((await update(foreign, body)).errors.length, 1)
})

test('a DeviceTaintRule has a generation, and rejects more than eight conditions', async () => {
  assert.equal((await create(body)).object.metadata.generation, 1)
  const condition = (type: string): object => {
    return { type, status: 'True', reason: 'R', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }
  }
  const status = { conditions: Array.from({ length: 9 }, (_, at) => condition(`C${at}`)) }
  assert.deepEqual((await update({ ...body, status }, body, 'status')).errors, [
    'status.conditions: Too many: 9: must have at most 8 items',
  ])
  assert.deepEqual((await update({ ...body, status: { conditions: [condition('A')] } }, body, 'status')).errors, [])
})

test('a DeviceTaintRule prints the taint', () => {
  const nowMs = Date.parse('2026-01-01T00:00:00Z')
  assert.deepEqual(tryRules(deviceTaintRule).cells(body, nowMs), [
    'r',
    'example.com/broken',
    'v',
    'NoSchedule',
    '5m',
    '<unknown>',
  ])
  assert.equal(cells(body).length, 6)
})
