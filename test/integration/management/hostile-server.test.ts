/** Tests the agent of a cluster against a compromised management server. */
import assert from 'node:assert/strict'
import { duplexPair } from 'node:stream'
import { describe, it } from 'node:test'

import { createApiProxy } from '#cluster-agent/api-proxy.ts'
import { realClock } from '#lib/clock.ts'
import type { HttpRequest } from '#lib/http/client.ts'
import { wholeResponse } from '#lib/http/response.ts'
import { createLog } from '#lib/log/log.ts'
import { decodeResponse, encodeHead, readHead } from '#lib/tunnel/request-head.ts'

const IDENTITY = ['Impersonate-User: u-abcde', 'Impersonate-Group: hk:cluster:cluster-member']

const quiet = { write: (_text: string, done: () => void) => done() }
const { logger: log } = createLog({ clock: realClock, stream: quiet })

async function send(path: string, lines: readonly string[]): Promise<{ status: number; sent: HttpRequest[] }> {
  const sent: HttpRequest[] = []
  const request = async (one: HttpRequest): Promise<ReturnType<typeof wholeResponse>> => {
    sent.push(one)
    return wholeResponse(Buffer.from('{}'), { status: 200, headers: {}, version: '1.1' })
  }
  const upgrade = (): Promise<never> => Promise.reject(new Error('unused'))
  const connection = { transport: { request }, upgrade, server: 'https://api.example/k8s/clusters/mine' }
  const proxy = createApiProxy({ connection, clock: realClock, log })
  const [ours, theirs] = duplexPair()
  proxy.accept(theirs)
  const headers = ['Host: a', ...lines].flatMap((line) => {
    const [name = '', value = ''] = line.split(': ')
    return [name.toLowerCase(), value]
  })
  ours.end(encodeHead({ method: 'GET', path, headers, follows: 'end' }))
  const { status } = decodeResponse(await readHead(ours))
  ours.destroy()
  theirs.destroy()
  await proxy.close()
  return { status, sent }
}

describe('agent of a hostile management server', () => {
  it('forwards no path that leads outside of its API server', async () => {
    const paths = [
      '/../other/api',
      '/api/%2e%2e/%2E./x',
      '/api/..%2f..',
      '/a\\..\\b',
      '/a%5c..',
      '//evil.example/',
      'http://evil.example/x',
    ]
    for (const path of paths) {
      const { status, sent } = await send(path, IDENTITY)
      assert.deepEqual([status, sent], [400, []], path)
    }
    const { sent } = await send('/api/v1/x?a=/../b', IDENTITY)
    assert.equal(sent[0]?.path, '/k8s/clusters/mine/api/v1/x?a=/../b')
    assert.equal(sent[0]?.url, 'https://api.example')
  })

  it('impersonates only users of the management server, and forwards none of their credentials', async () => {
    for (const lines of [
      [],
      ['Impersonate-User: system:admin'],
      ['Impersonate-User: u-abcde', 'Impersonate-User: u-fghij'],
      [...IDENTITY, 'Impersonate-Group: system:masters'],
      [...IDENTITY, 'Impersonate-Uid: 1'],
      [...IDENTITY, 'Impersonate-Extra-a: b'],
    ])
      assert.equal((await send('/api', lines)).status, 403, lines.join())
    const secrets = [
      'Cookie: a=b',
      'Authorization: Bearer x',
      'Impersonate_User: root',
      'X-Remote-User: root',
      'X_Remote_User: root',
    ]
    const { sent } = await send('/api', [...IDENTITY, ...secrets])
    const names = Object.keys(sent[0]?.headers ?? {}).toSorted((one, other) => one.localeCompare(other))
    assert.deepEqual(names, ['host', 'impersonate-group', 'impersonate-user'])
  })
})
