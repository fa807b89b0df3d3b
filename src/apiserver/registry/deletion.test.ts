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
  return planDeletion({ object, options, graceSeconds: undefined, isHeld: false, nowMs: Date.parse(NOW), ...more })
}

/** What is done, and to what deletion. */
function outcome(planned: DeletionPlan): unknown[] {
  if (planned.action !== 'mark') return [planned.action]
  const { deletionTimestamp, deletionGracePeriodSeconds, generation } = planned.object.metadata
  return [planned.isLast ? 'mark, then remove' : 'mark', deletionTimestamp, deletionGracePeriodSeconds, generation]
}

const MARKED = { marksFirst: 'with-policy' } as const

describe('deleting a kind that nobody has to stop', () => {
  const rows: readonly (readonly [string, ObjectMeta, Partial<DeletionRequest>, unknown[]])[] = [
    ['goes at once', {}, {}, ['remove']],
    ['waits for its finalizers', { finalizers: ['a/b'], generation: 1 }, {}, ['mark', NOW, 0, 2]],
    ['is not marked twice', { finalizers: ['a/b'], ...running(0) }, {}, ['wait']],
    ['goes when they have', running(0), {}, ['remove']],
    [
      'waits until the contents are deleted, without a grace period',
      {},
      { isHeld: true, marksFirst: 'with-policy' },
      ['mark', NOW, undefined, undefined],
    ],
    ['is only marked by the first DELETE of some kinds', { generation: 1 }, MARKED, ['mark', NOW, undefined, 1]],
    ['goes by the second DELETE of those kinds', { deletionTimestamp: NOW }, MARKED, ['remove']],
    ['stays unchanged while the kind holds it', { deletionTimestamp: NOW }, { ...MARKED, isHeld: true }, ['wait']],
  ]
  for (const [name, metadata, more, expected] of rows) {
    it(name, () => assert.deepEqual(outcome(plan(metadata, {}, more)), expected))
  }

  it('sets the finalizers of the policy unless the kind ignores it', () => {
    const finalizers = (marksFirst: DeletionRequest['marksFirst']): unknown => {
      const planned = plan({}, { propagationPolicy: 'Orphan' }, { marksFirst })
      return planned.action === 'mark' && planned.object.metadata.finalizers
    }
    assert.deepEqual([finalizers('with-policy'), finalizers('without-policy')], [['orphan'], undefined])
  })

  it('may be told what becomes of its dependents even when it is on its way', () => {
    const planned = plan({ finalizers: ['orphan'], ...running(0) }, { propagationPolicy: 'Foreground' })
    assert.deepEqual(planned.action === 'mark' && planned.object.metadata.finalizers, ['foregroundDeletion'])
  })
})

describe('deleting a kind that somebody has to stop', () => {
  const kind = (seconds: number): Partial<DeletionRequest> => ({ graceSeconds: (asked) => asked ?? seconds })
  const rows: readonly (readonly [string, ObjectMeta, DeleteOptions, unknown[]])[] = [
    ['gives the grace of the kind', { generation: 1 }, {}, ['mark', at(30), 30, 2]],
    ['or what the client asks for', {}, { gracePeriodSeconds: 5 }, ['mark', at(5), 5, undefined]],
    ['less than nothing is a second', {}, { gracePeriodSeconds: -3 }, ['mark', at(1), 1, undefined]],
    ['without grace it is marked and goes', {}, { gracePeriodSeconds: 0 }, ['mark, then remove', NOW, 0, undefined]],
    ['finalizers keep it even then', { finalizers: ['a/b'] }, { gracePeriodSeconds: 0 }, ['mark', NOW, 0, undefined]],
    ['what is on its way goes on', running(30), {}, ['wait']],
    ['a longer grace does not count', running(30), { gracePeriodSeconds: 60 }, ['wait']],
    ['a shorter one counts from the beginning', running(30), { gracePeriodSeconds: 10 }, ['mark', at(10), 10, 2]],
    ['and none removes it', running(30), { gracePeriodSeconds: 0 }, ['mark, then remove', NOW, 0, 2]],
    ['what was to go at once and is still there goes', running(0), {}, ['remove']],
  ]
  for (const [name, metadata, options, expected] of rows) {
    it(name, () => assert.deepEqual(outcome(plan(metadata, options, kind(30))), expected))
  }

  it('leaves finalizers alone while the grace is running', () => {
    assert.equal(plan(running(30), { propagationPolicy: 'Foreground' }, kind(30)).action, 'wait')
  })
})

describe('checkPreconditions', () => {
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

  it('accepts the uid and the version of the object', () => {
    assert.equal(message({ uid: 'u', resourceVersion: '7' }), '')
  })

  it('refuses another uid or version in the words of the generic store', () => {
    assert.deepEqual(
      [message({ uid: 'o' }), message({ resourceVersion: '1' })],
      [
        'Operation cannot be fulfilled on Thing.example.com "x": the UID in the precondition (o) does not match the UID in record (u). The object might have been deleted and then recreated',
        'Operation cannot be fulfilled on Thing.example.com "x": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (7). The object might have been modified',
      ],
    )
  })

  it('names the resource for kinds whose first DELETE only marks', () => {
    assert.deepEqual(
      [message({ uid: 'o' }, 'with-policy'), message({ resourceVersion: '1' }, 'without-policy')],
      [
        'Operation cannot be fulfilled on things.example.com "x": Precondition failed: UID in precondition: o, UID in object meta: u',
        'Operation cannot be fulfilled on things.example.com "x": Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: 7',
      ],
    )
  })
})
