import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { contextWith, NOW, trialOf } from '../trial.suite.ts'
import { persistentVolumeClaim } from './resource.ts'

const trial = trialOf(persistentVolumeClaim)
const metadata = { name: 'c', namespace: 'ns' }
const claim = (spec: Record<string, unknown> = {}, status: Record<string, unknown> = {}): Record<string, unknown> => ({
  metadata,
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2Gi' } }, ...spec },
  status,
})
const requests = (storage: string): object => ({ resources: { requests: { storage } } })
const fixed = (difference: string): string =>
  `spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n  spec.${difference}`

describe('PersistentVolumeClaim', () => {
  it('has phase Pending and volume mode Filesystem on creation', () => {
    const { object, errors } = trial.create(claim({}, { phase: 'Bound' }))
    assert.deepEqual([errors, object.status, object.spec.volumeMode], [[], { phase: 'Pending' }, 'Filesystem'])
  })

  it('gets both data source fields if one is set, and loses an unsupported data source', () => {
    const snapshot = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' }
    assert.deepEqual(trial.create(claim({ dataSource: snapshot })).object.spec.dataSourceRef, snapshot)
    const other = { apiGroup: 'x.io', kind: 'K', name: 'n' }
    assert.equal(trial.create(claim({ dataSource: other })).object.spec.dataSource, undefined)
    assert.deepEqual(trial.create(claim({ dataSourceRef: other })).object.spec.dataSource, other)
    assert.deepEqual(trial.update(claim({ dataSource: other }), claim({ dataSource: other })).errors, [])
  })

  it('may have a data source in another namespace only with the feature gate', () => {
    const elsewhere = { dataSourceRef: { apiGroup: 'x.io', kind: 'K', name: 'n', namespace: 'other' } }
    assert.equal(trial.create(claim(elsewhere)).object.spec.dataSourceRef, undefined)
    const on = trial.create(claim(elsewhere), contextWith({ isEnabled: () => true })).object.spec
    assert.deepEqual([on.dataSourceRef?.namespace, on.dataSource], ['other', undefined])
  })

  const refusals: [string, Record<string, unknown>, string[]][] = [
    [
      'a claim that requests nothing',
      { accessModes: [], resources: {} },
      [
        'spec.accessModes: Required value: at least 1 access mode is required',
        'spec.resources[storage]: Required value',
      ],
    ],
    [
      'an empty claim',
      requests('0') as never,
      ['spec.resources[storage]: Invalid value: "0": must be greater than zero'],
    ],
    [
      'two data sources',
      {
        dataSource: { apiGroup: null, kind: 'PersistentVolumeClaim', name: 'a' },
        dataSourceRef: { apiGroup: null, kind: 'PersistentVolumeClaim', name: 'b' },
      },
      ['spec: Invalid value: {}: must match dataSourceRef'],
    ],
    [
      'an invalid data source',
      { dataSourceRef: { apiGroup: null, kind: 'Pod', name: '' } },
      [
        'spec.dataSource.name: Required value',
        'spec.dataSource: Invalid value: "Pod": must be \'PersistentVolumeClaim\' when referencing the default apiGroup',
        'spec.dataSourceRef.name: Required value',
        'spec.dataSourceRef: Invalid value: "Pod": must be \'PersistentVolumeClaim\' when referencing the default apiGroup',
      ],
    ],
    [
      'an unknown volume mode',
      { volumeMode: 'x' },
      ['spec.volumeMode: Unsupported value: "x": supported values: "Block", "Filesystem"'],
    ],
  ]
  for (const [what, spec, errors] of refusals) {
    it(`rejects ${what}`, () => assert.deepEqual(trial.create(claim(spec)).errors, errors))
  }

  it('allows only larger requests, and only after it is bound', () => {
    assert.deepEqual(trial.update(claim(requests('3Gi') as never), claim()).errors, [
      fixed('resources.requests.storage: "2Gi" -> "3Gi"'),
    ])
    const bound = claim({}, { phase: 'Bound', capacity: { storage: '1Gi' } })
    assert.deepEqual(trial.update(claim({ ...requests('3Gi'), volumeAttributesClassName: 'v' }), bound).errors, [])
    assert.deepEqual(trial.update(claim({ accessModes: ['ReadWriteMany'] }), bound).errors, [
      fixed('accessModes[0]: "ReadWriteOnce" -> "ReadWriteMany"'),
    ])
    assert.deepEqual(trial.update(claim({ volumeName: 'v' }), claim()).errors, [])
    assert.deepEqual(trial.update(claim(), claim({ volumeName: 'v' })).errors, [fixed('volumeName: "v" -> <unset>')])
    assert.deepEqual(trial.update(claim({ volumeName: 'w' }), claim({ volumeName: 'v' })).errors, [
      fixed('volumeName: "v" -> "w"'),
    ])
  })

  it('allows a smaller request after a failed expansion, but none below the capacity', () => {
    const bound = claim({}, { phase: 'Bound', capacity: { storage: '1Gi' } })
    assert.deepEqual(trial.update(claim(requests('1500Mi') as never), bound).errors, [])
    assert.deepEqual(trial.update(claim(requests('1Gi') as never), bound).errors, [
      'spec.resources.requests.storage: Forbidden: field can not be less than status.capacity',
    ])
  })

  it('may get storageClassName later, but only once', () => {
    const annotated = (spec: object = {}): Record<string, unknown> => ({
      ...claim(spec as never),
      metadata: { ...metadata, annotations: { 'volume.beta.kubernetes.io/storage-class': 'a' } },
    })
    assert.deepEqual(trial.update(claim({ storageClassName: 'x' }), claim()).errors, [])
    assert.deepEqual(trial.update(claim({ storageClassName: 'y' }), claim({ storageClassName: 'x' })).errors, [
      fixed('storageClassName: "x" -> "y"'),
    ])
    assert.deepEqual(trial.update(claim({ storageClassName: 'a' }), annotated()).errors, [])
    assert.deepEqual(trial.update(annotated({ storageClassName: 'b' }), annotated()).errors, [
      fixed('storageClassName: <unset> -> "b"'),
    ])
    assert.deepEqual(trial.update(claim(), annotated()).errors, [
      'metadata.annotations.volume.beta.kubernetes.io/storage-class: Invalid value: "": field is immutable',
    ])
  })

  it('keeps a VolumeAttributesClass that was applied', () => {
    const status = { phase: 'Bound', currentVolumeAttributesClassName: 'v' }
    const old = claim({ volumeAttributesClassName: 'v' }, status)
    const field = 'spec.volumeAttributesClassName: Forbidden: update to'
    const when = 'is forbidden when status.currentVolumeAttributesClassName is not nil'
    assert.deepEqual(trial.update(claim(), old).errors, [`${field} nil ${when}`])
    assert.deepEqual(trial.update(claim({ volumeAttributesClassName: '' }), old).errors, [
      `${field} empty string ${when}`,
    ])
  })

  it('validates allocated resources in the status', () => {
    const status = {
      capacity: { storage: '-1' },
      allocatedResources: { cpu: '1', 'x.io/y': '1' },
      allocatedResourceStatuses: { storage: 'x' },
    }
    assert.deepEqual(trial.update(claim({}, status), claim(), 'status').errors, [
      'status.capacity[storage]: Invalid value: -1: must be a valid resource quantity',
      'status.allocatedResourceStatuses: Unsupported value: "storage": supported values: "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"',
      'status.allocatedResources: Unsupported value: "cpu": supported values: "storage"',
    ])
  })

  it('warns of fractional bytes', () => {
    assert.deepEqual(trial.create(claim(requests('1500m') as never)).warnings, [
      'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer',
    ])
  })

  it('prints its capacity', () => {
    const status = { phase: 'Bound', capacity: { storage: '3Gi' }, accessModes: ['ReadWriteOnce'] }
    const row = trial.cells(claim({ volumeName: 'v', storageClassName: 'sc' }, status))
    assert.deepEqual(row, ['c', 'Bound', 'v', '3Gi', 'RWO', 'sc', '<unset>', '<unknown>', 'Filesystem'])
    const waiting = trial.cells({ ...claim(), metadata: { ...metadata, deletionTimestamp: NOW } })
    assert.deepEqual(waiting.slice(1, 5), ['Terminating', '', '', ''])
  })
})
