import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Deployment, ReplicaSet } from '#apis/apps/v1.ts'

import { byRevision, lastRevision, maxRevision, REVISION, revised } from './annotations.ts'

const setOf = (revision: string): ReplicaSet =>
  ({ metadata: { name: 's', annotations: { [REVISION]: revision } } }) as unknown as ReplicaSet

test('revision annotations of a Deployment are compared and incremented as 64-bit numbers', () => {
  const sets = ['3546343826724305833', '3546343826724305832', '', 'x', '7'].map(setOf)
  assert.equal(maxRevision(sets), 3546343826724305833n)
  assert.equal(lastRevision(sets), 3546343826724305832n)
  assert.deepEqual(
    sets.toSorted(byRevision).map(({ metadata }) => metadata.annotations?.[REVISION]),
    ['', 'x', '7', '3546343826724305832', '3546343826724305833'],
  )
  const deployment = { metadata: {} } as Deployment
  const next = revised(deployment, { [REVISION]: '3546343826724305832' }, maxRevision(sets) + 1n)
  assert.equal(next[REVISION], '3546343826724305834')
  assert.deepEqual(revised(deployment, next, 3546343826724305834n), next)
})
