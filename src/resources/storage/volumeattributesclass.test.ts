import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { volumeAttributesClass } from './volumeattributesclass.ts'

const { create, update, cells } = tryRules(volumeAttributesClass)

const body = { metadata: { name: 'x' }, driverName: 'd.io', parameters: { a: 'b' } }

test('a VolumeAttributesClass names a driver and parameters', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a VolumeAttributesClass rejects invalid drivers and parameters', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['driverName', '', ['driverName: Required value']],
    [
      'driverName',
      'a b',
      [
        "driverName: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      ],
    ],
    ['parameters', undefined, ['parameters: Required value: must contain at least one key/value pair']],
    ['parameters', { '': 'x' }, ['parameters: Invalid value: "": field can not be empty.']],
    [
      'parameters',
      Object.fromEntries(Array.from({ length: 513 }, (_, at) => [`k${at}`, 'v'])),
      ['parameters: Too long: may not be more than 512 bytes'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a VolumeAttributesClass rejects updates of driverName and parameters', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['driverName', 'other.io', ['driverName: Forbidden: updates to driverName are forbidden.']],
    ['parameters', { a: 'c' }, ['parameters: Forbidden: updates to parameters are forbidden.']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body)).errors, errors, path)
  }
})

test('a VolumeAttributesClass prints its driver', () => {
  assert.deepEqual(
    volumeAttributesClass.columns?.map(({ name }) => name),
    ['Name', 'DriverName', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 'd.io', '<unknown>'])
  assert.equal(volumeAttributesClass.storagePrefix, 'volumeattributesclasses')
  assert.equal(volumeAttributesClass.deleteAnswersObject, true)
})
