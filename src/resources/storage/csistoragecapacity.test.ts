import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { csiStorageCapacity } from './csistoragecapacity.ts'

const { create, update, cells } = tryRules(csiStorageCapacity)

const body = {
  metadata: { name: 'x', namespace: 'n' },
  nodeTopology: {
    matchLabels: { 'beta.kubernetes.io/os': 'x' },
    matchExpressions: [{ key: 'beta.kubernetes.io/arch', operator: 'Exists' }],
  },
  storageClassName: 'c',
  capacity: '1Gi',
  maximumVolumeSize: '1Gi',
}

test('a CSIStorageCapacity reports the capacity of a topology segment', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual(
    { errors, warnings },
    {
      errors: [],
      warnings: [
        'nodeTopology.matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead',
        'nodeTopology.matchLabels.beta.kubernetes.io/os: deprecated since v1.14; use "kubernetes.io/os" instead',
      ],
    },
  )
})

test('a CSIStorageCapacity rejects invalid classes, amounts and topologies', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'storageClassName',
      '',
      [
        "storageClassName: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    [
      'storageClassName',
      'A',
      [
        "storageClassName: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    ['capacity', '-1', ['capacity: Invalid value: "-1": must be greater than or equal to 0']],
    [
      'nodeTopology.matchExpressions.0.operator',
      'In',
      ["nodeTopology.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"],
    ],
    [
      'nodeTopology.matchLabels',
      { 'a b': 'c' },
      [
        "nodeTopology.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a CSIStorageCapacity rejects updates of storageClassName and nodeTopology', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['storageClassName', 'other', ['storageClassName: Invalid value: "other": field is immutable']],
    ['nodeTopology', {}, ['nodeTopology: Invalid value: {}: field is immutable']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body)).errors, errors, path)
  }
})

test('a CSIStorageCapacity prints its creation time', () => {
  assert.deepEqual(
    csiStorageCapacity.columns?.map(({ name }) => name),
    ['Name', 'Created At'],
  )
  assert.deepEqual(cells(body), ['x', null])
  assert.equal(csiStorageCapacity.storagePrefix, 'csistoragecapacities')
  assert.equal(csiStorageCapacity.putNeedsVersion, true)
})
