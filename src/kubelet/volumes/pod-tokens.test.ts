import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { timeOf } from '#meta/time.ts'

import { PodTokens } from './pod-tokens.ts'

const POD = {
  metadata: { namespace: 'ns', name: 'p', uid: 'u1' },
  spec: { serviceAccountName: 'sa', containers: [] },
} as unknown as Pod

interface Bed {
  readonly clock: VirtualClock
  readonly tokens: PodTokens
  readonly requests: { readonly path: string; readonly spec: Record<string, unknown> }[]
  readonly errors: unknown[]
  readonly fault: { isDown: boolean }
}

/** A server that counts the tokens it issues. */
function bedOf(): Bed {
  const clock = createVirtualClock()
  const requests: Bed['requests'] = []
  const errors: unknown[] = []
  const fault = { isDown: false }
  const client = new ApiClient({
    clock,
    userAgent: 'kubelet',
    transport: {
      request: async ({ url, body }) => {
        if (fault.isDown) throw new Error('connection refused')
        const sent = JSON.parse(body as string) as { spec: Record<string, unknown> }
        requests.push({ path: new URL(url).pathname, spec: sent.spec })
        const lifeMs = Number(sent.spec['expirationSeconds'] ?? 3600) * 1000
        const status = { token: `t${requests.length}`, expirationTimestamp: timeOf(clock.now() + lifeMs) }
        const bytes = Buffer.from(JSON.stringify({ metadata: {}, spec: sent.spec, status }))
        return {
          status: 201,
          headers: {},
          version: '1.1',
          body: (async function* () {
            yield bytes
          })(),
          bytes: async () => bytes,
          text: async () => bytes.toString(),
          discard: () => undefined,
        }
      },
    },
  })
  const tokens = new PodTokens({ client, random: createSeededRandom(1), onError: (error) => errors.push(error) })
  return { clock, tokens, requests, errors, fault }
}

const request = (audience = '', expirationSeconds = 3607): Parameters<PodTokens['get']>[0] => ({
  pod: POD,
  audience,
  expirationSeconds,
})

test('a service account token is bound to its pod, cached, and renewed when a fifth of its lifetime is left', async () => {
  const { clock, tokens, requests } = bedOf()
  assert.equal(await tokens.get(request()), 't1')
  assert.deepEqual(requests, [
    {
      path: '/api/v1/namespaces/ns/serviceaccounts/sa/token',
      spec: {
        audiences: null,
        expirationSeconds: 3607,
        boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: 'u1' },
      },
    },
  ])
  await clock.advance(2_800_000)
  assert.equal(await tokens.get(request()), 't1')
  assert.equal(await tokens.get(request('vault')), 't2')
  assert.deepEqual(requests[1]?.spec['audiences'], ['vault'])
  await clock.advance(90_000)
  assert.equal(await tokens.get(request()), 't3')
})

test('a long-lived service account token is renewed each day', async () => {
  const { clock, tokens } = bedOf()
  assert.equal(await tokens.get(request('', 30 * 86_400)), 't1')
  await clock.advance(86_380_000)
  assert.equal(await tokens.get(request('', 30 * 86_400)), 't1')
  await clock.advance(30_000)
  assert.equal(await tokens.get(request('', 30 * 86_400)), 't2')
})

test('without an API server a pod uses its service account token until that expires, and then get() fails', async () => {
  const { clock, tokens, errors, fault } = bedOf()
  fault.isDown = true
  await assert.rejects(tokens.get(request()), { message: 'failed to fetch token: connection refused' })
  fault.isDown = false
  assert.equal(await tokens.get(request()), 't1')
  fault.isDown = true
  await clock.advance(3_500_000)
  assert.equal(await tokens.get(request()), 't1')
  assert.equal(errors.length, 1)
  await clock.advance(200_000)
  await assert.rejects(tokens.get(request()), /expired and refresh failed: connection refused/)
  fault.isDown = false
  tokens.forget('u1')
  assert.equal(await tokens.get(request()), 't2')
})
