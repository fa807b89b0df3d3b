import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { JsonValue } from '#lib/json/value.ts'

import { compilePath } from './json-path.ts'

const OBJECT: JsonValue = {
  spec: { a: 1, 'b.c': 'dotted', list: ['p', 'q', 'r'], map: { x: 'y' } },
  status: {
    conditions: [
      { type: 'Ready', status: 'True', count: 2 },
      { type: 'Other', status: 'False', count: 5 },
    ],
  },
}

const found: readonly (readonly [path: string, results: JsonValue[]])[] = [
  ['.spec.a', [1]],
  [".spec['b.c']", ['dotted']],
  ['.spec.b\\.c', ['dotted']],
  ['.spec.none.deeper', []],
  ['.spec.list', [['p', 'q', 'r']]],
  ['.spec.list[0]', ['p']],
  ['.spec.list[-1]', ['r']],
  ['.spec.list[7]', []],
  ['.spec.list[0:2]', ['p', 'q']],
  ['.spec.list[*]', ['p', 'q', 'r']],
  ['.spec.map.*', ['y']],
  ['.status.conditions[?(@.type=="Ready")].status', ['True']],
  ['.status.conditions[?(@.type == "None")].status', []],
  ['.status.conditions[?(@.count>3)].type', ['Other']],
  [".status.conditions[?(@.status!='True')].type", ['Other']],
  ['.status..type', ['Ready', 'Other']],
]

describe('JSON path of a printer column', () => {
  for (const [path, results] of found) {
    it(`evaluates ${path} to ${JSON.stringify(results)}`, () => {
      assert.deepEqual(compilePath(path)?.(OBJECT), results)
    })
  }

  for (const path of ['.spec[?(@.a', 'spec', '.spec[', '.spec.list[a', '.a b']) {
    it(`rejects ${path}`, () => {
      assert.equal(compilePath(path), undefined)
    })
  }
})
