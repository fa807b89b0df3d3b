/** Tests shared informers on a complete API server with a virtual clock: storage, indexes and resyncs. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type ConfigMap, ConfigMaps } from '#apis/core/v1.ts'
import { ApiClient, type Selection } from '#client/api-client.ts'
import { Informers } from '#client/informers.ts'
import { follow } from '#client/reflector.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
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
  for (const name of ['a', 'b', 'c']) {
    const labels = { app: name === 'c' ? 'other' : 'mine' }
    await client.create(ConfigMaps, {
      metadata: { namespace, name, labels },
      data: { colour: name === 'a' ? 'red' : 'blue' },
    })
  }
})
after(() => plane.stop())

describe('shared informers', () => {
  it('store transformed objects once, and find them by index', async () => {
    const stop = new AbortController()
    const informers = new Informers({
      client,
      random: createSeededRandom(1),
      signal: stop.signal,
      onError: (error) => assert.fail(error as Error),
      tailor: () => ({
        selection: { labelSelector: 'app=mine' },
        transform: ({ metadata: { managedFields: _dropped, ...metadata }, ...rest }: KubeObject) => ({
          ...rest,
          metadata,
        }),
        indexes: { colour: (object) => [(object as ConfigMap).data?.['colour'] ?? ''] },
      }),
    })
    const informer = informers.of(ConfigMaps)
    assert.equal(informers.of(ConfigMaps), informer)
    await clock.advance(1000)
    await informers.synced([ConfigMaps])
    assert.deepEqual([...informer.list()].map(({ metadata }) => metadata.name ?? '').sort(), ['a', 'b'])
    assert.deepEqual(
      informer.by('colour', 'red').map(({ metadata }) => metadata.name),
      ['a'],
    )
    assert.ok([...informer.list()].every(({ metadata }) => metadata.managedFields === undefined))
    let told = 0
    const end = informer.listen({ updated: () => void told++ }, 60_000)
    await clock.advance(180_000)
    end()
    assert.equal(told, 6)
    stop.abort()
    await clock.advance(1000)
    await informers.ended()
  })
})

describe('informers of one process', () => {
  it('share decoded objects, but separate watches do not', async () => {
    const stop = new AbortController()
    const { signal } = stop
    const onError = (error: unknown): void => assert.fail(error as Error)
    const [one, other] = [1, 2].map(
      (seed) => new Informers({ client, random: createSeededRandom(seed), signal, onError }),
    )
    const kinds = [one, other].map((informers) => informers?.of(ConfigMaps))
    await clock.advance(1000)
    const watched: ConfigMap[] = []
    const watching = (async () => {
      for await (const { object } of client.watch(ConfigMaps, { namespace, signal })) watched.push(object)
    })().catch(() => undefined)
    const followed: ConfigMap[] = []
    const following = follow(
      { client, kind: ConfigMaps, random: createSeededRandom(3), signal },
      { replace: () => undefined, change: ({ object }) => void followed.push(object), failed: onError },
    )
    await clock.advance(1000)
    await client.create(ConfigMaps, { metadata: { namespace, name: 'd' }, data: { colour: 'green' } })
    await clock.advance(1000)
    const [first, second] = kinds.map((informer) => informer?.get(`${namespace}/d`)?.data)
    assert.deepEqual(first, { colour: 'green' })
    assert.equal(first, second)
    for (const last of [watched, followed].map((objects) => objects.at(-1)?.data ?? {})) {
      assert.deepEqual(last, first)
      last['colour'] = 'grey'
      assert.deepEqual(first, { colour: 'green' })
    }
    stop.abort()
    await clock.advance(1000)
    await Promise.all([watching, following, one?.ended(), other?.ended()])
    await client.delete(ConfigMaps, { namespace, name: 'd' })
  })

  it('share objects that were created at the same moment, also with a selector', async () => {
    const stop = new AbortController()
    const informersOf = (seed: number, selection: Selection): Informers =>
      new Informers({
        client,
        random: createSeededRandom(seed),
        signal: stop.signal,
        onError: (error) => assert.fail(error as Error),
        tailor: () => ({ selection }),
      })
    const both = [informersOf(1, {}), informersOf(2, { labelSelector: 'side=left' })]
    const [all, left] = both.map((informers) => informers.of(ConfigMaps))
    await clock.advance(1000)
    const sides = ['left', 'right']
    await Promise.all(
      sides.map((side) =>
        client.create(ConfigMaps, { metadata: { namespace, name: side, labels: { side } }, data: { side } }),
      ),
    )
    await clock.advance(1000)
    assert.deepEqual(all?.get(`${namespace}/right`)?.data, { side: 'right' })
    assert.deepEqual(all?.get(`${namespace}/left`)?.data, { side: 'left' })
    assert.equal(all?.get(`${namespace}/left`)?.data, left?.get(`${namespace}/left`)?.data)
    stop.abort()
    await clock.advance(1000)
    await Promise.all(both.map((informers) => informers.ended()))
    for (const name of sides) await client.delete(ConfigMaps, { namespace, name })
  })
})

describe('dry run of the API client', () => {
  it('returns the result and stores nothing', async () => {
    const dryRun = ['All']
    const where = { namespace, name: 'never' }
    const made = await client.create(ConfigMaps, { metadata: where }, { dryRun })
    assert.ok(made.metadata.uid)
    await assert.rejects(client.get(ConfigMaps, where), isNotFound)
    const applied = await client.apply(
      ConfigMaps,
      { metadata: { namespace, name: 'a' }, data: { colour: 'green' } },
      { fieldManager: 'x', force: true, dryRun },
    )
    assert.equal(applied.data?.['colour'], 'green')
    await client.delete(ConfigMaps, { namespace, name: 'a' }, { dryRun })
    assert.equal((await client.get(ConfigMaps, { namespace, name: 'a' })).data?.['colour'], 'red')
  })
})
