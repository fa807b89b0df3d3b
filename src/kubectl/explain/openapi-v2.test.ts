import assert from 'node:assert/strict'
import { test } from 'node:test'

import { explainV2, linesOf } from './openapi-v2.ts'

const KIND = { group: 'example.com', version: 'v1', kind: 'Thing' }

const DOCUMENT = {
  definitions: {
    thing: {
      description: 'A thing.',
      type: 'object',
      required: ['spec'],
      properties: {
        spec: { description: 'What it should be.', $ref: '#/definitions/spec' },
        names: { type: 'array', description: 'Names.', items: { type: 'string' } },
      },
      'x-kubernetes-group-version-kind': [KIND],
    },
    spec: {
      description: 'Spec of a thing.',
      type: 'object',
      properties: {
        inner: { $ref: '#/definitions/spec' },
        labels: { type: 'object', additionalProperties: { type: 'string' } },
        any: {},
      },
    },
  },
}

const explain = (path: readonly string[], recursive = false): string =>
  explainV2({ document: DOCUMENT, kind: KIND, path, recursive })

test('kubectl explain with OpenAPI v2 prints the fields of a kind, sorted, with types', () => {
  assert.equal(
    explain([]),
    'KIND:     Thing\nVERSION:  example.com/v1\n\nDESCRIPTION:\n     A thing.\n\nFIELDS:\n   names\t<[]string>\n     Names.\n\n   spec\t<Object> -required-\n     What it should be.\n\n',
  )
})

test('kubectl explain with OpenAPI v2 prints the descriptions of a field and of its type', () => {
  assert.match(
    explain(['spec']),
    /RESOURCE: spec <Object>\n\nDESCRIPTION:\n {5}What it should be\.\n\n {5}Spec of a thing\.\n/,
  )
  assert.match(explain(['names']), /FIELD: {4}names <\[\]string>\n\nDESCRIPTION:\n {5}Names\.\n/)
})

test('kubectl explain with OpenAPI v2 stops at recursive references', () => {
  assert.match(
    explain([], true),
    /FIELDS:\n {3}names\t<\[\]string>\n {3}spec\t<Object>\n {6}any\t<>\n {6}inner\t<Object>\n {6}labels\t<map\[string\]string>\n$/,
  )
})

test('kubectl explain with OpenAPI v2 reports a field that does not exist', () => {
  assert.throws(() => explain(['spec', 'nosuch']), /field "nosuch" does not exist/)
})

test('kubectl explain with OpenAPI v2 wraps paragraphs, and keeps lists, code and empty lines', () => {
  assert.deepEqual(linesOf('one two three', 7), ['one two', 'three'])
  assert.deepEqual(linesOf('one\ntwo', 10), ['one two'])
  assert.deepEqual(linesOf('one:\ntwo', 10), ['one:', 'two'])
  assert.deepEqual(linesOf('one\n- two\n\n    code  x', 10), ['one', '- two', '', '    code  x'])
})
