import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'

import fc from 'fast-check'

import { schemaFor } from '#apis/schemas.ts'
import type { WholeAnswer } from '#component/requests/call.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { encodeProtobuf } from '#meta/codec/protobuf.ts'

import { answeredStatus, answerText, compactJson, objectText, patchText, textWithoutManagedFields } from './objects.ts'

const whole = (contentType: string, body: WholeAnswer['body'], headers = {}): WholeAnswer => ({
  status: 200,
  contentType,
  body,
  headers,
})

const CONFIG_MAP = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'é' }, data: { a: '<1>' } }
const TEXT = Buffer.from(encodeJson(CONFIG_MAP)).toString('latin1')
const PROTOBUF = 'application/vnd.kubernetes.protobuf'

function protobuf(object: object, kind: string): Buffer {
  const gvk = { group: '', version: 'v1', kind }
  const schema = schemaFor(gvk)
  assert.ok(schema)
  return encodeProtobuf(schema, gvk, object as never)
}

describe('response objects in audit events', () => {
  const forms: readonly (readonly [string, WholeAnswer])[] = [
    ['JSON text', whole('application/json', `${TEXT}\n`)],
    ['JSON bytes', whole('application/json;as=x', Buffer.from(`${TEXT}\n`, 'latin1'))],
    [
      'JSON that arrives in several chunks',
      whole('application/json', [Buffer.from(TEXT.slice(0, 9), 'latin1'), Buffer.from(TEXT.slice(9), 'latin1')]),
    ],
    ['indented JSON', whole('application/json', Buffer.from(`${encodeJson(CONFIG_MAP, { pretty: true })}\n`))],
    [
      'compressed JSON',
      whole('application/json', gzipSync(Buffer.from(TEXT, 'latin1')), { 'Content-Encoding': 'gzip' }),
    ],
    [
      'YAML',
      whole(
        'application/yaml',
        Buffer.from('apiVersion: v1\ndata: {a: "<1>"}\nkind: ConfigMap\nmetadata: {name: é}\n'),
      ),
    ],
    ['protobuf', whole(PROTOBUF, protobuf(CONFIG_MAP, 'ConfigMap'))],
  ]
  for (const [form, answer] of forms) {
    it(`are parsed from a body of ${form}`, () => {
      const text = answerText(answer, schemaFor)
      assert.ok(text)
      assert.deepEqual(JSON.parse(Buffer.from(text, 'latin1').toString()), CONFIG_MAP)
      assert.ok(!text.includes('\n'))
    })
  }

  it('are omitted if the body is not a JSON object', () => {
    assert.equal(answerText(whole('text/plain', 'ok'), schemaFor), undefined)
    assert.equal(answerText(whole('application/json', '{"major":"1"}'), schemaFor), undefined)
    assert.equal(answerText(whole('application/json', '{\n  "major": "1"\n}'), schemaFor), undefined)
  })

  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message: 'é', code: 404 }
  const statuses: readonly (readonly [string, WholeAnswer])[] = [
    ['JSON', whole('application/json', Buffer.from(encodeJson(status)).toString('latin1'))],
    ['indented JSON', whole('application/json', Buffer.from(encodeJson(status, { pretty: true })))],
    [
      'YAML',
      whole(
        'application/yaml',
        Buffer.from('apiVersion: v1\ncode: 404\nkind: Status\nmessage: é\nmetadata: {}\nstatus: Failure\n'),
      ),
    ],
    ['protobuf', whole(PROTOBUF, protobuf(status, 'Status'))],
  ]
  for (const [form, answer] of statuses) {
    it(`are recognized as a Status in ${form}`, () => assert.equal(answeredStatus(answer, schemaFor)?.message, 'é'))
  }

  it('are not recognized as a Status if they are of another kind', () => {
    assert.equal(answeredStatus(forms[0]![1], schemaFor), undefined)
    assert.equal(answeredStatus(whole(PROTOBUF, protobuf(CONFIG_MAP, 'ConfigMap')), schemaFor), undefined)
    assert.equal(answeredStatus(whole('application/json', [Buffer.from('{"kind":"Status"')]), schemaFor), undefined)
  })

  it('have no managedFields, also in list items and table rows', () => {
    const own = { metadata: { name: 'a', managedFields: [{ manager: 'x' }] } }
    const bare = { metadata: { name: 'a' } }
    const strip = (object: object): unknown => JSON.parse(textWithoutManagedFields(JSON.stringify(object)))
    assert.deepEqual(strip(own), bare)
    assert.deepEqual(strip({ metadata: {}, items: [own] }), { metadata: {}, items: [bare] })
    assert.deepEqual(strip({ rows: [{ cells: [1], object: own }, { cells: [] }] }), {
      rows: [{ cells: [1], object: bare }, { cells: [] }],
    })
    assert.deepEqual(JSON.parse(objectText(own, true)), bare)
  })
})

describe('patches in audit events', () => {
  it('keep the numbers and key order of JSON and lose its whitespace', () => {
    const text = '{ "b" : 1.0 ,\n "1": 9007199254740993, "a": " <x> \\" " }'
    assert.equal(patchText(Buffer.from(text)), String.raw`{"b":1.0,"1":9007199254740993,"a":" \u003cx\u003e \" "}`)
  })

  it('are converted from YAML to JSON, or kept as a string if they are invalid', () => {
    assert.equal(patchText(Buffer.from('a: 1\nb: [x]\n')), '{"a":1,"b":["x"]}')
    assert.equal(patchText(Buffer.from('a: [')), '"a: ["')
  })

  it('are always one line of equivalent JSON', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(4), (json, indent) => {
        const value: unknown = JSON.parse(json)
        const compact = compactJson(JSON.stringify(value, null, indent))
        assert.deepEqual(JSON.parse(compact), value)
        assert.ok(!compact.includes('\n'))
      }),
    )
  })
})
