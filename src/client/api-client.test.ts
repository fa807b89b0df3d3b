import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ConfigMaps } from '#apis/core/v1.ts'
import { withCauses } from '#lib/causes.ts'
import { createVirtualClock } from '#lib/clock.ts'
import type { HttpRequest } from '#lib/http/client.ts'
import { wholeResponse } from '#lib/http/response.ts'

import { ApiClient } from './api-client.ts'

describe('ApiClient', () => {
  it('sends the active causes with writes only', async () => {
    const sent: HttpRequest[] = []
    const transport = {
      request(request: HttpRequest) {
        sent.push(request)
        return Promise.resolve(wholeResponse(Buffer.from('{}'), { status: 200, headers: {}, version: '2' }))
      },
    }
    const client = new ApiClient({ transport, clock: createVirtualClock(), userAgent: 'test' })
    const where = { namespace: 'default', name: 'one' }
    await client.create(ConfigMaps, { metadata: where })
    await withCauses(['nodes/one@7', 'pods/default/a@1'], async () => {
      await client.get(ConfigMaps, where)
      await client.create(ConfigMaps, { metadata: where })
      await client.patch(ConfigMaps, where, { type: 'merge', value: {} })
      await client.delete(ConfigMaps, where)
    })
    const both = 'nodes/one@7,pods/default/a@1'
    assert.deepEqual(
      sent.map(({ method, headers = {} }) => [method, headers['hyperkube-because']]),
      [
        ['POST', undefined],
        ['GET', undefined],
        ['POST', both],
        ['PATCH', both],
        ['DELETE', both],
      ],
    )
  })
})
