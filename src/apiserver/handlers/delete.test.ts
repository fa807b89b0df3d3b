import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'

import { ConfigMaps } from '#apis/core/v1.ts'
import { requestInfoOf } from '#auth/request-info.ts'
import type { Call, WholeAnswer } from '#component/requests/call.ts'
import { forbiddenError } from '#meta/status-errors.ts'

import type { Admission } from '../registry/admission.ts'
import { createServers } from '../registry/servers.fixture.ts'
import { deleteCollection } from './delete.ts'

const PATH = '/api/v1/namespaces/default/configmaps'

interface Deletions {
  readonly count: number
  readonly workers?: number
  /** Called at the start of the n-th deletion; an error it throws refuses the deletion. */
  readonly admit?: (at: number) => void
  readonly call?: Partial<Call>
}

/** Deletes `count` objects, each admitted a turn of the event loop later. */
async function deleteAll(
  t: TestContext,
  { count, workers, admit, call }: Deletions,
): Promise<{
  readonly answered: Promise<WholeAnswer>
  /** The maximum number of concurrent deletions. */
  readonly together: () => number
  readonly left: () => Promise<number>
}> {
  const servers = createServers()
  t.after(() => servers[Symbol.asyncDispose]())
  let [begun, underway, together] = [0, 0, 0]
  const validate: Admission['validate'] = async ({ operation }) => {
    if (operation !== 'DELETE') return
    together = Math.max(together, ++underway)
    admit?.(begun++)
    await new Promise(setImmediate)
    underway--
  }
  const registry = await servers.open([ConfigMaps], { admission: () => ({ mutate: async () => undefined, validate }) })
  for (let at = 0; at < count; at++) {
    const metadata = { name: `m-${at}`, namespace: 'default' }
    await registry.writer.create(ConfigMaps, { metadata })
  }
  const found = registry.find({ group: '', version: 'v1', resource: 'configmaps' })!
  const services = { ...found.services, ...(workers !== undefined && { deleteWorkers: workers }) }
  const query = new URLSearchParams()
  const whole = {
    method: 'DELETE',
    info: requestInfoOf('DELETE', PATH, query),
    query,
    header: (name: string) => (name === 'accept' ? 'application/json' : ''),
    body: () => Promise.resolve(Buffer.alloc(0)),
    user: { name: 'jane', uid: '', groups: [], extra: {} },
    signal: new AbortController().signal,
    ...call,
  } as unknown as Call
  const answered = deleteCollection(whole, { ...found, services }) as Promise<WholeAnswer>
  const left = async (): Promise<number> => (await registry.list(ConfigMaps, 'default')).length
  return { answered, together: () => together, left }
}

describe('deleteCollection', () => {
  it('runs one deletion per worker concurrently, so that several commits share one fsync', async (t) => {
    for (const [workers, expected] of [
      [1, 16],
      [2, 32],
    ] as const) {
      const { answered, together, left } = await deleteAll(t, { count: 100, workers })
      assert.equal((await answered).status, 200)
      assert.equal(together(), expected)
      assert.equal(await left(), 0)
    }
  })

  it('stops at the first object that it fails to delete, and keeps the rest', async (t) => {
    const refuse = (at: number): void => {
      if (at === 20) throw forbiddenError({ group: '', resource: 'configmaps' }, `m-${at}`, 'it is kept')
    }
    const { answered, left } = await deleteAll(t, { count: 100, admit: refuse })
    await assert.rejects(answered, /it is kept/)
    const kept = await left()
    assert.ok(kept >= 60 && kept < 100, String(kept))
  })

  it('stops at the request timeout or when the client disconnects', async (t) => {
    const late = await deleteAll(t, { count: 20, call: { deadlineMs: -1 } })
    await assert.rejects(late.answered, /was over/)
    assert.equal(await late.left(), 20)
    const gone = await deleteAll(t, { count: 20, call: { signal: AbortSignal.abort() } })
    await assert.rejects(gone.answered)
    assert.equal(await gone.left(), 20)
  })
})
