import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { KubeObject, ObjectMeta } from '#meta/object.ts'
import type { DeleteOptions } from '#meta/options.ts'

import { checkPreconditions, type DeletionPlan, type DeletionRequest, planDeletion } from './deletion.ts'
import type { Resource } from './resource.ts'

const NOW = '2026-01-01T00:00:00Z'
const at = (seconds: number): string => new Date(Date.parse(NOW) + seconds * 1000).toISOString().replace('.000', '')
const running = (seconds: number): ObjectMeta => ({
  deletionTimestamp: at(seconds),
  deletionGracePeriodSeconds: seconds,
  generation: 2,
})

function plan(metadata: ObjectMeta, options: DeleteOptions = {}, more: Partial<DeletionRequest> = {}): DeletionPlan {
  const object: KubeObject = { metadata: { ...metadata } }
  return planDeletion({
    object,
    options,
    graceSeconds: undefined,
    isDeletionBlocked: false,
    nowMs: Date.parse(NOW),
    ...more,
  })
}

/** The action and the deletion metadata. */
function outcome(planned: DeletionPlan): unknown[] {
  if (planned.action !== 'mark') return [planned.action]
  const { deletionTimestamp, deletionGracePeriodSeconds, generation } = planned.object.metadata
  return [planned.isLast ? 'mark, then remove' : 'mark', deletionTimestamp, deletionGracePeriodSeconds, generation]
}

const MARKED = { marksFirst: 'with-policy' } as const

describe('deletion of a kind without a grace period', () => {
  const rows: readonly (readonly [string, ObjectMeta, Partial<DeletionRequest>, unknown[]])[] = [
    ['removes an object without finalizers at once', {}, {}, ['remove']],
    [
      'sets deletionTimestamp on an object with finalizers',
      { finalizers: ['a/b'], generation: 1 },
      {},
      ['mark', NOW, 0, 2],
    ],
    ['does not set deletionTimestamp twice', { finalizers: ['a/b'], ...running(0) }, {}, ['wait']],
    ['removes an object with deletionTimestamp when its last finalizer is gone', running(0), {}, ['remove']],
    [
      'sets deletionTimestamp until the contents of the object are deleted',
      {},
      { isDeletionBlocked: true, marksFirst: 'with-policy' },
      ['mark', NOW, undefined, undefined],
    ],
    [
      'only sets deletionTimestamp at the first DELETE of some kinds',
      { generation: 1 },
      MARKED,
      ['mark', NOW, undefined, 1],
    ],
    ['removes an object at the second DELETE of those kinds', { deletionTimestamp: NOW }, MARKED, ['remove']],
    [
      'keeps an object while a rule of its kind requires that',
      { deletionTimestamp: NOW },
      { ...MARKED, isDeletionBlocked: true },
      ['wait'],
    ],
  ]
  for (const [name, metadata, more, expected] of rows) {
    it(name, () => assert.deepEqual(outcome(plan(metadata, {}, more)), expected))
  }

  it('sets the finalizers of the propagation policy unless the kind ignores it', () => {
    const finalizers = (marksFirst: DeletionRequest['marksFirst']): unknown => {
      const planned = plan({}, { propagationPolicy: 'Orphan' }, { marksFirst })
      return planned.action === 'mark' && planned.object.metadata.finalizers
    }
    assert.deepEqual([finalizers('with-policy'), finalizers('without-policy')], [['orphan'], undefined])
  })

  it('accepts a changed propagation policy while deletion is in progress', () => {
    const planned = plan({ finalizers: ['orphan'], ...running(0) }, { propagationPolicy: 'Foreground' })
    assert.deepEqual(planned.action === 'mark' && planned.object.metadata.finalizers, ['foregroundDeletion'])
  })
})

describe('deletion of a kind with a grace period', () => {
  const kind = (seconds: number): Partial<DeletionRequest> => ({ graceSeconds: (requested) => requested ?? seconds })
  const rows: readonly (readonly [string, ObjectMeta, DeleteOptions, unknown[]])[] = [
    ['uses the default grace period of the kind', { generation: 1 }, {}, ['mark', at(30), 30, 2]],
    ['uses the grace period of the request', {}, { gracePeriodSeconds: 5 }, ['mark', at(5), 5, undefined]],
    ['uses one second for a negative grace period', {}, { gracePeriodSeconds: -3 }, ['mark', at(1), 1, undefined]],
    [
      'removes an object at once with grace period 0',
      {},
      { gracePeriodSeconds: 0 },
      ['mark, then remove', NOW, 0, undefined],
    ],
    [
      'keeps an object with finalizers despite grace period 0',
      { finalizers: ['a/b'] },
      { gracePeriodSeconds: 0 },
      ['mark', NOW, 0, undefined],
    ],
    ['keeps deletionTimestamp if deletion is in progress', running(30), {}, ['wait']],
    ['ignores a longer grace period while deletion is in progress', running(30), { gracePeriodSeconds: 60 }, ['wait']],
    [
      'counts a shorter grace period from the first DELETE',
      running(30),
      { gracePeriodSeconds: 10 },
      ['mark', at(10), 10, 2],
    ],
    [
      'removes an object in deletion if the new grace period is 0',
      running(30),
      { gracePeriodSeconds: 0 },
      ['mark, then remove', NOW, 0, 2],
    ],
    ['removes an object whose stored grace period is 0', running(0), {}, ['remove']],
  ]
  for (const [name, metadata, options, expected] of rows) {
    it(name, () => assert.deepEqual(outcome(plan(metadata, options, kind(30))), expected))
  }

  it('keeps finalizers during the grace period', () => {
    assert.equal(plan(running(30), { propagationPolicy: 'Foreground' }, kind(30)).action, 'wait')
  })
})

describe('checkPreconditions() of a deletion', () => {
  const kind = { group: 'example.com', version: 'v1', kind: 'Thing', plural: 'things' } as Resource['kind']
  const object: KubeObject = { metadata: { name: 'x', uid: 'u', resourceVersion: '7' } }
  const message = (preconditions: DeleteOptions['preconditions'], marksFirst?: Resource['marksFirst']): string => {
    try {
      checkPreconditions({ kind, marksFirst }, object, { preconditions: preconditions ?? {} })
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }

  it('accepts the current UID and resourceVersion of the object', () => {
    assert.equal(message({ uid: 'u', resourceVersion: '7' }), '')
  })

  it("rejects another UID or resourceVersion with upstream's error texts", () => {
    assert.deepEqual(
      [message({ uid: 'o' }), message({ resourceVersion: '1' })],
      [
        'Operation cannot be fulfilled on Thing.example.com "x": the UID in the precondition (o) does not match the UID in record (u). The object might have been deleted and then recreated',
        'Operation cannot be fulfilled on Thing.example.com "x": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (7). The object might have been modified',
      ],
    )
  })

  it('includes the resource name in errors for kinds whose first DELETE only sets deletionTimestamp', () => {
    assert.deepEqual(
      [message({ uid: 'o' }, 'with-policy'), message({ resourceVersion: '1' }, 'without-policy')],
      [
        'Operation cannot be fulfilled on things.example.com "x": Precondition failed: UID in precondition: o, UID in object meta: u',
        'Operation cannot be fulfilled on things.example.com "x": Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: 7',
      ],
    )
  })
})
