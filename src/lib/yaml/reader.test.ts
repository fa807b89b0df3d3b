import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'

import { createVirtualClock, realClock } from '../clock.ts'
import { YamlError } from './error.ts'
import { createYamlReader } from './reader.ts'

const never = new AbortController().signal

function keys(count: number): string {
  return Array.from({ length: count }, (_, n) => `key-${n}: ${n}\n`).join('')
}

describe('YAML reader with a worker thread', () => {
  const reader = createYamlReader(realClock, { inlineBytes: 100, inlineRetried: 100 })
  after(() => reader.close())

  it('yields the same result with and without the thread', async () => {
    const small = await reader.read(Buffer.from('a: 1\nb: [x, 9007199254740993]\na: 2\n'), never)
    assert.deepEqual(small, {
      value: { a: 2, b: ['x', 9007199254740993n] },
      duplicates: ['line 3: key "a" already set in map'],
    })
    const blanks = '# …\n'.repeat(50)
    const large = await reader.read(Buffer.from(`${blanks}a: 1\nb: [x, 9007199254740993]\na: 2\n`), never)
    assert.deepEqual(large.value, small.value)
    assert.deepEqual(large.duplicates, ['line 53: key "a" already set in map'])
  })

  it('keeps the order of requests', async () => {
    const texts = Array.from({ length: 5 }, (_, n) => Buffer.from(`${keys(100)}turn: ${n}\n`))
    const values = await Promise.all(texts.map(async (text) => (await reader.read(text, never)).value))
    assert.deepEqual(
      values.map((value) => (value as { turn: number }).turn),
      [0, 1, 2, 3, 4],
    )
  })

  it('yields the same errors with and without the thread', async () => {
    const broken = Buffer.from(`${keys(100)}a: [\n`)
    await assert.rejects(reader.read(broken, never), (error) => error instanceof YamlError && error.code === 'syntax')
    const laughs = Buffer.from(
      ['a0: &a0 [x]', ...Array.from({ length: 20 }, (_, n) => `a${n + 1}: &a${n + 1} [${`*a${n},`.repeat(9)}]`)].join(
        '\n',
      ),
    )
    await assert.rejects(reader.read(laughs, never), /excessive aliasing/)
  })

  it('uses the thread for a short text that is expensive to parse', async () => {
    const text = Buffer.from(`a: [\n${'b,\n'.repeat(30)}]`)
    const { value } = await reader.read(text, never)
    assert.equal((value as { a: string[] }).a.length, 30)
  })

  it('rejects a text if the queue is full, and skips aborted requests', async () => {
    const small = createYamlReader(realClock, { inlineBytes: 10, waitingBytes: 3000 })
    const gone = new AbortController()
    const [first, second] = [small.read(Buffer.from(keys(100)), never), small.read(Buffer.from(keys(100)), gone.signal)]
    await assert.rejects(small.read(Buffer.from(keys(100)), never), { code: 'busy' })
    gone.abort(new Error('left'))
    await assert.rejects(second, /left/)
    await first
    await small.close()
    await assert.rejects(small.read(Buffer.from(keys(100)), never), { code: 'busy' })
  })

  it('aborts a text that takes too long and continues with the next', async () => {
    // Time that does not wait for workers.
    const clock = { ...createVirtualClock(), during: <T>(work: Promise<T>) => work }
    const hasty = createYamlReader(clock, { inlineBytes: 10, timeoutMs: 5 })
    const late = hasty.read(Buffer.from(keys(20_000)), never)
    const next = hasty.read(Buffer.from(keys(10)), never)
    const refused = assert.rejects(late, { code: 'limit', message: /too long/ })
    await clock.advance(5)
    await refused
    assert.equal(((await next).value as Record<string, number>)['key-3'], 3)
    await hasty.close()
  })
})
