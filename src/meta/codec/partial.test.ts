import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'

import { encodeJson } from './encode-json.ts'
import {
  decodeWatchEvent,
  jsonWatchFrame,
  partialList,
  partialObject,
  protobufWatchFrame,
  splitFrames,
} from './partial.ts'

describe('PartialObjectMetadata', () => {
  const pod = { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'a' }, spec: {} }

  it('contains only the metadata', () => {
    assert.equal(
      encodeJson(partialObject(pod, { version: 'v1' })),
      '{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}',
    )
    assert.equal(partialObject({}, { version: 'v1beta1' })['apiVersion'], 'meta.k8s.io/v1beta1')
  })

  it('can leave the managed fields out', () => {
    const metadata = { name: 'a', managedFields: [{ manager: 'm' }] }
    const partial = partialObject({ ...pod, metadata }, { version: 'v1', omitsManagedFields: true })
    assert.deepEqual(partial['metadata'], { name: 'a' })
  })

  it('has a kind also in lists', () => {
    const list = { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '1' }, items: [pod] }
    assert.equal(
      encodeJson(partialList(list, { version: 'v1' })),
      '{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},' +
        '"items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}]}',
    )
    assert.deepEqual(partialList({}, { version: 'v1' })['items'], [])
  })
})

describe('encoded watch events', () => {
  it('are lines in JSON', () => {
    assert.equal(jsonWatchFrame('ADDED', '{"kind":"Pod"}'), '{"type":"ADDED","object":{"kind":"Pod"}}\n')
  })

  it('have a length prefix and an envelope in protobuf', () => {
    const frame = protobufWatchFrame('DELETED', Buffer.from('k8s\0x', 'latin1'))
    assert.equal(frame.toString('latin1'), '\0\0\0\x12\n\x07DELETED\x12\x07\n\x05k8s\0x')
    assert.deepEqual(decodeWatchEvent(frame.subarray(4)), {
      type: 'DELETED',
      object: Buffer.from('k8s\0x', 'latin1'),
    })
  })

  it('are split from a stream of any chunks', () => {
    const frames = ['a', 'bc', ''].map((text) => protobufWatchFrame('ADDED', Buffer.from(text)))
    const stream = Buffer.concat(frames)
    for (let at = 0; at <= stream.length; at++) {
      const first = splitFrames(stream.subarray(0, at), 100)
      const second = splitFrames(Buffer.concat([first.rest, stream.subarray(at)]), 100)
      const objects = [...first.frames, ...second.frames].map((frame) => decodeWatchEvent(frame).object.toString())
      assert.deepEqual(objects, ['a', 'bc', ''])
      assert.equal(second.rest.length, 0)
    }
  })

  it('are rejected if they are too long or invalid', () => {
    assert.throws(() => splitFrames(Buffer.from('7fffffff', 'hex'), 1000), { code: 'limit' })
    assert.throws(() => decodeWatchEvent(Buffer.from('0aff', 'hex')), { message: 'unexpected EOF' })
  })
})
