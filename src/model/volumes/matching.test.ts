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

describe('findMatch() of a PersistentVolumeClaim', () => {
  const rows: [what: string, PersistentVolumeClaim, PersistentVolume[], string | undefined][] = [
    [
      'returns the smallest volume that is large enough',
      claim({ size: '2Gi' }),
      [volume('a'), volume('b', { size: '3Gi' }), volume('c', { size: '1Gi' })],
      'b',
    ],
    ['returns the first by name of equal volumes', claim(), [volume('b'), volume('a')], 'a'],
    ['returns no volume that is too small', claim({ size: '6Gi' }), [volume('a')], undefined],
    [
      'prefers a volume with fewer access modes, even if it is larger',
      claim(),
      [volume('a', { ...RWX, size: '1Gi' }), volume('b')],
      'b',
    ],
    ['returns a volume with more access modes than requested if no other fits', claim(), [volume('a', RWX)], 'a'],
    ['returns no volume that lacks an access mode', claim(RWX), [volume('a')], undefined],
    [
      'prefers a volume whose claimRef names the claim, even if it is larger',
      claim(),
      [volume('a', { size: '1Gi' }), volume('b', kept())],
      'b',
    ],
    [
      'returns a volume whose claimRef names the claim, with any class and phase',
      claim(),
      [volume('a', { ...kept('u'), storageClassName: 'x', phase: 'Bound' })],
      'a',
    ],
    [
      'returns no volume whose claimRef has the UID of an earlier claim',
      claim(),
      [volume('a', kept('other'))],
      undefined,
    ],
    [
      'returns no volume of another claim',
      claim(),
      [volume('a', { claimRef: { namespace: 'ns', name: 'd' } })],
      undefined,
    ],
    [
      'returns no volume of another StorageClass',
      claim({ storageClassName: 'x' }),
      [volume('a'), volume('b', { storageClassName: 'y' })],
      undefined,
    ],
    ['returns no volume of another volumeMode', claim({ volumeMode: 'Block' }), [volume('a')], undefined],
    [
      'returns no volume of another VolumeAttributesClass',
      claim({ volumeAttributesClassName: 'gold' }),
      [volume('a')],
      undefined,
    ],
    [
      "returns a volume that the claim's selector matches",
      claim({ selector: { matchLabels: { a: 'b' } } }),
      [volume('a'), volume('b', { metadata: { labels: { a: 'b' } } })],
      'b',
    ],
    [
      'returns no volume with deletionTimestamp',
      claim(),
      [volume('a', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })],
      undefined,
    ],
    [
      'returns no volume with another phase than Available',
      claim(),
      [volume('a', { phase: 'Released' }), volume('b', { phase: 'Pending' })],
      undefined,
    ],
  ]
  for (const [what, wanted, volumes, expected] of rows) {
    it(what, () => assert.equal(findMatch(wanted, volumes, false)?.metadata.name, expected))
  }

  it('returns only volumes with a claimRef before the scheduler has chosen a node', () => {
    assert.equal(findMatch(claim(), [volume('a')], true), undefined)
    assert.equal(findMatch(claim(), [volume('a'), volume('b', kept())], true)?.metadata.name, 'b')
  })
})

describe('mismatchOf() for a PersistentVolume that a claim names', () => {
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
    it(`returns ${expected === undefined ? 'undefined for a volume that fits' : `"${expected}"`}`, () =>
      assert.equal(mismatchOf(one, wanted), expected))
  }
})

describe('volumes for a claim that waits for the scheduler', () => {
  const names = (list: readonly PersistentVolume[]): (string | undefined)[] => list.map(({ metadata }) => metadata.name)

  it('are sorted by size, regardless of access modes', () => {
    const volumes = [volume('a'), volume('b', { ...RWX, size: '2Gi' }), volume('c', { size: '1Mi' }), volume('d')]
    assert.deepEqual(names(delayedMatches(claim(), volumes)), ['b', 'a', 'd'])
  })

  it('are only the reserved volume if there is one, in any phase', () => {
    assert.deepEqual(names(delayedMatches(claim(), [volume('a'), volume('b', { ...kept(), phase: 'Pending' })])), ['b'])
  })

  it('are reachable by node labels, never by node names', () => {
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
