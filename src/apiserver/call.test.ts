import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Exchange } from '#lib/http/exchange.ts'

import { otherwise } from './call.ts'
import { anonymous } from './filters/access.ts'
import { UNMETERED } from './metrics/requests.ts'
import { requestInfoOf } from './request-info.ts'
import { ServerCall } from './server-call.ts'

function callOf(): { call: ServerCall; reads: () => number; warnings: string[] } {
  let reads = 0
  const warnings: string[] = []
  const headers: Exchange['headers'] = { accept: 'application/json', via: 'a' }
  const exchange = { method: 'POST', headers, signal: new AbortController().signal } as unknown as Exchange
  const bodies = { read: () => Promise.resolve(Buffer.from(`body ${++reads}`)) }
  const call = new ServerCall({
    context: { bodies, warnings, auditId: 'id', meter: UNMETERED },
    exchange,
    request: { info: requestInfoOf('POST', '/api/v1/namespaces/a/pods', undefined), query: new URLSearchParams() },
    user: anonymous,
    audit: undefined,
    authorize: (_, { verb }) => ({ allowed: verb === 'create', reason: 'because' }),
    deadlineMs: undefined,
  })
  return { call, reads: () => reads, warnings }
}

describe('a call', () => {
  it('that differs in something is the same in all else, and reads its body but once', async () => {
    const { call, reads, warnings } = callOf()
    const other = otherwise(call, { header: (name) => (name === 'accept' ? '*/*' : call.header(name)) })
    assert.deepEqual([other.header('accept'), other.header('via'), other.header('te')], ['*/*', 'a', ''])
    assert.deepEqual([other.method, other.info.resource, other.user], ['POST', 'pods', anonymous])
    assert.equal((await other.body()).toString(), 'body 1')
    assert.equal(await call.body(), await other.body())
    assert.deepEqual([reads(), call.bodyBytes, other.bodyBytes], [1, 6, 6])
    other.warn('twice')
    call.warn('twice')
    assert.deepEqual(warnings, ['twice'])
    assert.equal(other.signal, call.signal)
  })

  it('demands no more than what its verb may, and asks for others', async () => {
    const { call } = callOf()
    await call.demand('create')
    await assert.rejects(call.demand('delete'), /cannot delete resource "pods"/)
  })
})
