/** Tests a control plane with a virtual clock: it is fast and deterministic with every store. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'

import { identityOf } from '#apiserver/bootstrap/identity-lease.ts'
import { createVirtualClock } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import { startControlPlane } from '#testing/control-plane.ts'

const LEASE = `/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/${identityOf(hostname())}`
const EVENTS = '/api/v1/namespaces/default/events'
const START_MS = Date.UTC(2026, 0, 1)
const RENEW_MS = 10_000
const TURNS = 6
const TTL_MS = 120_000

async function get(client: Pick<HttpClient, 'request'>, url: string): Promise<{ status: number; json: () => unknown }> {
  const answer = await client.request({ url })
  const text = await answer.text(1 << 20)
  return { status: answer.status, json: () => JSON.parse(text) as unknown }
}

/** The events with their times. */
async function live(datastore: string): Promise<string[]> {
  const clock = createVirtualClock(START_MS)
  await using plane = await startControlPlane({ clock, settings: { datastore, 'event-ttl': TTL_MS } })
  const client = plane.running.server.clientAs({ name: 'me', uid: '', groups: ['system:masters'], extra: {} })
  const seen: string[] = []
  const event = { metadata: { name: 'e', namespace: 'default' }, involvedObject: { namespace: 'default' } }
  const headers = { 'content-type': 'application/json' }
  const made = await client.request({ method: 'POST', url: EVENTS, headers, body: JSON.stringify(event) })
  assert.equal(made.status, 201, await made.text(1 << 20))
  for (let turn = 0; turn < TURNS; turn++) {
    await clock.advance(RENEW_MS)
    const { spec } = (await get(client, LEASE)).json() as { spec: { renewTime: string } }
    seen.push(`${(Date.parse(spec.renewTime) - START_MS) / 1000} s: renewed`)
  }
  await clock.advance(TTL_MS - TURNS * RENEW_MS - 1)
  seen.push(`before its time: ${(await get(client, `${EVENTS}/e`)).status}`)
  await clock.advance(RENEW_MS)
  seen.push(`after its time: ${(await get(client, `${EVENTS}/e`)).status}`)
  return seen
}

describe('control plane in virtual time', () => {
  const dir = mkdtempSync(join(tmpdir(), 'hyperkube-virtual-'))
  after(() => rmSync(dir, { recursive: true, force: true }))
  for (const [name, datastore] of [
    ['memory', 'memory'],
    ['SQLite', `sqlite:${join(dir, 'store.db')}`],
  ] as const) {
    it(`runs timers at their virtual time, with objects in ${name}`, async () => {
      const expected = Array.from({ length: TURNS }, (_, turn) => `${(turn + 1) * 10} s: renewed`)
      assert.deepEqual(await live(datastore), [...expected, 'before its time: 200', 'after its time: 404'])
    })
  }
})
