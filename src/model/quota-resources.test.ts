import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { fieldPath } from '#meta/validation/field-path.ts'

import { isQuotaScope, isStandardQuotaResource, scopeFits } from './quota-resources.ts'
import { amountOf, sortedAmounts, validateCapacity } from './resource-lists.ts'

describe('resources of a ResourceQuota', () => {
  it('are those of pods and object counts', () => {
    const known = [
      'cpu',
      'limits.memory',
      'requests.storage',
      'hugepages-2Mi',
      'requests.hugepages-1Gi',
      'services.nodeports',
    ]
    assert.equal(known.every(isStandardQuotaResource), true)
    assert.equal(['storage', 'limits.storage', 'count/pods', 'x.io/y'].some(isStandardQuotaResource), false)
  })

  it('must fit the scopes of the quota', () => {
    assert.equal(scopeFits('BestEffort', 'pods') && !scopeFits('BestEffort', 'cpu'), true)
    assert.equal(
      scopeFits('VolumeAttributesClass', 'requests.storage') && !scopeFits('PriorityClass', 'services'),
      true,
    )
    assert.equal(isQuotaScope('CrossNamespacePodAffinity') && !isQuotaScope('x') && scopeFits('x', 'cpu'), true)
  })
})

describe('resource lists', () => {
  it('are read by name, without names such as "constructor" of Object.prototype', () => {
    assert.equal(amountOf({ cpu: '1' }, 'toString'), undefined)
    assert.deepEqual(sortedAmounts({ b: '1', a: '2' }), [
      ['a', '2'],
      ['b', '1'],
    ])
    assert.deepEqual(validateCapacity(fieldPath('f'), '0'), [])
    assert.equal(validateCapacity(fieldPath('f'), '-1')[0]?.badValue, -1)
  })
})
