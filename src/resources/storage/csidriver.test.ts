import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { csiDriver } from './csidriver.ts'

const { create, update, cells, read } = tryRules(csiDriver, { off: ['VolumeLimitScaling'] })

const body = {
  metadata: { name: 'x' },
  spec: {
    attachRequired: false,
    podInfoOnMount: true,
    volumeLifecycleModes: ['Ephemeral', 'Persistent'],
    storageCapacity: true,
    fsGroupPolicy: 'File',
    tokenRequests: [{ audience: 'a', expirationSeconds: 700 }, { audience: 'b' }],
    requiresRepublish: true,
    seLinuxMount: true,
    nodeAllocatableUpdatePeriodSeconds: 10,
    serviceAccountTokenInSecrets: true,
    preventPodSchedulingIfMissing: true,
  },
}

test('a CSIDriver describes the abilities of a driver', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a CSIDriver rejects invalid modes, policies and tokens', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'spec.fsGroupPolicy',
      'Some',
      ['spec.fsGroupPolicy: Unsupported value: "Some": supported values: "File", "None", "ReadWriteOnceWithFSType"'],
    ],
    [
      'spec.volumeLifecycleModes',
      ['Inline'],
      ['spec.volumeLifecycleModes: Unsupported value: "Inline": supported values: "Persistent", "Ephemeral"'],
    ],
    [
      'spec.tokenRequests',
      [{ audience: 'a', expirationSeconds: 1 }, { audience: 'a' }],
      [
        'spec.tokenRequests[0].expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes',
        'spec.tokenRequests[1].audience: Duplicate value: "a"',
      ],
    ],
    [
      'spec.tokenRequests',
      [{ audience: 'a', expirationSeconds: 4294967297 }],
      [
        'spec.tokenRequests[0].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds',
      ],
    ],
    [
      'spec.tokenRequests',
      undefined,
      [
        'spec.serviceAccountTokenInSecrets: Invalid value: true: serviceAccountTokenInSecrets is set but no tokenRequests are specified',
      ],
    ],
    [
      'spec.nodeAllocatableUpdatePeriodSeconds',
      9,
      ['spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a CSIDriver rejects updates of attachRequired and volumeLifecycleModes', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.attachRequired', true, ['spec.attachedRequired: Invalid value: true: field is immutable']],
    [
      'spec.volumeLifecycleModes',
      ['Persistent'],
      ['spec.volumeLifecycleModes: Invalid value: ["Persistent"]: field is immutable'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body)).errors, errors, path)
  }
})

test('a CSIDriver has attachRequired true and mode Persistent by default', () => {
  const { spec } = read({ metadata: { name: 'x' }, spec: {} })
  assert.deepEqual(
    { spec },
    {
      spec: {
        attachRequired: true,
        podInfoOnMount: false,
        volumeLifecycleModes: ['Persistent'],
        storageCapacity: false,
        fsGroupPolicy: 'ReadWriteOnceWithFSType',
        requiresRepublish: false,
        seLinuxMount: false,
      },
    },
  )
})

test('a CSIDriver prints the abilities of a driver', () => {
  assert.deepEqual(
    csiDriver.columns?.map(({ name }) => name),
    [
      'Name',
      'AttachRequired',
      'PodInfoOnMount',
      'StorageCapacity',
      'TokenRequests',
      'RequiresRepublish',
      'Modes',
      'Age',
    ],
  )
  assert.deepEqual(cells(body), ['x', false, true, true, 'a,b', true, 'Ephemeral,Persistent', '<unknown>'])
  assert.equal(csiDriver.storagePrefix, 'csidrivers')
  assert.equal(csiDriver.deleteAnswersObject, true)
  assert.equal(csiDriver.putNeedsVersion, true)
})
