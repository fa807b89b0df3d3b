import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { fieldErrorText } from './field-error.ts'
import { type FieldError, fieldPath } from './field-path.ts'
import {
  immutable,
  nonNegative,
  validateAnnotations,
  validateDomainPrefixedKey,
  validateDomainPrefixedPath,
  validateFullyQualifiedDomainName,
  validateFullyQualifiedName,
  validateLabels,
} from './rules.ts'

const short = (errors: readonly FieldError[]): string[] => errors.map((error) => fieldErrorText(error).slice(0, 70))

describe('validation rules', () => {
  it('reject a change, but not a change from absent to an empty map', () => {
    assert.deepEqual(immutable(fieldPath('spec.selector'), {}, undefined), [])
    assert.deepEqual(short(immutable(fieldPath('spec.selector'), { a: 'b' }, {})), [
      'spec.selector: Invalid value: {"a":"b"}: field is immutable',
    ])
  })

  it('reject negative numbers', () => {
    assert.deepEqual(nonNegative(fieldPath('spec.replicas'), undefined), [])
    const [error] = nonNegative(fieldPath('spec.replicas'), -1)
    assert.equal(fieldErrorText(error!), 'spec.replicas: Invalid value: -1: must be greater than or equal to 0')
    assert.equal(error?.origin, 'minimum')
  })

  it('check labels by key and value, annotations by key and size', () => {
    assert.deepEqual(validateLabels(fieldPath('l'), { 'a/B': '' }), [])
    assert.deepEqual(short(validateLabels(fieldPath('l'), { '!': 'ok', ok: '!' })), [
      `l: Invalid value: "!": name part must consist of alphanumeric characters, '`.slice(0, 70),
      'l: Invalid value: "!": a valid label must be an empty string or consist of'.slice(0, 70),
    ])
    assert.deepEqual(validateAnnotations(fieldPath('a'), { 'Example.com/A': 'any\nthing' }), [])
    assert.deepEqual(validateAnnotations(fieldPath('a'), { a: 'x'.repeat(262_143) }), [])
    assert.deepEqual(short(validateAnnotations(fieldPath('a'), { a: 'x'.repeat(262_144) })), [
      'a: Too long: may not be more than 262144 bytes',
    ])
    assert.equal(validateAnnotations(fieldPath('a'), { a: 'é'.repeat(131_072) }).length, 1)
  })

  it('check names with a domain', () => {
    assert.deepEqual(validateFullyQualifiedName(fieldPath('f'), 'a.b.c'), [])
    assert.deepEqual(short(validateFullyQualifiedName(fieldPath('f'), 'a.b')), [
      'f: Invalid value: "a.b": should be a domain with at least three segments separated by dots'.slice(0, 70),
    ])
    assert.deepEqual(validateFullyQualifiedDomainName(fieldPath('f'), 'a.b.'), [])
    assert.deepEqual(short(validateFullyQualifiedDomainName(fieldPath('f'), '')), ['f: Required value'])
    assert.deepEqual(validateDomainPrefixedPath(fieldPath('f'), 'a.b/c/d'), [])
    assert.deepEqual(short(validateDomainPrefixedPath(fieldPath('f'), 'a')), [
      'f: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")'.slice(0, 70),
    ])
    assert.deepEqual(validateDomainPrefixedKey(fieldPath('f'), 'a.b/c'), [])
    assert.deepEqual(short(validateDomainPrefixedKey(fieldPath('f'), 'a')), [
      'f: Invalid value: "a": must be a domain-prefixed key (such as "acme.io/foo")'.slice(0, 70),
    ])
  })
})
