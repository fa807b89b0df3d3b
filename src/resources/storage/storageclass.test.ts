import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { storageClass } from './storageclass.ts'

const { create, update, cells, read } = tryRules(storageClass)

const body = {
  metadata: { name: 'x', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: 'acme.io/Prov',
  parameters: { a: 'b' },
  reclaimPolicy: 'Retain',
  mountOptions: ['a'],
  allowVolumeExpansion: true,
  volumeBindingMode: 'WaitForFirstConsumer',
  allowedTopologies: [
    { matchLabelExpressions: [{ key: 'failure-domain.beta.kubernetes.io/zone', values: ['a', 'b'] }] },
    { matchLabelExpressions: [{ key: 'z', values: ['c'] }] },
  ],
}

test('a StorageClass names a provisioner and its settings', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual(
    { errors, warnings },
    {
      errors: [],
      warnings: [
        'allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
      ],
    },
  )
})

test('a StorageClass rejects invalid provisioners, parameters and topologies', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['provisioner', '', ['provisioner: Required value']],
    [
      'provisioner',
      'a b',
      [
        "provisioner: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      ],
    ],
    ['parameters', { '': 'x' }, ['parameters: Invalid value: "": field can not be empty.']],
    ['reclaimPolicy', 'Recycle', ['reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"']],
    [
      'volumeBindingMode',
      'Later',
      ['volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"'],
    ],
    ['allowedTopologies', [{}], ['allowedTopologies[0].matchLabelExpressions: Duplicate value: ""']],
    [
      'allowedTopologies.0.matchLabelExpressions.0.values',
      [],
      ['allowedTopologies[0].matchLabelExpressions[0].values: Required value'],
    ],
    [
      'allowedTopologies.0.matchLabelExpressions.0.values',
      ['a', 'a'],
      ['allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"'],
    ],
    [
      'allowedTopologies.1',
      { matchLabelExpressions: [{ key: 'failure-domain.beta.kubernetes.io/zone', values: ['b', 'a'] }] },
      ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a StorageClass rejects updates of provisioner and parameters', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['parameters', { a: 'c' }, ['parameters: Invalid value: {"a":"c"}: field is immutable']],
    ['provisioner', 'other.io/p', ['provisioner: Invalid value: "other.io/p": field is immutable']],
    ['reclaimPolicy', 'Delete', ['reclaimPolicy: Invalid value: "Delete": field is immutable']],
    ['volumeBindingMode', 'Immediate', ['volumeBindingMode: Invalid value: "Immediate": field is immutable']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body)).errors, errors, path)
  }
})

test('a StorageClass has reclaimPolicy Delete and volumeBindingMode Immediate by default', () => {
  const { reclaimPolicy, volumeBindingMode } = read({ metadata: { name: 'x' }, provisioner: 'p' })
  assert.deepEqual({ reclaimPolicy, volumeBindingMode }, { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' })
})

test('a StorageClass prints "(default)" behind a default class, and its settings', () => {
  assert.deepEqual(
    storageClass.columns?.map(({ name }) => name),
    ['Name', 'Provisioner', 'ReclaimPolicy', 'VolumeBindingMode', 'AllowVolumeExpansion', 'Age'],
  )
  assert.deepEqual(cells(body), ['x (default)', 'acme.io/Prov', 'Retain', 'WaitForFirstConsumer', true, '<unknown>'])
  assert.equal(storageClass.storagePrefix, 'storageclasses')
  assert.equal(storageClass.deleteAnswersObject, true)
})
