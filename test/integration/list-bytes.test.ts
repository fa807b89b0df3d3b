/**
 * Tests that lists assembled from cached bytes equal single reads of the same objects, in every format and during
 * changes.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { schemaFor } from '#apis/schemas.ts'
import { realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { fetchFrom } from './fetch-from.ts'

/** Ages must not change between two lists that are compared. */
const NOW_MS = Date.UTC(2026, 0, 2)

interface Item {
  kind?: string
  apiVersion?: string
  metadata: { name: string; namespace: string; resourceVersion: string; labels: Record<string, string> }
}
interface List {
  metadata: { resourceVersion: string }
  items: Item[]
}

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane({ clock: { ...realClock, now: () => NOW_MS } })
  for (const name of NAMESPACES) await plane.request('POST', '/api/v1/namespaces', { metadata: { name } })
})
after(() => plane.stop())

const NAMESPACES = ['a', 'b', 'c']
const PER_NAMESPACE = 300
const TURNS = 12
const ALL = '/api/v1/secrets'
const path = (namespace: string, name = ''): string => `/api/v1/namespaces/${namespace}/secrets${name}`
const random = createSeededRandom(5)
/** The server's response to the last write of each object, without kind and apiVersion, as in lists. */
const model = new Map<string, Item>()

async function write(namespace: string, name: string, isThere: boolean): Promise<void> {
  const labels = { color: random.int(2) === 0 ? 'red' : 'blue' }
  // Not all ASCII, and enough of it for lists to be worth compressing.
  const annotations = { text: `größe ${random.float()} ${'x'.repeat(500)}` }
  const body = { metadata: { name, labels, annotations } }
  const answer = isThere
    ? await plane.request('PUT', path(namespace, `/${name}`), body)
    : await plane.request('POST', path(namespace), body)
  assert.ok(answer.status < 300, answer.text)
  const { kind: _kind, apiVersion: _apiVersion, ...item } = answer.json() as unknown as Item
  model.set(`${namespace}/${name}`, item)
}

async function remove(namespace: string, name: string): Promise<void> {
  assert.equal((await plane.request('DELETE', path(namespace, `/${name}`))).status, 200)
  model.delete(`${namespace}/${name}`)
}

function expected(keeps: (item: Item) => boolean): Item[] {
  const sorted = [...model].sort(([a], [b]) => (a < b ? -1 : 1))
  return sorted.map(([, item]) => item).filter(keeps)
}

/** Requests the list twice, because the second response comes from the cache. Both must be equal, compressed or not. */
async function list(url: string, headers: Record<string, string> = {}): Promise<Buffer> {
  const get = async (more: Record<string, string>): Promise<Buffer> => {
    const answer = await fetchFrom(plane, url, { headers: { accept: 'application/json', ...headers, ...more } })
    assert.equal(answer.status, 200)
    return Buffer.from(await answer.arrayBuffer())
  }
  const plain = await get({ 'accept-encoding': 'identity' })
  assert.ok(plain.equals(await get({ 'accept-encoding': 'gzip' })), 'Compressed it is something else')
  assert.ok(plain.equals(await get({ 'accept-encoding': 'identity' })), 'The second time it is something else')
  return plain
}

const parsed = async (url: string, headers?: Record<string, string>): Promise<List> =>
  JSON.parse((await list(url, headers)).toString()) as List

async function compare(): Promise<void> {
  const all = expected(() => true)
  const json = await parsed(ALL)
  assert.deepEqual(json.items, all)
  assert.equal(json.metadata.resourceVersion, String(plane.running.server.registry.services.cache.revision))
  assert.deepEqual(
    (await parsed(path('b'))).items,
    all.filter(({ metadata }) => metadata.namespace === 'b'),
  )
  assert.deepEqual(
    (await parsed(`${ALL}?labelSelector=color%3Dred`)).items,
    all.filter(({ metadata }) => metadata.labels['color'] === 'red'),
  )
  assert.deepEqual((await parsed(`${ALL}?limit=77`)).items, all.slice(0, 77))
  const partial = await parsed(ALL, { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' })
  const typeMeta = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' }
  assert.deepEqual(
    partial.items,
    all.map(({ metadata }) => ({ ...typeMeta, metadata })),
  )
  const protobuf = 'application/vnd.kubernetes.protobuf'
  assert.deepEqual(fromProtobuf(await list(ALL, { accept: protobuf })).items, all)
  const partialProtobuf = `${protobuf};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io`
  assert.deepEqual(
    fromProtobuf(await list(path('c'), { accept: partialProtobuf })).items.map(({ metadata }) => metadata),
    all.map(({ metadata }) => metadata).filter(({ namespace }) => namespace === 'c'),
  )
}

function fromProtobuf(bytes: Buffer): List {
  const { object } = decodeObject(bytes, 'application/vnd.kubernetes.protobuf', { schemaFor })
  return object as unknown as List
}

describe('lists from cached JSON', () => {
  it('contain the current objects in every format, with and without the cache', async () => {
    for (const namespace of NAMESPACES) {
      await Promise.all(Array.from({ length: PER_NAMESPACE }, (_, at) => write(namespace, `o${at}`, false)))
    }
    await compare()
    for (let turn = 0; turn < TURNS; turn++) {
      const namespace = NAMESPACES[random.int(NAMESPACES.length)] ?? 'a'
      const name = `o${random.int(PER_NAMESPACE * 2)}`
      const isThere = model.has(`${namespace}/${name}`)
      if (isThere && random.int(2) === 0) await remove(namespace, name)
      else await write(namespace, name, isThere)
      await compare()
    }
  })

  it('are compressed only if they are large and the client accepts gzip', async () => {
    const get = (url: string, coding: string): Promise<Response> =>
      fetchFrom(plane, url, { headers: { accept: 'application/json', 'accept-encoding': coding } })
    for (const [url, coding, is] of [
      [ALL, 'deflate, gzip', true],
      [ALL, 'br', false],
      [`${ALL}?limit=2`, 'gzip', false],
      [`${ALL}?limit=400`, 'gzip', true],
      [`${ALL}?pretty=true`, 'gzip', true],
    ] as const) {
      const { headers, body } = await get(url, coding)
      await body?.cancel()
      assert.deepEqual(
        [headers.get('content-encoding'), headers.get('vary')],
        is ? ['gzip', 'Accept-Encoding'] : [null, null],
        `${url} ${coding}`,
      )
      assert.notEqual(headers.get('content-length'), null)
    }
  })

  it('have the same table rows, encoded together or one by one', async () => {
    const table = 'as=Table;v=v1;g=meta.k8s.io'
    for (const include of ['None', 'Metadata', 'Object']) {
      const url = `${path('b')}?includeObject=${include}`
      const rows = await list(url, { accept: `application/json;${table}` })
      const whole = await list(`${url}&pretty=true`, { accept: `application/json;${table}` })
      const ageless = (text: Buffer): unknown =>
        JSON.parse(text.toString(), (key, value: unknown) =>
          key === 'cells' ? (value as unknown[]).slice(0, -1) : value,
        )
      assert.deepEqual(ageless(rows), ageless(whole))
    }
  })
})
