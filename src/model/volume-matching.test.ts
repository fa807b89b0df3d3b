import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

import { delayedMatches, findMatch, isReachable, mismatchOf } from './volume-matching.ts'

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

describe('a claim gets', () => {
  const rows: [what: string, PersistentVolumeClaim, PersistentVolume[], string | undefined][] = [
    [
      'the smallest that is large enough',
      claim({ size: '2Gi' }),
      [volume('a'), volume('b', { size: '3Gi' }), volume('c', { size: '1Gi' })],
      'b',
    ],
    ['the first by name of several alike', claim(), [volume('b'), volume('a')], 'a'],
    ['nothing that is too small', claim({ size: '6Gi' }), [volume('a')], undefined],
    [
      'what gives no more access than it must, though larger',
      claim(),
      [volume('a', { ...RWX, size: '1Gi' }), volume('b')],
      'b',
    ],
    ['more access than asked for rather than nothing', claim(), [volume('a', RWX)], 'a'],
    ['nothing that gives less access', claim(RWX), [volume('a')], undefined],
    ['what is kept for it, though larger', claim(), [volume('a', { size: '1Gi' }), volume('b', kept())], 'b'],
    [
      'what is kept for it, of any class and phase',
      claim(),
      [volume('a', { ...kept('u'), storageClassName: 'x', phase: 'Bound' })],
      'a',
    ],
    ['nothing that is kept for one that had its name', claim(), [volume('a', kept('other'))], undefined],
    ["nothing that is another's", claim(), [volume('a', { claimRef: { namespace: 'ns', name: 'd' } })], undefined],
    [
      'nothing of another class',
      claim({ storageClassName: 'x' }),
      [volume('a'), volume('b', { storageClassName: 'y' })],
      undefined,
    ],
    ['nothing of another mode', claim({ volumeMode: 'Block' }), [volume('a')], undefined],
    ['nothing with other attributes', claim({ volumeAttributesClassName: 'gold' }), [volume('a')], undefined],
    [
      'what its selector matches',
      claim({ selector: { matchLabels: { a: 'b' } } }),
      [volume('a'), volume('b', { metadata: { labels: { a: 'b' } } })],
      'b',
    ],
    [
      'nothing that is going',
      claim(),
      [volume('a', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })],
      undefined,
    ],
    [
      'nothing that is not available',
      claim(),
      [volume('a', { phase: 'Released' }), volume('b', { phase: 'Pending' })],
      undefined,
    ],
  ]
  for (const [what, wanted, volumes, expected] of rows) {
    it(what, () => assert.equal(findMatch(wanted, volumes, false)?.metadata.name, expected))
  }

  it('only what is kept for it while the scheduler has not chosen', () => {
    assert.equal(findMatch(claim(), [volume('a')], true), undefined)
    assert.equal(findMatch(claim(), [volume('a'), volume('b', kept())], true)?.metadata.name, 'b')
  })
})

describe('a volume that is asked for by name is refused', () => {
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
    it(expected ?? 'not at all, when it fits', () => assert.equal(mismatchOf(one, wanted), expected))
  }
})

describe('where the scheduler chooses', () => {
  const names = (list: readonly PersistentVolume[]): (string | undefined)[] => list.map(({ metadata }) => metadata.name)

  it('the smallest that would do comes first, whatever more access it gives', () => {
    const volumes = [volume('a'), volume('b', { ...RWX, size: '2Gi' }), volume('c', { size: '1Mi' }), volume('d')]
    assert.deepEqual(names(delayedMatches(claim(), volumes)), ['b', 'a', 'd'])
  })

  it('what is kept for the claim is the only one, in whatever phase', () => {
    assert.deepEqual(names(delayedMatches(claim(), [volume('a'), volume('b', { ...kept(), phase: 'Pending' })])), ['b'])
  })

  it('a volume is reached by the labels of nodes, never by their names', () => {
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
