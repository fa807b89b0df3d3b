import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { statefulSet } from './statefulset.ts'

const { create, update, read, cells } = tryRules(statefulSet)

const body = {
  metadata: { name: 'db', namespace: 'ns', generation: 2 },
  spec: {
    serviceName: 'db',
    selector: { matchLabels: { app: 'db' } },
    template: {
      metadata: { labels: { app: 'db' } },
      spec: {
        containers: [{ name: 'c', image: 'i:1', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
        subdomain: 'Not_Judged',
      },
    },
    volumeClaimTemplates: [
      {
        metadata: { name: 'data' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    ],
  },
}

test('a StatefulSet has ordered pods, rolling updates and retained claims by default', () => {
  const { spec } = read(body)
  assert.equal(spec.podManagementPolicy, 'OrderedReady')
  assert.deepEqual(spec.updateStrategy, { type: 'RollingUpdate', rollingUpdate: { partition: 0 } })
  assert.deepEqual(spec.persistentVolumeClaimRetentionPolicy, { whenDeleted: 'Retain', whenScaled: 'Retain' })
  assert.deepEqual([spec.replicas, spec.revisionHistoryLimit], [1, 10])
  const [claim] = spec.volumeClaimTemplates ?? []
  assert.deepEqual(
    [claim?.kind, claim?.apiVersion, claim?.spec.volumeMode, claim?.status],
    ['PersistentVolumeClaim', 'v1', 'Filesystem', { phase: 'Pending' }],
  )
  const typed = changed(body, 'spec.updateStrategy', { type: 'RollingUpdate' })
  assert.deepEqual(read(typed).spec.updateStrategy, { type: 'RollingUpdate' })
})

test('a StatefulSet validates the template with the claims as volumes', async () => {
  assert.deepEqual((await create(body)).errors, [])
  const without = changed(body, 'spec.volumeClaimTemplates', undefined)
  assert.deepEqual((await create(without)).errors, [
    'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"',
  ])
})

test('a StatefulSet rejects invalid specs', async () => {
  const field = 'spec.updateStrategy'
  const table: readonly (readonly [string, unknown, readonly RegExp[]])[] = [
    ['metadata.name', 'a.b', [/^metadata\.name: Invalid value: "a\.b": must not contain dots$/]],
    [
      'spec.podManagementPolicy',
      'Random',
      [/^spec\.podManagementPolicy: Invalid value: "Random": must be 'OrderedReady' or 'Parallel'$/],
    ],
    [field, { type: 'X' }, [/^spec\.updateStrategy: Invalid value: .*: must be 'RollingUpdate' or 'OnDelete'$/]],
    [
      field,
      { type: 'OnDelete', rollingUpdate: { partition: 1 } },
      [/^spec\.updateStrategy\.rollingUpdate: Invalid value: .*: only allowed for updateStrategy 'RollingUpdate'$/],
    ],
    [
      field,
      { rollingUpdate: { partition: -1 } },
      [/^spec\.updateStrategy\.rollingUpdate\.partition: Invalid value: -1: must be greater than or equal to 0$/],
    ],
    [
      'spec.persistentVolumeClaimRetentionPolicy',
      { whenDeleted: 'Burn' },
      [/\.whenDeleted: Unsupported value: "Burn": supported values: "Retain", "Delete"$/],
    ],
    [
      'spec.volumeClaimTemplates.0.spec.accessModes',
      [],
      [/^spec\.volumeClaimTemplates\[0\]\.spec\.accessModes: Required value: at least 1 access mode is required$/],
    ],
    [
      'spec.ordinals',
      { start: -1 },
      [/^spec\.ordinals\.start: Invalid value: -1: must be greater than or equal to 0$/],
    ],
    ['spec.serviceName', 'a.b', [/^spec\.serviceName: Invalid value: "a\.b": must not contain dots$/]],
    ['spec.selector', {}, [/^spec\.selector: Invalid value: \{\}: empty selector is invalid for statefulset$/]],
    [
      'spec.template.spec.restartPolicy',
      'Never',
      [/^spec\.template\.spec\.restartPolicy: Unsupported value: "Never": supported values: "Always"$/],
    ],
  ]
  for (const [path, value, patterns] of table) {
    const { errors } = await create(changed(body, path, value))
    assert.equal(errors.length, patterns.length, errors.join('\n'))
    for (const [at, pattern] of patterns.entries()) assert.match(errors[at] ?? '', pattern)
  }
})

test('a StatefulSet rejects updates of all but some fields of its spec', async () => {
  const rule =
    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
  assert.deepEqual((await update(changed(body, 'spec.serviceName', 'other'), body)).errors, [rule])
  assert.deepEqual((await update(changed(body, 'spec.podManagementPolicy', 'Parallel'), body)).errors, [rule])
  const { errors, object } = await update(changed(body, 'spec.ordinals', { start: 3 }), body)
  assert.deepEqual(errors, [])
  assert.equal(object.metadata.generation, 3)
})

test('a StatefulSet keeps an invalid template that the old object has', async () => {
  const old = changed(body, 'spec.template.spec.containers.0.name', 'Bad_Name')
  assert.equal((await create(old)).errors.length, 1)
  assert.deepEqual((await update(changed(old, 'spec.replicas', 2), old)).errors, [])
})

test('a StatefulSet drops maxUnavailable while its feature gate is off, unless the old object has it', async () => {
  const next = changed(body, 'spec.updateStrategy', { rollingUpdate: { maxUnavailable: '200%' } })
  const { object } = await create(next)
  assert.deepEqual(object.spec.updateStrategy.rollingUpdate, { partition: 0 })
  const { errors } = await tryRules(statefulSet, { off: [] }).create(next)
  assert.deepEqual(errors, [
    'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "200%": must not be greater than 100%',
  ])
  assert.equal(tryRules(statefulSet, { off: [] }).read(body).spec.updateStrategy.rollingUpdate?.maxUnavailable, 1)
  assert.equal((await update(next, next)).object.spec.updateStrategy.rollingUpdate?.maxUnavailable, '200%')
})

test('a StatefulSet warns of fractional bytes and of a negative revisionHistoryLimit', async () => {
  const odd = changed(
    changed(body, 'spec.volumeClaimTemplates.0.spec.resources.requests.storage', '100m'),
    'spec.revisionHistoryLimit',
    -1,
  )
  assert.deepEqual((await create(odd)).warnings, [
    'spec.volumeClaimTemplates[0].resources.requests[storage]: fractional byte value "100m" is invalid, must be an integer',
    'spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended',
  ])
})

test('a StatefulSet validates counts in the status', async () => {
  const status = { replicas: 1, readyReplicas: 0, currentReplicas: 2, availableReplicas: 1 }
  assert.deepEqual((await update({ ...body, status }, body, 'status')).errors, [
    'status.currentReplicas: Invalid value: 2: cannot be greater than status.replicas',
    'status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas',
  ])
})

test('a StatefulSet prints the number of ready pods', () => {
  assert.deepEqual(cells({ ...body, status: { readyReplicas: 1 } }), ['db', '1/1', '<unknown>', 'c', 'i:1'])
})
