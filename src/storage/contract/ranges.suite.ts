/** The promises of ranges. */
import assert from 'node:assert/strict'

import { prefixEnd, type Revision } from '../backend.ts'
import { type Test, turn, ok, rejects, bytes, text, shape } from './bench.fixture.ts'

export function rangeTests(test: Test): void {
  test('a range reads one key, a prefix, or any interval', async ({ backend, key, prefix, put }) => {
    for (const name of ['a', 'a/1', 'a/2', 'a0', 'b']) await put(name)
    const keys = async (start: string, end?: string): Promise<string[]> => {
      const { items } = await backend.range({ start: key(start), ...(end !== undefined && { end: key(end) }) })
      return items.map((item) => item.key.slice(prefix.length))
    }
    assert.deepEqual(await keys('a'), ['a'])
    assert.deepEqual(await keys('nothing'), [])
    assert.deepEqual(await keys('a/', 'a0'), ['a/1', 'a/2'])
    assert.deepEqual(await keys('a', 'b'), ['a', 'a/1', 'a/2', 'a0'])
    assert.deepEqual(await keys('a/2', 'z'), ['a/2', 'a0', 'b'])
    assert.deepEqual(await keys('b', 'a'), [])
    assert.deepEqual(await keys('a', 'a'), [])
    const { items } = await backend.range({ start: '', end: prefixEnd('') })
    assert.equal(items.filter((item) => item.key.startsWith(prefix)).length, 5)
  })

  test('a range orders keys by their bytes', async ({ key, put, list }) => {
    const odd = [
      ' ',
      '!',
      '"',
      '%00',
      "'",
      '*',
      '-',
      '.',
      '/',
      '//',
      ':',
      'A',
      'Z',
      '[',
      '\\',
      '_',
      '`',
      'a',
      'a a',
      '~',
    ]
    for (const name of odd.toReversed()) await put(name, name)
    const { items } = await list()
    assert.deepEqual(
      items.map((item) => item.key),
      odd.map(key).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    )
    for (const item of items) assert.equal(item.key, key(text(item)))
  })

  test('a range counts the keys beyond its limit', async ({ backend, prefix, end, put, list }) => {
    for (let n = 0; n < 7; n++) await put(n)
    const part = await list({ limit: 3 })
    assert.deepEqual([part.items.length, part.more, part.count], [3, true, 7])
    const exact = await list({ limit: 7 })
    assert.deepEqual([exact.items.length, exact.more, exact.count], [7, false, 7])
    const zero = await list({ limit: 0 })
    assert.deepEqual([zero.items.length, zero.more, zero.count], [7, false, 7])
    const count = await backend.range({ start: prefix, end, countOnly: true })
    assert.deepEqual([count.items.length, count.more, count.count], [0, false, 7])
  })

  test('a range omits values on request', async ({ backend, prefix, end, put, list }) => {
    const { revision } = await put('a', 'some value')
    const [item] = (await backend.range({ start: prefix, end, keysOnly: true })).items
    assert.deepEqual(
      [item?.value.length, item?.createRevision, item?.modRevision, item?.lease],
      [0, revision, revision, 0],
    )
    assert.equal((await list()).items[0]?.value.length, 'some value'.length)
  })

  test('a range reads the state at an older revision', async ({ backend, key, put, remove, list }) => {
    const first = await put('a', '1')
    const second = await put('b', '1')
    const third = await put('a', '2')
    const fourth = await remove('b')
    const fifth = await put('b', '3')
    const at = async (revision: Revision): Promise<string[]> => {
      const picture = await list({ revision })
      assert.equal(picture.revision, revision)
      assert.equal(picture.count, picture.items.length)
      return picture.items.map((item) => `${item.key.at(-1)}=${text(item)}`)
    }
    assert.deepEqual(await at(first.revision), ['a=1'])
    assert.deepEqual(await at(second.revision), ['a=1', 'b=1'])
    assert.deepEqual(await at(third.revision), ['a=2', 'b=1'])
    assert.deepEqual(await at(fourth.revision), ['a=2'])
    assert.deepEqual(await at(fifth.revision), ['a=2', 'b=3'])
    const [old] = (await backend.range({ start: key('b'), revision: second.revision })).items
    assert.deepEqual(shape(old), [key('b'), '1', second.revision, second.revision, 0])
    const [anew] = (await backend.range({ start: key('b'), revision: fifth.revision })).items
    assert.deepEqual(shape(anew), [key('b'), '3', fifth.revision, fifth.revision, 0])
  })

  test('a range fails at a future revision', async ({ backend, prefix, end }) => {
    const revision = (await backend.currentRevision()) + 1000
    await rejects(backend.range({ start: prefix, end, revision }), 'future-revision')
  })

  test('a range reads pages of one snapshot during writes', async ({ key, put, remove, list }) => {
    const names = Array.from({ length: 23 }, (_, n) => String(100 + n))
    for (const name of names) await put(name, 'old')
    const first = await list({ limit: 5 })
    const seen = [...first.items]
    for (let page = first, n = 0; page.more; n++) {
      await put(names[n]!, 'new')
      await remove(names.at(-1 - n)!)
      await put(`1${n}0x`, 'added')
      page = await list({ limit: 5, revision: first.revision, start: `${page.items.at(-1)!.key}\0` })
      assert.equal(page.revision, first.revision)
      seen.push(...page.items)
    }
    assert.deepEqual(
      seen.map((item) => [item.key, text(item)]),
      names.map((name) => [key(name), 'old']),
    )
  })

  test('a range contains a commit completely or not at all', async ({ backend, key, prefix, end }) => {
    const traffic = { on: true }
    const writer = (async (): Promise<void> => {
      for (let n = 0; n < 40; n++) {
        await ok(backend.commit(['a', 'b', 'c'].map((name) => ({ key: key(name), value: bytes(String(n)) }))))
      }
      traffic.on = false
    })()
    while (traffic.on) {
      const { items } = await backend.range({ start: prefix, end })
      assert.ok(new Set(items.map(text)).size <= 1 && [0, 3].includes(items.length), 'one revision')
      await turn()
    }
    await writer
  })
}
