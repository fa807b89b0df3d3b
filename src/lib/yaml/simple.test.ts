import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { parseSimpleYaml } from './simple.ts'
import { parseYaml } from './yaml.ts'

const KUBECONFIG = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    extensions:
    - extension: /home/one/data
      name: example.com/owner
    server: https://127.0.0.1:6443
  name: one
- name: two
  cluster:
    insecure-skip-tls-verify: true
    server: https://example.com
contexts:
  - context:
      cluster: one
      user: admin@one
    name: one
current-context: one
kind: Config
preferences: {}
users: []
`

function real(text: string): unknown {
  try {
    return parseYaml(text)
  } catch {
    return 'no YAML'
  }
}

/** Possible values behind a colon, one per line. */
const ENDS = `
 
 word
 /
 /a/b:c
 two words
 true
 True
 no
 12
 0x1f
 {}
 []
 {a: b}
 a:b
 a:
 a#b
 #c
 "q"
 |
 >
 &a
 *a
 ~
 https://h:1/x
 LS0=
 e5
 .inf
 -
 NaN`.split('\n')

/** Lines that are nearly what it reads. */
const line = fc
  .tuple(
    fc.integer({ min: 0, max: 3 }).map((depth) => '  '.repeat(depth)),
    fc.constantFrom('', '', '- ', '-', ' '),
    fc.constantFrom('a', 'b', 'name', 'c-d', 'y', 'on', 'null', 'x.y', '1', '"q"', '?', '<<'),
    fc.constantFrom(':', ':', ':', ' :', ''),
    fc.constantFrom(...ENDS),
  )
  .map((parts) => parts.join(''))

describe('parser of simple YAML', () => {
  it('parses kubeconfig files that programs write', () => {
    assert.notEqual(parseSimpleYaml(KUBECONFIG), undefined)
    assert.deepEqual(parseSimpleYaml(KUBECONFIG), parseYaml(KUBECONFIG))
  })

  for (const [name, text] of [
    ['an empty document', ''],
    ['a comment', 'a: b # c\n'],
    ['a number', 'a: 6443\n'],
    ['a word that is a boolean', 'a: no\n'],
    ['quotes', 'a: "b"\n'],
    ['a repeated key', 'a: b\na: c\n'],
    ['a key without a value', 'a:\nb: c\n'],
    ['a second document', 'a: b\n---\nc: d\n'],
    ['wrong indentation', 'a: b\n  c: d\n'],
  ] as const)
    it(`returns undefined for ${name}, which only the full parser supports`, () =>
      assert.equal(parseSimpleYaml(text), undefined))

  it('returns the same as the full parser, or undefined for text that it does not support', () => {
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 8 }), (lines) => {
        const text = `${lines.join('\n')}\n`
        const simple = parseSimpleYaml(text)
        if (simple !== undefined) assert.deepEqual(simple, real(text), text)
      }),
      { numRuns: 5000 },
    )
  })
})
