import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { explainTo, type OpenApiDocument } from './schema-text.ts'
import { wrapWords } from './word-wrap.ts'

const KIND = { group: 'example.com', version: 'v1', kind: 'Widget' }
const DOCUMENT: OpenApiDocument = {
  paths: { '/apis/example.com/v1/widgets': { get: { 'x-kubernetes-group-version-kind': KIND } } },
  components: {
    schemas: {
      Widget: {
        description: 'A widget.',
        'x-kubernetes-group-version-kind': [KIND],
        required: ['size'],
        properties: {
          size: { type: 'string', enum: ['', 'a', 'b', 'c', 'd'], description: 'How large.' },
          parts: { type: 'array', items: { $ref: '#/components/schemas/com.example.Part' } },
        },
      },
      'com.example.Part': { type: 'object', properties: { name: { type: 'string' } } },
    },
  },
}

function explain(path: string[], recursive = false): string {
  let out = ''
  const resource = { group: 'example.com', version: 'v1', plural: 'widgets' }
  explainTo((text) => (out += text), { document: DOCUMENT, resource, path, recursive })
  return out
}

describe('kubectl explain', () => {
  it('prints a kind with its fields', () => {
    assert.equal(
      explain([]),
      'GROUP:      example.com\nKIND:       Widget\nVERSION:    v1\n\nDESCRIPTION:\n    A widget.\n    \nFIELDS:\n' +
        '  parts\t<[]Part>\n    <no description>\n\n  size\t<string> -required-\n  enum: "", a, b, c, ....\n    How large.\n\n\n',
    )
  })

  it('descends into list items, and prints only names with --recursive', () => {
    assert.ok(explain(['parts', 'name']).includes('FIELD: name <string>\n\n\nDESCRIPTION:\n    <empty>\n'))
    assert.ok(
      explain([], true).endsWith(
        'FIELDS:\n  parts\t<[]Part>\n    name\t<string>\n  size\t<string> -required-\n  enum: "", a, b, c, ....\n\n',
      ),
    )
  })

  it('reports a field that does not exist', () => {
    assert.throws(() => explain(['nope']), { message: 'error: field "nope" does not exist' })
  })

  it('wraps lines at spaces and keeps words whole', () => {
    assert.equal(wrapWords('one two three', 8), 'one two\nthree')
    assert.equal(wrapWords('abcdefghij k', 4), 'abcdefghij\nk')
  })
})
