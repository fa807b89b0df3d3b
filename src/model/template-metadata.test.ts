import assert from 'node:assert/strict'
import { test } from 'node:test'

import { fieldErrorText } from '#meta/validation/field-error.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import { validateTemplateMetadata } from './template-metadata.ts'

test('the metadata of a pod template may only have labels and annotations', () => {
  const texts = (metadata: object): string[] =>
    validateTemplateMetadata(fieldPath('spec.metadata'), metadata).map(fieldErrorText)
  assert.deepEqual(texts({ labels: { a: 'b' }, annotations: { c: 'd' } }), [])
  assert.deepEqual(texts({}), [])
  assert.deepEqual(texts({ name: 'x', uid: 'u', finalizers: ['a/b'] }), [
    'spec.metadata.name: Forbidden: cannot be set',
    'spec.metadata.uID: Forbidden: cannot be set',
    'spec.metadata.finalizers: Forbidden: cannot be set',
  ])
  assert.match(
    texts({ labels: { 'a b': 'c' } })[0] ?? '',
    /^spec\.metadata\.labels: Invalid value: "a b": name part must/,
  )
  assert.match(texts({ annotations: { 'a b': '' } })[0] ?? '', /^spec\.metadata\.annotations: Invalid value: "a b":/)
})
