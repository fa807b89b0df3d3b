/** The promises of watches that end at a revision. */
import assert from 'node:assert/strict'

import type { Test } from './bench.fixture.ts'

export function boundedWatchTests(test: Test): void {
  test('end after the last revision wanted', async ({ backend, prefix, end, put, remove }) => {
    const { revision: first } = await put('a', '1')
    await put('b', '1')
    const { revision: last } = await remove('a')
    await put('a', '2')
    for (const [through, expected] of [
      [first, ['put a']],
      [last - 1, ['put a', 'put b']],
      [last, ['put a', 'put b', 'delete a']],
    ] as const) {
      const { signal } = new AbortController()
      const seen: string[] = []
      for await (const { events, revision } of backend.watch({ start: prefix, end, from: first, through, signal })) {
        assert.ok(revision <= through)
        for (const { type, key } of events) seen.push(`${type} ${key.slice(prefix.length)}`)
      }
      assert.deepEqual(seen, expected)
    }
  })

  test('end at once if nothing is wanted', async ({ backend, prefix, end, put }) => {
    const { revision } = await put('a', '1')
    const { signal } = new AbortController()
    for await (const _ of backend.watch({ start: prefix, end, from: revision + 1, through: revision, signal }))
      assert.fail('There is nothing to deliver')
  })
}
