import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { anonymous } from '#auth/access.ts'
import { requestInfoOf } from '#auth/request-info.ts'
import type { Exchange } from '#lib/http/exchange.ts'

import { otherwise } from './call.ts'
import { UNMETERED } from './request-meter.ts'
import { ServerCall } from './server-call.ts'

function callOf(): { call: ServerCall; reads: () => number; warnings: string[] } {
  let reads = 0
  const warnings: string[] = []
  const headers: Exchange['headers'] = { accept: 'application/json', via: 'a' }
  const exchange = { method: 'POST', headers, signal: new AbortController().signal } as unknown as Exchange
  const bodies = { read: () => Promise.resolve(Buffer.from(`body ${++reads}`)) }
  const info = requestInfoOf('POST', '/api/v1/namespaces/a/pods', undefined)
  const query = new URLSearchParams()
  const trail = undefined
  const call = new ServerCall({
    request: { exchange, info, query, user: anonymous, trail, auditId: 'id', bodies, warnings, meter: UNMETERED },
    authorize: (_, { verb }) => ({ allowed: verb === 'create', reason: 'because' }),
    deadlineMs: undefined,
  })
  return { call, reads: () => reads, warnings }
}

describe('Call of an API request', () => {
  it('shares all members with a modified copy, and reads the body once', async () => {
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

  it('authorizes further verbs of the request with demand()', async () => {
    const { call } = callOf()
    await call.demand('create')
    await assert.rejects(call.demand('delete'), /cannot delete resource "pods"/)
  })
})
