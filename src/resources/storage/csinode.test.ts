import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { csiNode } from './csinode.ts'

const { create, update, cells } = tryRules(csiNode)

const body = {
  metadata: { name: 'x' },
  spec: {
    drivers: [
      { name: 'd.io', nodeID: 'id', topologyKeys: ['a/b', 'c'], allocatable: { count: 3 } },
      { name: 'e.io', nodeID: 'id', topologyKeys: null },
    ],
  },
}

test('a CSINode lists the drivers of a node', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a CSINode rejects invalid and duplicate drivers', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.drivers.0.name', '', ['spec.drivers[0].name: Required value']],
    ['spec.drivers.0.name', 'e.io', ['spec.drivers[1].name: Duplicate value: "e.io"']],
    ['spec.drivers.0.nodeID', '', ['spec.drivers[0].nodeID: Required value']],
    [
      'spec.drivers.0.nodeID',
      'a'.repeat(257),
      [
        'spec.drivers[0].nodeID: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be 256 characters or less',
      ],
    ],
    [
      'spec.drivers.0.allocatable.count',
      -1,
      ['spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0'],
    ],
    [
      'spec.drivers.0.topologyKeys',
      ['a', 'a', '', 'a b'],
      [
        'spec.drivers[0]: Duplicate value: "a"',
        'spec.drivers[0]: Required value',
        'spec.drivers[0]: Invalid value: "": name part must be non-empty',
        "spec.drivers[0]: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        "spec.drivers[0]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a CSINode rejects updates of a driver, except for its volume limit', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'spec.drivers.0.nodeID',
      'other',
      ['spec.drivers: Invalid value: {"name":"d.io","nodeID":"other","topologyKeys":["a/b","c"]}: field is immutable'],
    ],
    ['spec.drivers.0.allocatable.count', 4, []],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body)).errors, errors, path)
  }
})

test('a CSINode prints the number of drivers', () => {
  assert.deepEqual(
    csiNode.columns?.map(({ name }) => name),
    ['Name', 'Drivers', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 2, '<unknown>'])
  assert.equal(csiNode.storagePrefix, 'csinodes')
  assert.equal(csiNode.deleteAnswersObject, true)
  assert.equal(csiNode.putNeedsVersion, true)
})
