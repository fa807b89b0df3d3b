import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { HttpRequest } from '#lib/http/client.ts'
import type { HttpResponse } from '#lib/http/response.ts'

import { Fence } from './fence.ts'
import { LeadershipLost } from './leader-election.ts'

describe("Fence of a leader's requests", () => {
  const ask = (method: string): HttpRequest => ({ method, url: 'https://server/api/v1/pods', headers: {} })

  it('passes every request while this program is the leader, and rejects writes afterwards', async () => {
    const fence = new Fence()
    const sent: string[] = []
    const transport = fence.around({
      request: ({ method }) => (sent.push(method ?? ''), Promise.resolve({} as HttpResponse)),
    })
    await transport.request(ask('POST'))
    let leads = true
    fence.guard(() => leads)
    await transport.request(ask('DELETE'))
    leads = false
    await assert.rejects(transport.request(ask('POST')), LeadershipLost)
    await transport.request(ask('GET'))
    assert.deepEqual(sent, ['POST', 'DELETE', 'GET'])
  })
})
