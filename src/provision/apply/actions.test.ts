import assert from 'node:assert/strict'
import { test } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import { type Machine, MachineError } from '../machine.ts'
import { perform, type Site } from './actions.ts'

const URL_OF_GOING = 'https://10.0.0.7:2380'
const health = { url: 'https://127.0.0.1:2379/health' }
const SIGNAL = new AbortController().signal

/**
 * A simulated etcd behind a machine; `remove`: how many requests it leaves unanswered, although it performs the removal
 * if `isDone`.
 */
function standIn({ silences, isDone }: { readonly silences: number; readonly isDone: boolean }): {
  readonly site: Site
  readonly requests: string[]
  readonly clock: ReturnType<typeof createVirtualClock>
} {
  const requests: string[] = []
  let left = silences
  let isThere = true
  const http: Machine['http'] = async ({ url }) => {
    const what = url.split('/').at(-1) ?? ''
    requests.push(what)
    if (what === 'list') {
      const members = isThere ? [{ ID: '7', name: 'm7', peerURLs: [URL_OF_GOING] }] : []
      return { status: 200, text: JSON.stringify({ members }) }
    }
    const isSilent = left-- > 0
    if (!isSilent || isDone) isThere = false
    return { status: isSilent ? 0 : 200, text: isSilent ? 'The request took longer than 10000 ms' : '{}' }
  }
  const clock = createVirtualClock()
  return { site: { machine: async () => ({ http }) as never, api: undefined as never, clock }, requests, clock }
}

const LEAVE = { type: 'leave-etcd', through: 'm1', health, peerUrl: URL_OF_GOING } as const

test('hyperkube build retries the removal of an etcd member, and accepts that the member is already gone', async () => {
  for (const [isDone, expected] of [
    [false, ['list', 'remove', 'list', 'remove']],
    [true, ['list', 'remove', 'list']],
  ] as const) {
    const { site, requests, clock } = standIn({ silences: 1, isDone })
    const leaving = perform(LEAVE, 'm7', site, SIGNAL)
    await clock.advance(2000)
    await leaving
    assert.deepEqual(requests, expected)
  }
})

test('hyperkube build waits at most a minute for an etcd that never responds', async () => {
  const { site, clock } = standIn({ silences: Infinity, isDone: false })
  const leaving = assert.rejects(perform(LEAVE, 'm7', site, SIGNAL), (error: Error) => {
    assert.ok(error instanceof MachineError)
    assert.equal(error.message, 'etcd answers 0: The request took longer than 10000 ms')
    return true
  })
  await clock.advance(120_000)
  await leaving
})
