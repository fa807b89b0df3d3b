/** Tests waiting for objects on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type ConfigMap, ConfigMaps } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { until, type UntilOptions, UntilTimeout } from '#client/until.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const namespace = 'default'
const ADMIN = { name: 'tester', uid: '', groups: ['system:masters'], extra: {} }
let clock: VirtualClock
let plane: ControlPlane
let client: ApiClient

before(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock })
  client = new ApiClient({ transport: plane.running.server.clientAs(ADMIN), clock, userAgent: 'tester/v1' })
})
after(() => plane.stop())

const waitFor = (name: string, more: Partial<UntilOptions<ConfigMap>> = {}): UntilOptions<ConfigMap> => ({
  client,
  kind: ConfigMaps,
  namespace,
  name,
  random: createSeededRandom(1),
  ...more,
})

describe('until() of the API client', () => {
  it('resolves at once if the condition is already true', async () => {
    await client.create(ConfigMaps, { metadata: { namespace, name: 'a' }, data: { is: 'so' } })
    const found = until(waitFor('a'), (one) => one?.data?.['is'] === 'so')
    await clock.advance(1000)
    assert.equal((await found)?.metadata.name, 'a')
  })

  it('resolves when the condition becomes true, and when the object is deleted', async () => {
    const seen: (string | undefined)[] = []
    const found = until(waitFor('b'), (one) => {
      seen.push(one?.data?.['step'])
      return one?.data?.['step'] === '2'
    })
    await clock.advance(1000)
    await client.create(ConfigMaps, { metadata: { namespace, name: 'b' }, data: { step: '1' } })
    await clock.advance(1000)
    await client.patch(ConfigMaps, { namespace, name: 'b' }, { type: 'merge', value: { data: { step: '2' } } })
    await clock.advance(1000)
    await found
    assert.deepEqual(seen, [undefined, '1', '2'])
    const gone = until(waitFor('b'), (one) => one === undefined)
    await clock.advance(1000)
    await client.delete(ConfigMaps, { namespace, name: 'b' })
    await clock.advance(1000)
    assert.equal(await gone, undefined)
  })

  it("rejects on a timeout, with the signal's reason, and with an error of the callback", async () => {
    const late = assert.rejects(
      until(waitFor('c', { timeoutMs: 60_000 }), (one) => one !== undefined),
      UntilTimeout,
    )
    await clock.advance(61_000)
    await late
    const stop = new AbortController()
    const stopped = assert.rejects(
      until(waitFor('c', { signal: stop.signal }), () => false),
      new Error('enough'),
    )
    await clock.advance(1000)
    stop.abort(new Error('enough'))
    await clock.advance(1000)
    await stopped
    const thrown = assert.rejects(
      until(waitFor('c'), () => {
        throw new Error('no')
      }),
      new Error('no'),
    )
    await clock.advance(1000)
    await thrown
  })
})
