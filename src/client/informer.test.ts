import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type ConfigMap, ConfigMaps, Secrets } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import type { HttpRequest } from '#lib/http/client.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { createSeededRandom } from '#lib/random.ts'

import { ApiClient } from './api-client.ts'
import { Informer } from './informer.ts'
import { Informers } from './informers.ts'

const clock = createVirtualClock()

function configMap(version: number, uid = 'u'): ConfigMap {
  const metadata = { name: 'a', namespace: 'b', uid, resourceVersion: String(version) }
  return { kind: 'ConfigMap', apiVersion: 'v1', metadata }
}

const END = {
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: '1', annotations: { 'k8s.io/initial-events-end': 'true' } } },
}

/** An informer with a watch that receives what `send` is given, and the notifications of its listener. */
async function watching(...before: readonly ConfigMap[]): Promise<{
  readonly informer: Informer<ConfigMap>
  readonly notifications: string[]
  readonly send: (type: string, object: object) => Promise<void>
}> {
  const { readable, writable } = new TransformStream<Buffer, Buffer>()
  const writer = writable.getWriter()
  const body = readable as AsyncIterable<Buffer>
  const answer = { status: 200, headers: {}, body, discard: () => undefined } as unknown as HttpResponse
  const client = new ApiClient({ transport: { request: () => Promise.resolve(answer) }, clock, userAgent: 'test' })
  const options = { client, kind: ConfigMaps, random: createSeededRandom(1), onError: () => undefined }
  const informer = new Informer<ConfigMap>(options)
  const notifications: string[] = []
  informer.listen({
    added: ({ metadata }) => notifications.push(`added ${metadata.resourceVersion}`),
    updated: ({ metadata }, old) =>
      notifications.push(`${old.metadata.resourceVersion} is ${metadata.resourceVersion}`),
    deleted: ({ metadata }) => notifications.push(`deleted ${metadata.resourceVersion}`),
  })
  void informer.run(new AbortController().signal)
  const send = async (type: string, object: object): Promise<void> => {
    await writer.write(Buffer.from(`${JSON.stringify({ type, object })}\n`))
    await clock.advance(1)
  }
  for (const object of before) await send('ADDED', object)
  await send(END.type, END.object)
  return { informer, notifications, send }
}

describe('Informer during its initial list', () => {
  it('shares equal parts of objects, and calls its handlers after the whole list', async () => {
    const owned = (name: string): ConfigMap => {
      const map = configMap(1, name)
      return { ...map, metadata: { ...map.metadata, name, labels: { app: 'web' } }, data: { text: 'long' } }
    }
    const { informer, notifications } = await watching(owned('a'), owned('b'))
    assert.deepEqual(notifications, ['added 1', 'added 1'])
    const [one, other] = [informer.get('b/a'), informer.get('b/b')]
    assert.notEqual(one?.metadata.name, other?.metadata.name)
    assert.equal(one?.data, other?.data)
    assert.equal(one?.metadata.labels, other?.metadata.labels)
  })
})

describe('Informer.learn', () => {
  it('adds a written object to the cache at once, and ignores older events afterwards', async () => {
    const { informer, notifications, send } = await watching()
    await send('ADDED', configMap(2))
    informer.learn(configMap(5))
    assert.equal(informer.get('b/a')?.metadata.resourceVersion, '5')
    for (const version of [3, 5, 6]) await send('MODIFIED', configMap(version))
    await send('DELETED', configMap(7))
    assert.deepEqual(notifications, ['added 2', '2 is 5', '5 is 6', 'deleted 7'])
  })

  it('ignores deleted objects, other objects of the same name and older versions', async () => {
    const { informer, notifications, send } = await watching()
    informer.learn(configMap(5))
    await send('ADDED', configMap(8, 'other'))
    informer.learn(configMap(9))
    informer.learn(configMap(7, 'other'))
    assert.deepEqual(notifications, ['added 8'])
  })
})

describe('Informers', () => {
  it('use one watch per kind for whole objects and one for metadata, and stop it with the last listener', async () => {
    const requests: string[] = []
    const open = new Set<string>()
    const transport = {
      request: ({ url, headers, signal }: HttpRequest): Promise<HttpResponse> => {
        const what = `${String(url).split('/').at(-1)?.split('?')[0]}${headers?.['accept']?.includes('Partial') ? ' metadata' : ''}`
        requests.push(what)
        open.add(what)
        const { readable, writable } = new TransformStream<Buffer, Buffer>()
        signal?.addEventListener('abort', () => open.delete(what))
        void writable.getWriter().write(Buffer.from(`${JSON.stringify(END)}\n`))
        return Promise.resolve({ status: 200, headers: {}, body: readable } as unknown as HttpResponse)
      },
    }
    const client = new ApiClient({ transport, clock, userAgent: 'test' })
    const { signal } = new AbortController()
    const informers = new Informers({ client, random: createSeededRandom(1), signal, onError: () => undefined })
    const whole = informers.of(ConfigMaps)
    const watches = [ConfigMaps, Secrets, Secrets].map((kind) => informers.metadataOf(kind, {}))
    await clock.advance(1)
    assert.equal(watches[0]?.informer, whole)
    assert.deepEqual(requests, ['configmaps', 'secrets metadata'])
    for (const watch of watches) {
      assert.deepEqual([...open], ['configmaps', 'secrets metadata'])
      watch.stop()
    }
    assert.deepEqual([...open], ['configmaps'])
  })
})
