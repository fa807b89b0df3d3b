/** Refusal cases: invalid validation rules in a CustomResourceDefinition. */
import type { Trial } from '../case.ts'
import { property, SCHEMA } from './definition.ts'

const number = (why: string, ...rules: readonly object[]): Trial =>
  property(why, { type: 'integer', 'x-kubernetes-validations': rules })

const text = { type: 'string' }
const ruled = (schema: object, ...rules: readonly object[]): object => ({
  ...schema,
  'x-kubernetes-validations': rules,
})

export const rules: readonly Trial[] = [
  number('a rule selects from a number', { rule: 'self.foo > 1' }),
  number('a rule is a number', { rule: 'self + 1' }),
  number('a rule without names', { rule: 'foo > 1' }),
  number('a rule ends too soon', { rule: 'self >' }),
  number('a rule has two faults', { rule: 'foo > bar' }),
  number('a rule compares with text', { rule: 'self == "1"' }),
  number('a rule with an invalid conversion', { rule: "int('x') == self" }),
  number('a message is a number', { rule: 'self > 1', messageExpression: 'self' }),
  number('a message without a value', { rule: 'self > 1', messageExpression: "'a' + foo" }),
  number('a message may be endless', { rule: 'self > 1', messageExpression: "'was ' + string(self)" }),
  number('an old value is optional and not used', { rule: 'self > 1', optionalOldSelf: true }),
  number('optionalOldSelf in a rule without oldSelf', { rule: 'foo', optionalOldSelf: true }),
  number('two rules are wrong', { rule: 'foo' }, { rule: 'self > 1' }, { rule: 'bar' }),
  property('oldSelf in a rule of a list', {
    type: 'array',
    maxItems: 3,
    items: ruled({ type: 'string', maxLength: 3 }, { rule: 'self == oldSelf' }),
  }),
  property('oldSelf in a rule of a set', {
    type: 'array',
    maxItems: 3,
    'x-kubernetes-list-type': 'set',
    items: ruled({ type: 'string', maxLength: 3 }, { rule: 'self == oldSelf' }),
  }),
  property(
    'a rule for a field without a type',
    ruled({ 'x-kubernetes-preserve-unknown-fields': true }, { rule: 'true' }),
  ),
  property(
    'a rule is about unknown fields',
    ruled({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true }, { rule: 'self.a > 1' }),
  ),
  property(
    'a rule uses labels',
    ruled(
      { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
      { rule: 'has(self.metadata.labels)' },
    ),
  ),
  property('a rule is dear', ruled({ type: 'array', items: text }, { rule: 'self.all(x, self.all(y, x == y))' })),
  property('a rule is a little too dear', {
    type: 'array',
    maxItems: 12_000,
    items: ruled({ type: 'array', maxItems: 200, items: { type: 'integer' } }, { rule: 'self.all(x, x > 1)' }),
  }),
  property('rules are dear together', {
    type: 'object',
    properties: Object.fromEntries(
      Array.from('abcdefghijklmnopqrst', (name, at) => [
        name,
        {
          type: 'array',
          maxItems: 4_000 + at,
          items: ruled({ type: 'array', maxItems: 300, items: { type: 'integer' } }, { rule: 'self.all(x, x > 1)' }),
        },
      ]),
    ),
  }),
  property(
    'a rule and its schema are wrong',
    ruled({ type: 'object', properties: { b: { type: 'array', uniqueItems: true, items: text } } }, { rule: 'foo' }),
  ),
  property('a rule is wrong in items of a list that is wrong', {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    items: ruled({ type: 'integer' }, { rule: 'self.size() > 0' }),
  }),
  property('a rule is wrong in a value of a map', {
    type: 'object',
    additionalProperties: ruled(text, { rule: 'self > 1' }),
  }),
  property('a default breaks a rule', ruled({ type: 'integer', default: 1 }, { rule: 'self > 1' })),
  property(
    'a default breaks a rule with words',
    ruled(
      { type: 'object', properties: { b: { type: 'integer' } }, default: { b: 1 } },
      { rule: 'self.b > 1', message: 'too small', fieldPath: '.b', reason: 'FieldValueForbidden' },
    ),
  ),
  {
    why: 'a rule at the root uses labels',
    set: { [`${SCHEMA}/x-kubernetes-validations`]: [{ rule: 'size(self.metadata.labels) > 0' }] },
  },
]

export const takenRules: readonly Trial[] = [
  number('a message is written by a format', { rule: 'self > 1', messageExpression: "'was %d'.format([self])" }),
  number('an old value is compared', { rule: 'self >= oldSelf' }),
  number('an old value is optional', { rule: 'oldSelf.hasValue() || self > 1', optionalOldSelf: true }),
  {
    why: 'a rule at the root knows the name',
    set: { [`${SCHEMA}/x-kubernetes-validations`]: [{ rule: "self.metadata.name.startsWith('a')" }] },
  },
  property('a rule is about an item of a map', {
    type: 'array',
    maxItems: 3,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['k'],
    items: ruled(
      { type: 'object', required: ['k'], properties: { k: { type: 'string', maxLength: 3 } } },
      { rule: 'self.k == oldSelf.k' },
    ),
  }),
]
