import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { replicaSet } from './replicaset.ts'

const { create, update, read, cells } = tryRules(replicaSet)

const body = {
  metadata: { name: 'web', namespace: 'ns', generation: 2 },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'i:1' }] } },
  },
}

test('a ReplicaSet has one replica by default', () => assert.equal(read(body).spec.replicas, 1))

test('a ReplicaSet requires a selector that matches its template', async () => {
  assert.deepEqual((await create(body)).errors, [])
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['spec.replicas', -1, ['spec.replicas: Invalid value: -1: must be greater than or equal to 0']],
    ['spec.minReadySeconds', -1, ['spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0']],
    ['spec.selector', {}, ['spec.selector: Invalid value: {}: empty selector is invalid for deployment']],
    [
      'spec.template.metadata.labels',
      { app: 'api' },
      ['spec.template.metadata.labels: Invalid value: {"app":"api"}: `selector` does not match template `labels`'],
    ],
    ['spec.template.spec.containers', [], ['spec.template.spec.containers: Required value']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a ReplicaSet rejects a changed selector; other changes of the spec increase the generation', async () => {
  assert.match(
    (await update(changed(body, 'spec.selector.matchLabels', { app: 'web', x: 'y' }), body)).errors.at(-1) ?? '',
    /^spec\.selector: Invalid value: .*: field is immutable$/,
  )
  const { object } = await update(changed(body, 'spec.replicas', 4), body)
  assert.equal(object.metadata.generation, 3)
})

test('a ReplicaSet validates counts in the status', async () => {
  const status = { replicas: 1, fullyLabeledReplicas: 2, readyReplicas: 0, availableReplicas: 1 }
  assert.deepEqual((await update({ ...body, status }, body, 'status')).errors, [
    'status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas',
    'status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas',
  ])
})

test('a ReplicaSet prints its counts', () => {
  assert.deepEqual(cells({ ...body, status: { replicas: 2, readyReplicas: 1 } }), [
    'web',
    1,
    2,
    1,
    '<unknown>',
    'c',
    'i:1',
    'app=web',
  ])
})
