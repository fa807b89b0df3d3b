/** The promises of the times of commits. */
import assert from 'node:assert/strict'

import type { Test } from './bench.fixture.ts'

/** Each case with an in-memory fork, and with a fork in a file if the backend supports it. */
export function timeTests(test: Test): void {
  test('are to a second and ascend with the revision', async ({ backend, put, pass }) => {
    const { revision: first } = await put('a', '1')
    await pass(2000)
    const { revision: second } = await put('a', '2')
    const [firstMs = NaN, secondMs = NaN] = [backend.timeOf(first), backend.timeOf(second)]
    assert.ok(secondMs - firstMs > 1000 && secondMs - firstMs < 5000, `${firstMs} and ${secondMs}`)
  })

  test('find the last revision of a second', async ({ backend, put, pass }) => {
    const { revision: first } = await put('a', '1')
    await pass(2000)
    const { revision: second } = await put('a', '2')
    const [firstMs = NaN, secondMs = NaN] = [backend.timeOf(first), backend.timeOf(second)]
    assert.equal(backend.revisionAt(firstMs), second - 1)
    assert.equal(backend.revisionAt(secondMs - 1000), second - 1)
    assert.equal(backend.revisionAt(secondMs), second)
    assert.equal(backend.revisionAt(secondMs + 1e9), second)
    assert.equal(backend.revisionAt(0), undefined)
  })
}
