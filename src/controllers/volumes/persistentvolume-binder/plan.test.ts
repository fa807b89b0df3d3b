import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PersistentVolume, PersistentVolumeClaim } from '#apis/core/v1.ts'
import { BIND_COMPLETED, BOUND_BY_CONTROLLER } from '#model/volumes/binding.ts'
import { PRE_RESIZE_CAPACITY } from '#model/volumes/volumes.ts'

import { PROVISIONED_BY } from './annotations.ts'
import { claimInPhase, migratedVolume } from './changes.ts'
import { type ClaimView, planClaim, planVolume } from './plan.ts'

const marked = (...names: string[]): Record<string, string> => Object.fromEntries(names.map((name) => [name, 'yes']))

function claim(volumeName: string, ...annotations: string[]): PersistentVolumeClaim {
  return {
    metadata: { namespace: 'ns', name: 'c', uid: 'u', annotations: marked(...annotations) },
    spec: { volumeName, resources: {} },
    status: { phase: 'Pending' },
  }
}

function volume(uid: string, annotations: Record<string, string> = {}, policy = 'Retain'): PersistentVolume {
  const claimRef = { namespace: 'ns', name: 'c', uid }
  const spec = { claimRef, capacity: { storage: '5Gi' }, persistentVolumeReclaimPolicy: policy }
  return { metadata: { name: 'v', annotations }, spec, status: { phase: 'Bound' } }
}

const view = (...volumes: PersistentVolume[]): ClaimView => ({
  volume: (name) => volumes.find(({ metadata }) => metadata.name === name),
  candidates: () => volumes,
  storageClass: () => undefined,
  defaultClass: () => undefined,
  waitingPods: () => [],
})

describe('bound PersistentVolumeClaim', () => {
  const rows: [what: string, PersistentVolumeClaim, ClaimView, string][] = [
    [
      'becomes Lost if its volumeName is removed',
      claim('', BIND_COMPLETED),
      view(),
      'ClaimLost Bound claim has lost reference to PersistentVolume. Data on the volume is lost!',
    ],
    [
      'becomes Lost if its volume is deleted',
      claim('v', BIND_COMPLETED),
      view(),
      'ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!',
    ],
    [
      'becomes Lost if another claim has its volume',
      claim('v', BIND_COMPLETED),
      view(volume('other')),
      'ClaimMisbound Two claims are bound to the same volume, this one is bound incorrectly',
    ],
  ]
  for (const [what, one, known, expected] of rows) {
    it(what, () => {
      const step = planClaim(one, known)
      assert.equal(step.to, 'lose')
      assert.equal(`${step.note.reason} ${step.note.message}`, expected)
    })
  }

  it('causes an error if it lost its volumeName and its volume has another claim', () => {
    const step = planClaim(claim('v', BOUND_BY_CONTROLLER), view(volume('other')))
    assert.equal(step.to, 'refuse')
    assert.equal(step.error, 'invalid binding of claim "ns/c" to volume "v": volume already claimed by "ns/c"')
  })
})

describe('PersistentVolume whose claim has another volume', () => {
  it('is released', () => assert.equal(planVolume(volume('u'), claim('w')).to, 'unbind'))
  it('is deleted if it was provisioned for the claim', () => {
    assert.equal(planVolume(volume('u', { [PROVISIONED_BY]: 'x' }, 'Delete'), claim('w')).to, 'reclaim')
    assert.equal(planVolume(volume('u', { [PROVISIONED_BY]: 'x' }), claim('w')).to, 'unbind')
  })
})

describe('object that the binder changes', () => {
  it('gets the capacity of the file system while the volume is smaller', () => {
    const bound = claimInPhase(claim('v'), 'Bound', volume('u', { [PRE_RESIZE_CAPACITY]: '3Gi' }))
    assert.equal(bound?.status.capacity?.['storage'], '3Gi')
  })

  it('keeps the capacity of a bound claim', () => {
    const before = { ...claim('v'), status: { phase: 'Bound', capacity: { storage: '1Gi' } } }
    assert.equal(claimInPhase(before, 'Bound', volume('u')), undefined)
  })

  it('has deletion finalizers, and migration annotations for CSI', () => {
    const ours = migratedVolume(volume('u', { [PROVISIONED_BY]: 'kubernetes.io/host-path' }, 'Delete'))
    assert.deepEqual(ours?.metadata.finalizers, ['kubernetes.io/pv-controller'])
    const old = volume('u', { [PROVISIONED_BY]: 'kubernetes.io/gce-pd' }, 'Delete')
    old.metadata.finalizers = ['kubernetes.io/pv-controller', 'kubernetes.io/pv-protection']
    const given = migratedVolume(old)
    assert.deepEqual(given?.metadata.finalizers, ['kubernetes.io/pv-protection'])
    assert.equal(given?.metadata.annotations?.['pv.kubernetes.io/migrated-to'], 'pd.csi.storage.gke.io')
    assert.equal(migratedVolume(volume('u', { [PROVISIONED_BY]: 'example.com' }, 'Delete')), undefined)
  })
})
