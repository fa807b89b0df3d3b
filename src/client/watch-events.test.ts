import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ConfigMap } from '#apis/core/v1.ts'

import { readWatchEvents } from './watch-events.ts'

async function* piecesOf(...texts: string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text)
}

const line = (name: string): string => `{"type":"ADDED","object":{"metadata":{"name":"${name}"}}}\n`

/** Expects these batches of names. */
async function expectBatches(groups: string[], ...texts: string[]): Promise<void> {
  for await (const events of readWatchEvents<ConfigMap>(piecesOf(...texts)))
    groups.push(events.map(({ object }) => (object as ConfigMap).metadata.name).join())
}

describe('readWatchEvents() of the API client', () => {
  it('yields the events of one read as one batch, once their lines are complete', async () => {
    const groups: string[] = []
    const [begun, rest] = [line('c').slice(0, 20), line('c').slice(20)]
    await expectBatches(groups, line('a') + line('b') + begun, rest + line('d'), '\n', line('e'), line('f').slice(0, 9))
    assert.deepEqual(groups, ['a,b', 'c,d', 'e'])
  })

  it('yields the events before a line that is no JSON', async () => {
    const groups: string[] = []
    await assert.rejects(expectBatches(groups, `${line('a') + line('b')}{"type":\n${line('c')}`))
    assert.deepEqual(groups, ['a,b'])
  })
})
