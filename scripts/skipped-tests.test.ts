import assert from 'node:assert/strict'
import { test } from 'node:test'

import reportSkips, { avoidableSkips, parseSkips, type SkippedTest } from './skipped-tests.ts'

type Events = Parameters<typeof reportSkips>[0]

async function report(...events: readonly object[]): Promise<SkippedTest[]> {
  const source = (async function* (): AsyncGenerator<object> {
    yield* events
  })()
  let lines = ''
  for await (const line of reportSkips(source as Events)) lines += line
  return parseSkips(lines)
}

const passed = (name: string, skip?: string | true): object => ({
  type: 'test:pass',
  data: { name, file: 'a.test.ts', ...(skip !== undefined && { skip }) },
})

test('the reporter of skipped tests prints their names and reasons, and no other tests', async () => {
  const events = [passed('ran'), passed('one', 'there is no /usr/sbin/sshd'), passed('two', true)]
  assert.deepEqual(await report(...events, { type: 'test:fail', data: { name: 'three', skip: 'x' } }), [
    { name: 'one', file: 'a.test.ts', reason: 'there is no /usr/sbin/sshd' },
    { name: 'two', file: 'a.test.ts', reason: '' },
  ])
})

const REASONS: readonly (readonly [reason: string, isAvoidable: boolean])[] = [
  ['there is no /usr/sbin/sshd', true],
  ['tcpdump is missing', true],
  ['', true],
  ['no API facts in "/facts"', false],
  ['no node older than 22 on the PATH', false],
]
for (const [reason, isAvoidable] of REASONS)
  test(`a test skipped because of "${reason}" ${isAvoidable ? 'fails the gate' : 'passes the gate'}`, () => {
    assert.equal(avoidableSkips([{ name: 'x', file: 'x.test.ts', reason }]).length, isAvoidable ? 1 : 0)
  })
