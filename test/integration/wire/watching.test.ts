/** Tests WATCH over HTTP: encodings, bookmarks, timeouts, initial events and selectors. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Clock, realClock } from '#lib/clock.ts'

import {
  fieldsOf,
  type Got,
  type Json,
  ofOurs,
  openEnvelope,
  PATCHES,
  PROTOBUF,
  refused,
  startWire,
  TABLE,
  type Wire,
} from './server.ts'

let wire: Wire
before(async () => {
  wire = await startWire()
})
after(() => wire.stop())

async function freshMaps(...names: readonly string[]): Promise<string> {
  const maps = `/api/v1/namespaces/${await wire.namespace()}/configmaps`
  for (const name of names) await wire.must('POST', maps, { metadata: { name, labels: { color: 'red' } } })
  return maps
}
const get = (path: string, accept?: string): Promise<Got> =>
  wire.request('GET', path, accept === undefined ? {} : { headers: { accept } })
const versionOf = async (maps: string): Promise<string> =>
  (await wire.must('GET', maps)).metadata.resourceVersion as string
const WATCH_LIST = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
const INITIAL_END = { 'k8s.io/initial-events-end': 'true' }

/** Events as protobuf sends them: the length in four bytes, then type and the object in its envelope. */
function framesOf(bytes: Buffer): { type: string; kind: string; raw: Buffer }[] {
  const frames = []
  for (let at = 0; at < bytes.length;) {
    const end = at + 4 + bytes.readUInt32BE(at)
    assert.ok(end <= bytes.length, 'A frame is cut off')
    const event = fieldsOf(bytes.subarray(at + 4, end))
    const object = fieldsOf(event.get(2)?.[0] as Buffer)
    frames.push({ type: String(event.get(1)?.[0]), ...openEnvelope(object.get(1)?.[0] as Buffer) })
    at = end
  }
  return frames
}

describe('watch stream', { concurrency: 8 }, () => {
  for (const http2 of [false, true]) {
    it(`has one JSON event per line and is never compressed, over HTTP/${http2 ? 2 : 1.1}`, async () => {
      const maps = await freshMaps('a', 'b')
      const got = await wire.request('GET', `${maps}?watch=1&timeoutSeconds=1`, {
        http2,
        headers: { 'accept-encoding': 'gzip' },
      })
      assert.deepEqual([got.status, got.headers['content-type']], [200, 'application/json'])
      assert.equal(got.headers['content-encoding'], undefined)
      const lines = got.text.split('\n')
      assert.equal(lines.length, 3)
      assert.match(
        lines[0] ?? '',
        /^\{"type":"ADDED","object":\{"kind":"ConfigMap","apiVersion":"v1","metadata":\{"name":"a"/,
      )
      assert.equal(lines[2], '')
    })
  }

  it('has protobuf events with a length prefix and an envelope', async () => {
    const maps = await freshMaps('a')
    for (const accept of [PROTOBUF, `${PROTOBUF};stream=watch`]) {
      const got = await get(`${maps}?watch=1&timeoutSeconds=1`, accept)
      assert.equal(got.headers['content-type'], `${PROTOBUF};stream=watch`)
      const [event, ...more] = framesOf(got.bytes)
      assert.deepEqual([event?.type, event?.kind, more.length], ['ADDED', 'ConfigMap', 0])
    }
  })

  it('is refused in YAML', async () => {
    const maps = await freshMaps()
    const got = await get(`${maps}?watch=1`, 'application/yaml')
    assert.equal(got.status, 406)
    assert.match(
      got.text,
      /^apiVersion: v1\ncode: 406\nkind: Status\nmessage: .only the following media types are accepted: /,
    )
    assert.match(got.text, /application\/json;stream=watch,\s+application\/vnd\.kubernetes\.protobuf;stream=watch/)
  })

  it('ends only after timeoutSeconds, without an error, and ignores timeout', async () => {
    const maps = await freshMaps()
    const began = realClock.elapsed()
    for (const query of ['timeoutSeconds=1', 'timeoutSeconds=1&timeout=7m12s', 'timeoutSeconds=1&timeout=10ms']) {
      const got = await get(`${maps}?watch=1&resourceVersion=0&${query}`)
      assert.deepEqual([got.status, got.text], [200, ''], query)
    }
    assert.ok(realClock.elapsed() - began > 2500)
  })

  it('has a bookmark about once a minute, and a default timeout of 30 to 60 minutes', ofOurs, async () => {
    const delays: number[] = []
    const clock: Clock = {
      ...realClock,
      after(delayMs, task, options) {
        delays.push(delayMs)
        return realClock.after(delayMs === 60_000 ? 100 : delayMs, task, options)
      },
    }
    await using own = await startWire({ clock })
    const path = '/api/v1/namespaces/default/configmaps'
    const { metadata } = await own.must('GET', path)
    const from = `${path}?watch=1&resourceVersion=${metadata.resourceVersion}`
    const [mark] = await own.watch(`${from}&allowWatchBookmarks=true`, 1)
    assert.deepEqual([mark?.type, Object.keys(mark?.object)], ['BOOKMARK', ['kind', 'apiVersion', 'metadata']])
    assert.deepEqual(Object.keys(mark?.object.metadata), ['resourceVersion'])
    assert.ok(delays.some((delayMs) => delayMs >= 1_800_000 && delayMs < 3_600_000))
    assert.deepEqual(await own.watch(`${from}&timeoutSeconds=1`, 1), [])
  })

  it('has a bookmark shortly before its end', ofOurs, async () => {
    const maps = await freshMaps('a')
    const version = await versionOf(maps)
    const events = await wire.watch(
      `${maps}?watch=1&allowWatchBookmarks=true&resourceVersion=${version}&timeoutSeconds=3`,
      9,
    )
    assert.ok(events.length > 0)
    for (const { type, object } of events) {
      assert.deepEqual([type, object.kind, object.apiVersion], ['BOOKMARK', 'ConfigMap', 'v1'])
      assert.deepEqual(Object.keys(object.metadata), ['resourceVersion'])
    }
  })

  it('has table columns once, and whole or partial rows', async () => {
    const maps = await freshMaps('a', 'b')
    const events = await wire.watch(`${maps}?watch=1`, 2, { headers: { accept: TABLE } })
    assert.deepEqual(
      events.map(({ type, object }) => [type, object.kind, object.columnDefinitions?.length ?? null]),
      [
        ['ADDED', 'Table', 3],
        ['ADDED', 'Table', null],
      ],
    )
    assert.deepEqual(events[0]?.object.rows[0].cells.slice(0, 2), ['a', 0])
    assert.equal(events[0]?.object.rows[0].object.kind, 'PartialObjectMetadata')
    assert.match(
      (await get(`${maps}?watch=1&timeoutSeconds=1`, TABLE)).text.split('\n')[1] ?? '',
      /"columnDefinitions":null/,
    )
  })

  it('has partial objects in JSON and protobuf, including bookmarks', async () => {
    const maps = await freshMaps('a')
    const partial = 'as=PartialObjectMetadata;g=meta.k8s.io;v=v1'
    const events = await wire.watch(`${maps}?watch=1&${WATCH_LIST}`, 2, {
      headers: { accept: `application/json;${partial}` },
    })
    assert.deepEqual(
      events.map(({ type, object }) => [type, object.kind, object.apiVersion]),
      [
        ['ADDED', 'PartialObjectMetadata', 'meta.k8s.io/v1'],
        ['BOOKMARK', 'PartialObjectMetadata', 'meta.k8s.io/v1'],
      ],
    )
    assert.ok(!('data' in (events[0]?.object ?? {})))
    const got = await get(`${maps}?watch=1&timeoutSeconds=1&${WATCH_LIST}`, `${PROTOBUF};${partial}`)
    assert.deepEqual(
      framesOf(got.bytes)
        .slice(0, 2)
        .map(({ type, kind }) => [type, kind]),
      [
        ['ADDED', 'PartialObjectMetadata'],
        ['BOOKMARK', 'PartialObjectMetadata'],
      ],
    )
  })

  it('has the deprecated paths below /watch/, and watch=1 on a name is a plain GET', async () => {
    const maps = await freshMaps('a', 'b')
    const old = maps.replace('/api/v1/', '/api/v1/watch/')
    assert.deepEqual(
      (await wire.watch(old, 2)).map(({ type, object }) => [type, object.metadata.name]),
      [
        ['ADDED', 'a'],
        ['ADDED', 'b'],
      ],
    )
    assert.deepEqual(
      (await wire.watch(`${old}/b`, 1)).map(({ object }) => object.metadata.name),
      ['b'],
    )
    assert.equal((await get(`${maps}/a?watch=1`)).json().kind, 'ConfigMap')
  })
})

describe('start of a watch', { concurrency: 8 }, () => {
  it('sends existing objects first without resourceVersion or with 0, and later events with N', async () => {
    const maps = await freshMaps('a')
    const version = await versionOf(maps)
    await wire.must('POST', maps, { metadata: { name: 'b' } })
    for (const [query, expected] of [
      ['', ['ADDED a', 'ADDED b']],
      ['&resourceVersion=0', ['ADDED a', 'ADDED b']],
      [`&resourceVersion=${version}`, ['ADDED b']],
    ] as const) {
      const events = await wire.watch(`${maps}?watch=1&timeoutSeconds=1${query}`, 9)
      assert.deepEqual(
        events.map(({ type, object }) => `${type} ${object.metadata.name}`),
        expected,
      )
    }
  })

  it('ends initial events with a bookmark', async () => {
    const maps = await freshMaps('a')
    for (const query of [WATCH_LIST, 'allowWatchBookmarks=true', 'allowWatchBookmarks=true&resourceVersion=0']) {
      const [added, mark] = await wire.watch(`${maps}?watch=1&${query}`, 2)
      assert.equal(added?.type, 'ADDED')
      const { metadata, ...rest } = mark?.object ?? {}
      assert.deepEqual([mark?.type, rest.kind, rest.apiVersion], ['BOOKMARK', 'ConfigMap', 'v1'])
      assert.deepEqual(Object.keys(metadata).toSorted(), ['annotations', 'resourceVersion'])
      assert.deepEqual(metadata.annotations, INITIAL_END)
      assert.match(metadata.resourceVersion, /^\d+$/)
    }
    const text = (await get(`${maps}?watch=1&timeoutSeconds=1&${WATCH_LIST}`)).text.split('\n')[1]
    assert.match(
      text ?? '',
      /^\{"type":"BOOKMARK","object":\{"kind":"ConfigMap","apiVersion":"v1","metadata":\{"resourceVersion":"\d+","annotations":\{"k8s\.io\/initial-events-end":"true"\}\}\}\}$/,
    )
  })

  it('fails with 422 for sendInitialEvents with a wrong resourceVersionMatch, or on a list', async () => {
    const maps = await freshMaps()
    const invalid = 'ListOptions.meta.k8s.io "" is invalid: '
    for (const [query, text] of [
      [
        'watch=1&sendInitialEvents=true',
        'resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
      ],
      [
        'watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1',
        '[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]',
      ],
      [
        'watch=1&continue=x',
        'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided',
      ],
      ['sendInitialEvents=true', 'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list'],
    ] as const) {
      await refused(get(`${maps}?${query}`), 422, { reason: 'Invalid', message: invalid + text })
    }
  })

  it('has a separate revision for a deletion, and events for objects that leave or enter the selection', async () => {
    const maps = await freshMaps('a')
    const version = await versionOf(maps)
    const paint = (color: string): Promise<Json> =>
      wire.must('PATCH', `${maps}/a`, { metadata: { labels: { color } } }, { headers: PATCHES.merge })
    const blue = await paint('blue')
    const red = await paint('red')
    await wire.must('DELETE', `${maps}/a`)
    const after = await versionOf(maps)
    const all = await wire.watch(`${maps}?watch=1&resourceVersion=${version}`, 3)
    assert.deepEqual(
      all.map(({ type }) => type),
      ['MODIFIED', 'MODIFIED', 'DELETED'],
    )
    const deleted = all[2]?.object.metadata
    assert.ok(BigInt(deleted.resourceVersion) > BigInt(red.metadata.resourceVersion))
    assert.ok(BigInt(deleted.resourceVersion) <= BigInt(after))
    const reds = await wire.watch(`${maps}?watch=1&resourceVersion=${version}&labelSelector=color%3Dred`, 3)
    assert.deepEqual(
      reds.map(({ type, object }) => [type, object.metadata.resourceVersion, object.metadata.labels.color]),
      [
        ['DELETED', blue.metadata.resourceVersion, 'red'],
        ['ADDED', red.metadata.resourceVersion, 'red'],
        ['DELETED', deleted.resourceVersion, 'red'],
      ],
    )
  })
})
