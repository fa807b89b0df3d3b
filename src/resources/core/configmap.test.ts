import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ConfigMap } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'

import { configMap } from './configmap.ts'

const context = {
  clock: createVirtualClock(),
  random: createSeededRandom(1),
  isEnabled: () => true,
  allowPrivileged: false,
}
const make = (parts: Partial<ConfigMap>): ConfigMap => ({ metadata: { name: 'a', namespace: 'n' }, ...parts })
const KEY_RULE =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

const INVALID: readonly [what: string, object: Partial<ConfigMap>, text: string][] = [
  ['a key with a space', { data: { 'a b': '' } }, `data[a b]: Invalid value: "a b": ${KEY_RULE}`],
  ['a binary key with a slash', { binaryData: { 'a/b': '' } }, `binaryData[a/b]: Invalid value: "a/b": ${KEY_RULE}`],
  ['a key that is a dot', { data: { '.': '' } }, `data[.]: Invalid value: ".": must not be '.'`],
  [
    'a key in both data and binaryData',
    { data: { k: '' }, binaryData: { k: '' } },
    'data[k]: Invalid value: "k": duplicate of key present in binaryData',
  ],
  ['too much data', { data: { k: 'x'.repeat(1024 * 1024 + 1) } }, '[]: Too long: may not be more than 1048576 bytes'],
]

describe('ConfigMap', () => {
  it('may contain text and bytes up to the size limit', () => {
    assert.deepEqual(configMap.validate?.(make({ data: { k: 'v' }, binaryData: { b: 'AA==' } }), context), [])
    assert.deepEqual(configMap.validate?.(make({ data: { k: 'x'.repeat(1024 * 1024) } }), context), [])
  })

  for (const [what, object, text] of INVALID) {
    it(`is rejected if it has ${what}`, () => {
      assert.deepEqual(configMap.validate?.(make(object), context).map(fieldErrorText), [text])
    })
  }

  it('rejects changes if it is immutable, and a change of immutable to false', () => {
    const old = make({ data: { k: '1' }, immutable: true })
    const texts = configMap.validateUpdate?.(make({ data: { k: '2' } }), old, context).map(fieldErrorText)
    const rule = 'Forbidden: field is immutable when `immutable` is set'
    assert.deepEqual(texts, [`immutable: ${rule}`, `data: ${rule}`])
    assert.deepEqual(
      configMap.validateUpdate?.(make({ ...old, metadata: { name: 'a', labels: { l: 'x' } } }), old, context),
      [],
    )
  })

  it('prints the number of its entries', () => {
    const cell = configMap.columns?.[1]?.value(make({ data: { a: '' }, binaryData: { b: '' } }), 0)
    assert.equal(cell, 2)
  })
})
