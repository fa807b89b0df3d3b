import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { KubeObject } from '#meta/object.ts'
import type { KeyValue } from '#storage/backend.ts'

import { createEntryMaker, type EntryMaker, parseBody } from './entry.ts'

const PREFIX = '{"kind":"Widget","apiVersion":"v1",'

/** A maker that records the texts it decodes. */
function createMaker(open: (value: Uint8Array) => Uint8Array = (value) => value): {
  readonly maker: EntryMaker
  readonly decoded: string[]
} {
  const decoded: string[] = []
  const maker = createEntryMaker({
    prefix: PREFIX,
    keyPrefix: '/registry/widgets/',
    open: ({ value }) => open(value),
    decode(bytes) {
      const text = Buffer.from(bytes).toString()
      decoded.push(text)
      const { metadata, ...rest } = JSON.parse(text) as KubeObject
      const { name, namespace, uid, resourceVersion: _old, ...others } = metadata
      return JSON.stringify({
        kind: 'Widget',
        apiVersion: 'v1',
        metadata: { name, namespace, uid, ...others },
        ...rest,
      })
    },
    fields: ({ metadata }) => ({ 'metadata.uid': metadata.uid ?? '' }),
  })
  return { maker, decoded }
}

/** Within a larger buffer, as values of a listing are. */
function listed(text: string, key = '/registry/widgets/ns/a'): KeyValue {
  const value = new Uint8Array(Buffer.from(`before${text}"after"`)).subarray(6, 6 + Buffer.byteLength(text))
  return { key, value, createRevision: 3, modRevision: 7, lease: 0 }
}

const METADATA = '"metadata":{"name":"a","namespace":"ns","uid":"u-1"'

describe('entry of the watch cache', () => {
  it('is built without parsing if this server wrote the value', () => {
    const { maker, decoded } = createMaker()
    const texts: [stored: string, body: string][] = [
      [`${PREFIX}${METADATA}}}`, `${METADATA},"resourceVersion":"7"}}`],
      [
        `${PREFIX}${METADATA},"labels":{"a":"b"}},"data":1}`,
        `${METADATA},"resourceVersion":"7","labels":{"a":"b"}},"data":1}`,
      ],
      [`${PREFIX}"metadata":{"name":"a","uid":"é"}}`, '"metadata":{"name":"a","uid":"Ã©","resourceVersion":"7"}}'],
      [
        `${PREFIX}"metadata":{"name":"a-x","generateName":"a-","namespace":"ns","uid":"u"}}`,
        '"metadata":{"name":"a-x","generateName":"a-","namespace":"ns","uid":"u","resourceVersion":"7"}}',
      ],
    ]
    for (const [stored, body] of texts) {
      for (const isListed of [true, false]) {
        const entry = maker.read(listed(stored), isListed)
        assert.deepEqual([entry.body, entry.bytes, entry.modRevision], [body, body.length, 7])
        assert.equal(entry.object.metadata.resourceVersion, '7')
      }
    }
    assert.deepEqual(decoded, [])
  })

  it('is decoded if another writer encoded the value differently', () => {
    const { maker, decoded } = createMaker()
    const foreign = [
      `${PREFIX}${METADATA}}}\n`,
      `{"apiVersion":"v1","kind":"Widget",${METADATA}}}`,
      `${PREFIX}"metadata":{"labels":{"uid":"x"},"name":"a","namespace":"ns","uid":"u-1"}}`,
      `${PREFIX} ${METADATA}}}`,
      `${PREFIX}"data":{},${METADATA}}}`,
      `${PREFIX}${METADATA},"resourceVersion":"3"}}`,
      `${PREFIX}"metadata":{"name":"\\u0061","namespace":"ns","uid":"u-1"}}`,
      `${PREFIX}"metadata":{"name":"a","namespace":"ns","uid":"u-\\u0031"}}`,
    ]
    for (const stored of foreign) {
      const entry = maker.read(listed(stored), true)
      assert.equal(entry.object.metadata.resourceVersion, '7', stored)
      assert.ok(entry.body.startsWith(`${METADATA},"resourceVersion":"7"`), entry.body)
    }
    assert.deepEqual(decoded, foreign)
    assert.throws(() => maker.read(listed(`${PREFIX}"metadata":{"name":"cut off}`), true), SyntaxError)
    assert.throws(() => maker.read(listed(`${PREFIX}"metadata":{"name":"a","uid":"cut off}`), true), SyntaxError)
  })

  it('has its name from the key, and reads labels and fields lazily', () => {
    const { maker } = createMaker()
    const labels = (rest: string): object => maker.read(listed(`${PREFIX}${METADATA}${rest}}}`)).labels
    assert.deepEqual(labels(',"labels":{"a":"b","x.io/y":""},"annotations":{"c":"}"}'), { a: 'b', 'x.io/y': '' })
    assert.deepEqual(labels(',"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"}'), { a: 'b' })
    assert.deepEqual(labels(',"annotations":{"labels":"{}"},"finalizers":["a"]'), {})
    assert.deepEqual(labels(',"annotations":{"\\"labels\\":{":"x"}'), {})
    assert.deepEqual(labels(''), {})
    const entry = maker.read(listed(`${PREFIX}${METADATA}}}`))
    assert.deepEqual([entry.namespace, entry.name, entry.fields], ['ns', 'a', { 'metadata.uid': 'u-1' }])
    const wide = maker.read(listed(`${PREFIX}"metadata":{"name":"n","uid":"u"}}`, '/registry/widgets/n'))
    assert.deepEqual([wide.namespace, wide.name], ['', 'n'])
  })

  it('contains the decoded object with its resourceVersion after a write', () => {
    const { maker } = createMaker()
    const object = { metadata: { name: 'a', namespace: 'ns', uid: 'u-1', labels: { a: 'b' } }, data: {} }
    const entry = maker.written('/registry/widgets/ns/a', `${PREFIX}${JSON.stringify(object).slice(1)}`, object, 9)
    assert.equal((entry.object as typeof object).data, object.data)
    assert.deepEqual([entry.object.metadata.resourceVersion, entry.labels], ['9', { a: 'b' }])
    for (let n = 0; n < 1000; n++) maker.written('/registry/widgets/ns/b', `${PREFIX}${METADATA}}}`, object, n + 10)
    assert.deepEqual(entry.object, { ...object, metadata: { ...object.metadata, resourceVersion: '9' } })
  })
})

describe('body of a watch cache entry', () => {
  it('preserves every integer', () => {
    for (const number of [7, 2 ** 53 - 1, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)]) {
      const { metadata } = parseBody(`"metadata":{"name":"a","generation":${number}}}`)
      assert.equal(metadata.generation, number)
    }
  })

  it('is a string with one character per byte', () => {
    const { metadata } = parseBody(Buffer.from('"metadata":{"name":"é😀"}}').toString('latin1'))
    assert.equal(metadata.name, 'é😀')
  })
})

describe('decryption of watch cache entries', () => {
  const { maker } = createMaker((value) => Buffer.from(value))
  const canonical = `${PREFIX}${METADATA}}}`
  const other = `{"apiVersion":"v1","kind":"Widget",${METADATA}}}`

  it('uses the key of the object as authenticated data', () => {
    for (const text of [canonical, other]) assert.equal(maker.read(listed(text)).name, 'a')
    const clusterScoped = `${PREFIX}"metadata":{"name":"a","uid":"u-1"}}`
    assert.equal(maker.read(listed(clusterScoped, '/registry/widgets/a')).namespace, '')
  })

  it('rejects an encrypted value that was moved to the key of another object', () => {
    for (const text of [canonical, other])
      for (const key of ['/registry/widgets/evil/a', '/registry/widgets/ns/b', '/registry/widgets/a'])
        assert.throws(() => maker.read(listed(text, key)), {
          code: 'corrupt',
          message: `The value of "${key}" was sealed for another object`,
        })
  })
})
