/** Tests the schema of cluster files in the editor, and the faults that the server finds. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { RequestError } from '#console/api/request.ts'
import { editorSchema, faultsOf, fileProblems } from '#console/builds/file-schema.ts'
import { suggestionsAt } from '#console/editor/suggest.ts'
import { clusterJsonSchema } from '#provision/file/cluster-json-schema.ts'

const ROOT = editorSchema(clusterJsonSchema())

describe('schema of cluster files', () => {
  it('completes fields and values', () => {
    const at = (text: string): readonly string[] =>
      suggestionsAt({ schemas: {}, root: ROOT }, text, text.length).suggestions.map(({ label }) => label)
    assert.ok(at('nodes:\n  - addr').includes('address'))
    assert.ok(at('services:\n  etcd:\n    backup_config:\n      ').includes('interval_hours'))
    assert.deepEqual(at('ingress:\n  provider: '), ['nginx', 'none'])
  })

  it('finds unknown fields and wrong types at their places', () => {
    const text = 'nodes:\n  - address: 10.0.0.1\n    user: root\n    role: [etcd]\n    adress: x\nservices: 5\n'
    const problems = fileProblems(text, ROOT)
    assert.deepEqual(
      problems.map(({ message, from, to }) => [message, text.slice(from, to)]),
      [
        ['There is no field "adress" here', 'adress: x'],
        ['This must be object', 'services: 5'],
      ],
    )
  })

  it('accepts numbers as text, empty fields and percentages', () => {
    const text =
      'nodes:\n  - {address: 10.0.0.1, user: root, role: [etcd], port: "22", labels: {a: 1}}\nservices:\nupgrade_strategy: {max_unavailable_worker: 10%}\n'
    assert.deepEqual(fileProblems(text, ROOT), [])
  })

  it('checks the YAML only as long as there is no schema', () => {
    assert.deepEqual(fileProblems('x: 1', undefined), [])
    assert.equal(fileProblems('x: [', undefined).length > 0, true)
    assert.deepEqual(fileProblems('', ROOT), [])
  })
})

describe('faultsOf()', () => {
  it('marks the fields that the server names', () => {
    const causes = [
      { field: 'file.nodes[0].role', message: 'Invalid value: line 2: there is no role "x"' },
      { field: 'file', message: 'Invalid value: line 1: wrong' },
    ]
    const text = 'nodes:\n  - role: [x]\n'
    const found = faultsOf(new RequestError({ code: 422, details: { causes } }), text)
    assert.deepEqual(
      found.map(({ message, from }) => [message, from]),
      [
        ['line 2: there is no role "x"', text.indexOf('role')],
        ['line 1: wrong', 0],
      ],
    )
  })
})
