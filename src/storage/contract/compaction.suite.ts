/** The promises of compaction. */
import assert from 'node:assert/strict'

import { type Test, rejects, text, shape } from './bench.fixture.ts'

export function compactionTests(test: Test): void {
  test('drops older history, keeps the current state, and never lowers the compacted revision', async ({
    backend,
    put,
    remove,
    list,
  }) => {
    const first = await put('a', '1')
    await put('b', '1')
    const third = await put('a', '2')
    const fourth = await remove('b')
    await put('c', '1')
    await backend.compact(third.revision)
    const error = await rejects(list({ revision: first.revision }), 'compacted')
    assert.equal(error.compactedRevision, third.revision)
    assert.deepEqual((await list({ revision: third.revision })).items.map(text), ['2', '1'])
    assert.deepEqual((await list({ revision: fourth.revision })).items.map(text), ['2'])
    assert.deepEqual((await list()).items.map(text), ['2', '1'])
    await backend.compact(third.revision)
    await backend.compact(first.revision)
    assert.equal((await rejects(list({ revision: third.revision - 1 }), 'compacted')).compactedRevision, third.revision)
    assert.equal((await backend.health()).compactedRevision, third.revision)
    const current = await backend.currentRevision()
    await backend.compact(current)
    assert.deepEqual((await list({ revision: current })).items.map(text), ['2', '1'])
    assert.equal(await backend.currentRevision(), current)
    assert.ok((await put('d', '1')).revision > current)
  })

  test('rejects compaction at a future revision', async ({ backend }) => {
    await rejects(backend.compact((await backend.currentRevision()) + 1000), 'future-revision')
  })

  test('preserves guards, previous values and creation revisions', async ({ backend, key, put, remove }) => {
    const first = await put('a', '1')
    const second = await put('a', '2')
    await put('b', '1')
    const gone = await remove('b')
    await backend.compact(gone.revision)
    const third = await put('a', '3', { expected: second.revision })
    assert.deepEqual(shape(third.previous[0]), [key('a'), '2', first.revision, second.revision, 0])
    await put('b', '2', { expected: 0 })
    assert.equal((await backend.range({ start: key('a') })).items[0]!.createRevision, first.revision)
  })

  test('does not affect later revisions during writes', async ({ backend, put, list }) => {
    let kept = (await put('x', '0')).revision
    for (let n = 1; n <= 60; n++) {
      const { revision } = await put('x', String(n))
      await put(n % 7, String(n))
      if (n % 5 !== 0) continue
      await backend.compact(kept)
      const old = (await list({ revision: kept })).items.find((item) => item.key.endsWith('/x'))
      assert.equal(text(old!), String(n === 5 ? 0 : n - 5))
      kept = revision
    }
  })
}
