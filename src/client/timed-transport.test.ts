import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { HttpRequest } from '#lib/http/client.ts'

import type { Transport } from './api-client.ts'
import { timedTransport } from './timed-transport.ts'

test('timedTransport() sends the timeout to the server and aborts the request after it', async () => {
  const sent: HttpRequest[] = []
  const transport = { request: async (request: HttpRequest) => void sent.push(request) } as unknown as Transport
  const timed = timedTransport(transport, 10_000)
  await timed.request({ url: 'https://s/api/v1/nodes/n' })
  await timed.request({ url: 'https://s/api/v1/nodes/n?resourceVersion=0', method: 'GET' })
  assert.deepEqual(sent, [
    { url: 'https://s/api/v1/nodes/n?timeout=10s', timeoutMs: 10_000 },
    { url: 'https://s/api/v1/nodes/n?resourceVersion=0&timeout=10s', method: 'GET', timeoutMs: 10_000 },
  ])
})
