/**
 * Tests the API client against a complete API server, over HTTPS and in process: verbs, reflector, informers, errors.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { ConfigMaps, Namespaces, Pods } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { discover, KindMap } from '#client/discovery.ts'
import { Informer } from '#client/informer.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { createSeededRandom } from '#lib/random.ts'
import { isAlreadyExists, isConflict, isForbidden, isInvalid, isNotFound } from '#meta/status.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const ADMIN = { name: 'tester', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }

const random = createSeededRandom(1)
let plane: ControlPlane
let https: HttpClient

before(async () => {
  plane = await startControlPlane()
  https = createHttpClient({ clock: realClock, tls: { ca: plane.ca } })
})

after(async () => {
  https.close()
  await plane.stop()
})

const overHttps = (): ApiClient =>
  new ApiClient({
    transport: https,
    server: plane.url,
    clock: realClock,
    userAgent: 'tester/v1',
    bearerToken: () => Promise.resolve(plane.token),
  })

const inProcess = (user = ADMIN): ApiClient =>
  new ApiClient({ transport: plane.running.server.clientAs(user), clock: realClock, userAgent: 'tester/v1' })

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

for (const [how, open] of [
  ['over HTTPS', overHttps],
  ['inside the process', () => inProcess()],
] as const) {
  describe(`API client ${how}`, () => {
    const namespace = how === 'over HTTPS' ? 'https' : 'process'
    const where = (name: string): { namespace: string; name: string } => ({ namespace, name })
    let client: ApiClient

    before(async () => {
      client = open()
      await client.create(Namespaces, { metadata: { name: namespace } })
    })

    it('creates, gets, updates, patches, applies, lists and deletes objects', async () => {
      const made = await client.create(ConfigMaps, { metadata: where('a'), data: { x: '1' } })
      assert.equal(made.kind, 'ConfigMap')
      assert.equal(made.metadata.managedFields?.[0]?.manager, 'tester')
      const changed = await client.update(ConfigMaps, { ...made, data: { x: '2' } })
      await assert.rejects(client.update(ConfigMaps, { ...made, data: { x: '3' } }), isConflict)
      await client.patch(ConfigMaps, where('a'), { type: 'merge', value: { data: { y: '1' } } })
      await client.patch(ConfigMaps, where('a'), { type: 'json', value: [{ op: 'remove', path: '/data/x' }] })
      const applied = await client.apply(
        ConfigMaps,
        { metadata: where('a'), data: { z: '1' } },
        { fieldManager: 'applier' },
      )
      assert.deepEqual(applied.data, { y: '1', z: '1' })
      assert.deepEqual((await client.get(ConfigMaps, where('a'))).data, { y: '1', z: '1' })
      const { items } = await client.list(ConfigMaps, { namespace, fieldSelector: 'metadata.name=a' })
      assert.deepEqual(
        items.map(({ metadata }) => metadata.uid),
        [changed.metadata.uid],
      )
      await client.delete(ConfigMaps, where('a'), { preconditions: { uid: changed.metadata.uid ?? '' } })
      await assert.rejects(client.get(ConfigMaps, where('a')), isNotFound)
    })

    it('throws StatusError with the Status of the server', async () => {
      await client.create(ConfigMaps, { metadata: where('b') })
      await assert.rejects(client.create(ConfigMaps, { metadata: where('b') }), isAlreadyExists)
      await assert.rejects(client.create(ConfigMaps, { metadata: where('_') }), isInvalid)
      await client.create(ConfigMaps, { metadata: where('dry') }, { dryRun: ['All'] })
      await assert.rejects(client.get(ConfigMaps, where('dry')), isNotFound)
    })

    it('keeps an indexed cache of objects and calls handlers in order', async () => {
      const told: string[] = []
      const stop = new AbortController()
      const informer = new Informer({
        client,
        kind: ConfigMaps,
        random,
        selection: { namespace, labelSelector: 'watched' },
        indexes: { colour: ({ data }) => (data?.['colour'] === undefined ? [] : [data['colour']]) },
        onError: (error) => assert.fail(String(error)),
      })
      informer.listen({
        added: ({ metadata }) => void told.push(`+${metadata.name}`),
        updated: ({ metadata }) => void told.push(`~${metadata.name}`),
        deleted: ({ metadata }) => void told.push(`-${metadata.name}`),
      })
      const labels = { watched: '' }
      await client.create(ConfigMaps, { metadata: { ...where('one'), labels }, data: { colour: 'red' } })
      const running = informer.run(stop.signal)
      await informer.synced
      await client.create(ConfigMaps, { metadata: { ...where('two'), labels }, data: { colour: 'red' } })
      await client.patch(ConfigMaps, where('one'), { type: 'merge', value: { data: { colour: 'blue' } } })
      await client.patch(ConfigMaps, where('two'), { type: 'merge', value: { metadata: { labels: null } } })
      await client.delete(ConfigMaps, where('one'))
      await until(() => told.length === 5)
      assert.deepEqual(told, ['+one', '+two', '~one', '-two', '-one'])
      assert.deepEqual([informer.size, informer.by('colour', 'red'), informer.by('colour', 'blue')], [0, [], []])
      stop.abort()
      await running
    })
  })
}

describe('API client in the process of the server', () => {
  it('has the identity and permissions of its user', async () => {
    const nobody = inProcess({ name: 'nobody', uid: '', groups: ['system:authenticated'], extra: {} })
    await assert.rejects(nobody.list(Pods, { namespace: 'default' }), (error: Error) => {
      assert.match(
        error.message,
        /User "nobody" cannot list resource "pods" in API group "" in the namespace "default"/,
      )
      return isForbidden(error)
    })
  })
})

describe('discovery of the API client', () => {
  it('finds kinds by resource name, short name and object', async () => {
    const { kinds, unknown } = await discover(inProcess())
    const map = new KindMap(kinds)
    assert.deepEqual(unknown, [])
    for (const name of ['po', 'pods', 'Pod', 'pods.v1']) assert.equal(map.named(name)?.kind, 'Pod', name)
    assert.equal(map.named('deploy.apps')?.version, 'v1')
    assert.equal(map.named('hpa')?.version, 'v2')
    assert.equal(map.named('hpa.v1.autoscaling')?.version, 'v1')
    assert.equal(map.ofObject({ apiVersion: 'apps/v1', kind: 'ReplicaSet' })?.plural, 'replicasets')
    assert.equal(map.ofKind({ group: 'batch', kind: 'Job' })?.namespaced, true)
    assert.equal(map.named('nonsense'), undefined)
  })
})
