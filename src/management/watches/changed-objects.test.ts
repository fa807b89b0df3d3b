/** Tests versions of lists and the changes that a watch has still to send. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { canContinue, ChangedObjects, formatVersion, type ListVersion, parseVersion } from './changed-objects.ts'

const NOW: ListVersion = { process: 'a1', changes: 12, deletions: 3, rights: 'f0' }

describe('version of a list', () => {
  it('is read as it was written', () => assert.deepEqual(parseVersion(formatVersion(NOW)), NOW))

  for (const text of ['', '17', 'a.b.c.d', 'a.1.2.d.e', 'a.-1.2.d', `a.1.${'9'.repeat(20)}.d`]) {
    it(`is not "${text}"`, () => assert.equal(parseVersion(text), undefined))
  }

  const cases: readonly (readonly [what: string, from: ListVersion | undefined, continues: boolean])[] = [
    ['the same version', NOW, true],
    ['a version before changes', { ...NOW, changes: 2 }, true],
    ['a version before a deletion', { ...NOW, deletions: 2 }, false],
    ['a version of another process', { ...NOW, process: 'b2' }, false],
    ['a version of other rights', { ...NOW, rights: '00' }, false],
    ['no version', undefined, false],
  ]
  for (const [what, from, continues] of cases) {
    it(`${continues ? 'allows' : 'does not allow'} a watch from ${what}`, () =>
      assert.equal(canContinue(from, NOW), continues))
  }
})

describe('ChangedObjects', () => {
  const event = (type: 'MODIFIED' | 'DELETED', version: number): Parameters<ChangedObjects['add']>[1] => ({
    type,
    object: { version },
  })

  it('keeps the latest event of each object, in the order of the events', () => {
    const changed = new ChangedObjects()
    changed.add({ metadata: { name: 'a' } }, event('MODIFIED', 1))
    changed.add({ metadata: { name: 'b' } }, event('MODIFIED', 2))
    changed.add({ metadata: { name: 'a' } }, event('DELETED', 3))
    assert.deepEqual(
      [changed.next(), changed.next(), changed.next()],
      [event('MODIFIED', 2), event('DELETED', 3), undefined],
    )
  })

  it('resolves when there is an event', async () => {
    const changed = new ChangedObjects()
    const waiting = changed.changed()
    changed.add({ metadata: { name: 'a' } }, event('MODIFIED', 1))
    await waiting
    changed.clear()
    assert.equal(changed.next(), undefined)
  })
})
