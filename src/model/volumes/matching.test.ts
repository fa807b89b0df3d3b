import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

import { delayedMatches, findMatch, isReachable, mismatchOf } from './matching.ts'

interface VolumeRow extends Partial<PersistentVolume['spec']> {
  readonly size?: string
  readonly phase?: string
  readonly metadata?: ObjectMeta
}

function volume(name: string, row: VolumeRow = {}): PersistentVolume {
  const { size = '5Gi', phase = 'Available', metadata, ...spec } = row
  return {
    metadata: { name, ...metadata },
    spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: size }, ...spec },
    status: { phase },
  }
}

function claim(row: Partial<PersistentVolumeClaimSpec> & { readonly size?: string } = {}): PersistentVolumeClaim {
  const { size = '1Gi', ...spec } = row
  return {
    metadata: { namespace: 'ns', name: 'c', uid: 'u' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: size } }, ...spec },
    status: {},
  }
}

const kept = (uid?: string): PersistentVolume['spec'] => ({
  claimRef: { namespace: 'ns', name: 'c', ...(uid !== undefined && { uid }) },
})
const RWX = { accessModes: ['ReadWriteOnce', 'ReadWriteMany'] }

describe('matching volumes', () => {
  const rows: [what: string, PersistentVolumeClaim, PersistentVolume[], string | undefined][] = [
    [
      'the smallest volume that is large enough',
      claim({ size: '2Gi' }),
      [volume('a'), volume('b', { size: '3Gi' }), volume('c', { size: '1Gi' })],
      'b',
    ],
    ['the first by name of equal volumes', claim(), [volume('b'), volume('a')], 'a'],
    ['no volume that is too small', claim({ size: '6Gi' }), [volume('a')], undefined],
    [
      'a volume with the fewest access modes, even if it is larger',
      claim(),
      [volume('a', { ...RWX, size: '1Gi' }), volume('b')],
      'b',
    ],
    ['a volume with more access modes than requested, if no other fits', claim(), [volume('a', RWX)], 'a'],
    ['no volume with fewer access modes', claim(RWX), [volume('a')], undefined],
    ['a reserved volume, even if it is larger', claim(), [volume('a', { size: '1Gi' }), volume('b', kept())], 'b'],
    [
      'a volume reserved for it, of any class and phase',
      claim(),
      [volume('a', { ...kept('u'), storageClassName: 'x', phase: 'Bound' })],
      'a',
    ],
    ['no volume reserved for an earlier claim of its name', claim(), [volume('a', kept('other'))], undefined],
    ['no volume of another claim', claim(), [volume('a', { claimRef: { namespace: 'ns', name: 'd' } })], undefined],
    [
      'no volume of another class',
      claim({ storageClassName: 'x' }),
      [volume('a'), volume('b', { storageClassName: 'y' })],
      undefined,
    ],
    ['no volume of another mode', claim({ volumeMode: 'Block' }), [volume('a')], undefined],
    ['no volume with another attributes class', claim({ volumeAttributesClassName: 'gold' }), [volume('a')], undefined],
    [
      'a volume that its selector matches',
      claim({ selector: { matchLabels: { a: 'b' } } }),
      [volume('a'), volume('b', { metadata: { labels: { a: 'b' } } })],
      'b',
    ],
    [
      'no volume that is being deleted',
      claim(),
      [volume('a', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })],
      undefined,
    ],
    [
      'no volume that is not available',
      claim(),
      [volume('a', { phase: 'Released' }), volume('b', { phase: 'Pending' })],
      undefined,
    ],
  ]
  for (const [what, wanted, volumes, expected] of rows) {
    it(what, () => assert.equal(findMatch(wanted, volumes, false)?.metadata.name, expected))
  }

  it('returns only reserved volumes before the scheduler has chosen a node', () => {
    assert.equal(findMatch(claim(), [volume('a')], true), undefined)
    assert.equal(findMatch(claim(), [volume('a'), volume('b', kept())], true)?.metadata.name, 'b')
  })
})

describe('rejects an unsuitable volume that a claim names', () => {
  const rows: [PersistentVolume, PersistentVolumeClaim, string | undefined][] = [
    [volume('a'), claim(), undefined],
    [
      volume('a', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
      claim(),
      'the volume is marked for deletion "a"',
    ],
    [volume('a'), claim({ size: '6Gi' }), 'requested PV is too small'],
    [volume('a', { storageClassName: 'x' }), claim(), 'storageClassName does not match'],
    [volume('a', { volumeAttributesClassName: 'x' }), claim(), 'volumeAttributesClassName does not match'],
    [volume('a', { volumeMode: 'Block' }), claim(), 'incompatible volumeMode'],
    [volume('a'), claim(RWX), 'incompatible accessMode'],
  ]
  for (const [one, wanted, expected] of rows) {
    it(expected ?? 'does nothing if it fits', () => assert.equal(mismatchOf(one, wanted), expected))
  }
})

describe('volumes for the scheduler', () => {
  const names = (list: readonly PersistentVolume[]): (string | undefined)[] => list.map(({ metadata }) => metadata.name)

  it('lists the smallest first, regardless of access modes', () => {
    const volumes = [volume('a'), volume('b', { ...RWX, size: '2Gi' }), volume('c', { size: '1Mi' }), volume('d')]
    assert.deepEqual(names(delayedMatches(claim(), volumes)), ['b', 'a', 'd'])
  })

  it('lists only a reserved volume, in any phase', () => {
    assert.deepEqual(names(delayedMatches(claim(), [volume('a'), volume('b', { ...kept(), phase: 'Pending' })])), ['b'])
  })

  it('matches volumes by node labels, never by node names', () => {
    const term = (key: string, values: string[]) => ({ matchExpressions: [{ key, operator: 'In', values }] })
    const near = (...nodeSelectorTerms: object[]) => volume('a', { nodeAffinity: { required: { nodeSelectorTerms } } })
    const node = { metadata: { name: 'n', labels: { zone: 'a' } } }
    assert.equal(isReachable(volume('a'), node), true)
    assert.equal(isReachable(near(term('zone', ['b']), term('zone', ['a'])), node), true)
    assert.equal(isReachable(near(term('zone', ['b'])), node), false)
    const named = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] }
    assert.equal(isReachable(near(named), node), false)
  })
})
