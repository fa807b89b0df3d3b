import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ConfigMap } from '#apis/core/v1.ts'

import { readWatchEvents } from './watch-events.ts'

async function* piecesOf(...texts: string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text)
}

const line = (name: string): string => `{"type":"ADDED","object":{"metadata":{"name":"${name}"}}}\n`

/** The names of what was told together. */
async function told(groups: string[], ...texts: string[]): Promise<void> {
  for await (const events of readWatchEvents<ConfigMap>(piecesOf(...texts)))
    groups.push(events.map(({ object }) => (object as ConfigMap).metadata.name).join())
}

describe('the events of a watch', () => {
  it('are told together when they came together, and when their line is whole', async () => {
    const groups: string[] = []
    const [begun, rest] = [line('c').slice(0, 20), line('c').slice(20)]
    await told(groups, line('a') + line('b') + begun, rest + line('d'), '\n', line('e'), line('f').slice(0, 9))
    assert.deepEqual(groups, ['a,b', 'c,d', 'e'])
  })

  it('are told up to one that nobody can read', async () => {
    const groups: string[] = []
    await assert.rejects(told(groups, `${line('a') + line('b')}{"type":\n${line('c')}`))
    assert.deepEqual(groups, ['a,b'])
  })
})
