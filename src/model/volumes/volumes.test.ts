import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PersistentVolumeClaimSpec } from '#apis/core/v1.ts'

import { accessModesText, alignDataSources, STORAGE_CLASS_ANNOTATION, storageClassOf } from './volumes.ts'

describe('class and access modes of a volume', () => {
  it('print access modes in one order, each once', () => {
    assert.equal(
      accessModesText(['ReadWriteOncePod', 'ReadWriteMany', 'ReadOnlyMany', 'ReadWriteMany']),
      'ROX,RWX,RWOP',
    )
    assert.equal(accessModesText(undefined), '')
  })

  it('prefer the class in the annotation to storageClassName', () => {
    const annotations = { [STORAGE_CLASS_ANNOTATION]: 'a' }
    assert.equal(storageClassOf({ metadata: { annotations }, spec: { storageClassName: 'b' } }), 'a')
    assert.equal(storageClassOf({ metadata: {}, spec: { storageClassName: 'b' } }), 'b')
    assert.equal(storageClassOf({ metadata: {}, spec: {} }), '')
  })

  it('take the data source from dataSource or dataSourceRef', () => {
    const source = { apiGroup: null, kind: 'PersistentVolumeClaim', name: 'a' }
    const old: PersistentVolumeClaimSpec = { resources: {}, dataSource: source }
    alignDataSources(old)
    assert.deepEqual(old.dataSourceRef, source)
    const elsewhere: PersistentVolumeClaimSpec = { resources: {}, dataSourceRef: { ...source, namespace: 'x' } }
    alignDataSources(elsewhere)
    assert.equal(elsewhere.dataSource, undefined)
  })
})
