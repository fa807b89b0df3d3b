/** Tests the answers of the server to edits, the forms, and the kinds in a text of several objects. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Kind } from '../api/kinds.ts'
import { RequestError } from '../api/request.ts'
import { checkEdit } from './check-text.ts'
import { kindOf } from './creation.ts'
import { conflictsOf, problemsOf, warningsOf } from './send-edit.ts'
import { appendDocument, TEMPLATES } from './templates.ts'
import { kindAt } from './use-schemas.ts'
import { parseDocuments } from './yaml-text.ts'

describe('answers to an edit', () => {
  it('have warnings in a header', () => {
    assert.deepEqual(warningsOf('299 - "unknown field \\"a\\"", 299 - "old"'), ['unknown field "a"', 'old'])
    assert.deepEqual(warningsOf(''), [])
  })

  it('name the managers of conflicting fields', () => {
    const causes = [
      { reason: 'FieldManagerConflict', message: 'conflict with "kubectl" using apps/v1', field: '.spec.replicas' },
    ]
    assert.deepEqual(conflictsOf({ details: { causes } }), [{ field: 'spec.replicas', manager: 'kubectl' }])
  })

  it('are marked at the fields that they name', () => {
    const text = 'kind: Pod\nspec:\n  replicas: -1\n  wrong: 2\n'
    const [document] = parseDocuments(text)
    const message = 'strict decoding error: unknown field "spec.wrong"'
    const causes = [{ field: 'spec.replicas', message: 'Invalid value: -1' }]
    const marked = problemsOf(new RequestError({ message, details: { causes } }), document)
    assert.deepEqual(
      marked.map(({ from, to }) => text.slice(from, to)),
      ['replicas: -1', 'wrong: 2'],
    )
  })
})

describe('checkEdit()', () => {
  const base = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } }

  it('keeps the identity of the object', () => {
    const { problems } = checkEdit('apiVersion: v1\nkind: Pod\nmetadata:\n  name: b\n', base, undefined)
    assert.match(problems[0]?.message ?? '', /metadata\.name must stay "a"/)
  })

  it('refuses a second object and an empty text', () => {
    const text = 'apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n'
    assert.match(checkEdit(`${text}---\n${text}`, base, undefined).problems[0]?.message ?? '', /one object/)
    assert.equal(checkEdit('', base, undefined).problems[0]?.message, 'The text is empty')
    assert.deepEqual(checkEdit(text, base, undefined).problems, [])
  })
})

describe('the forms of new objects', () => {
  for (const { kind, fields, write } of TEMPLATES) {
    it(`write a ${kind} that is read back`, () => {
      const values = Object.fromEntries(fields.map(({ name, value }) => [name, value === '' ? 'x' : value]))
      const text = appendDocument(appendDocument('', write(values, 'shop')), write(values, 'shop'))
      assert.deepEqual(
        parseDocuments(text).map(({ object }) => object?.kind),
        [kind, kind],
      )
    })
  }
})

describe('kinds', () => {
  it('are found around an offset, also in a text that is not valid', () => {
    const text = 'apiVersion: v1\nkind: Pod\nspec: [\n---\napiVersion: apps/v1\nkind: Deployment\nspec:\n'
    assert.deepEqual(kindAt(text, 20), ['v1', 'Pod'])
    assert.deepEqual(kindAt(text, text.length), ['apps/v1', 'Deployment'])
  })

  it('are those of the cluster at the version of the object', () => {
    const deployments = { group: 'apps', version: 'v1', kind: 'Deployment', plural: 'deployments' } as Kind
    assert.equal(kindOf([deployments], 'apps/v1beta1', 'Deployment')?.version, 'v1beta1')
    assert.equal(kindOf([deployments], 'v1', 'Deployment'), undefined)
  })
})
