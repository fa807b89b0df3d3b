import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { JSONSchemaProps, ValidationRule } from '#apis/apiextensions/v1.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { runAtOnce } from '#lib/time-slicing.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import { fieldPath, type FieldPath } from '#meta/validation/field-path.ts'

import { validateObject } from './object-rules.ts'
import { checkRules } from './rule-check.ts'
import { RULES_BUDGET, runRules } from './rule-run.ts'
import { structuralOf } from './structural.ts'

const object = (properties: Record<string, JSONSchemaProps>, more: JSONSchemaProps = {}): JSONSchemaProps => ({
  type: 'object',
  properties,
  ...more,
})
const ruled = (schema: JSONSchemaProps, ...rules: readonly ValidationRule[]): JSONSchemaProps => ({
  ...schema,
  'x-kubernetes-validations': [...rules],
})
const integer: JSONSchemaProps = { type: 'integer' }
const text: JSONSchemaProps = { type: 'string', maxLength: 20 }

describe('x-kubernetes-validations in a schema', () => {
  const check = (schema: JSONSchemaProps, isFaulty: (path: FieldPath) => boolean = () => false): string[] => {
    const options = { isFaulty, show: ({ rule }: ValidationRule) => rule, costsAnything: false }
    return runAtOnce(checkRules(structuralOf(schema), fieldPath('~'), options)).map(fieldErrorText)
  }

  it('must compile', () => {
    const at = '~.properties[a].x-kubernetes-validations'
    const cases: readonly (readonly [JSONSchemaProps, ...ValidationRule[]])[] = [
      [integer, { rule: 'self > 1' }],
      [integer, { rule: 'self + 1' }],
      [integer, { rule: 'self > 1', messageExpression: 'self' }],
      [integer, { rule: 'self > 1', optionalOldSelf: true }],
      [{ 'x-kubernetes-preserve-unknown-fields': true }, { rule: 'true' }],
    ]
    assert.deepEqual(
      cases.flatMap(([schema, ...rules]) => check(object({ a: ruled(schema, ...rules) }))),
      [
        `${at}[0].rule: Invalid value: "self + 1": cel expression must evaluate to a bool`,
        `${at}[0].messageExpression: Invalid value: "self > 1": messageExpression must evaluate to a string`,
        `${at}[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule`,
        `${at}: Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations`,
      ],
    )
    const [fault] = check(object({ a: ruled(integer, { rule: 'self.foo > 1' }) }))
    assert.equal(
      fault,
      `${at}[0].rule: Invalid value: "self.foo > 1": compilation failed: ERROR: <input>:1:5: type 'int' does not support field selection\n | self.foo > 1\n | ....^`,
    )
  })

  it('can read only the common metadata fields', () => {
    assert.deepEqual(check(ruled(object({}), { rule: "self.metadata.name != '' && self.kind == 'X'" })), [])
    assert.match(check(ruled(object({}), { rule: 'has(self.metadata.labels)' })).join(), /undefined field 'labels'/)
  })

  it('can read properties under escaped names', () => {
    const names = ['a-b', 'a.b', 'a/b', 'a__b', 'namespace', 'true']
    const schema = object(Object.fromEntries(names.map((name) => [name, integer])))
    const rules = [
      'a__dash__b',
      'a__dot__b',
      'a__slash__b',
      'a__underscores__b',
      '__namespace__',
      'namespace',
      '__true__',
    ]
    assert.deepEqual(check(object({ s: ruled(schema, ...rules.map((name) => ({ rule: `self.${name} > 1` }))) })), [])
  })

  it('use oldSelf only where old and new values can be matched', () => {
    const item = ruled(text, { rule: 'self == oldSelf' })
    assert.deepEqual(check(object({ a: { type: 'array', maxItems: 2, items: item } })), [
      '~.properties[a].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within ~.properties[a]',
    ])
    assert.deepEqual(check(object({ a: { type: 'object', maxProperties: 2, additionalProperties: item } })), [])
  })

  it('must not exceed the cost limit', () => {
    const hint =
      '(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)'
    const list = ruled({ type: 'array', items: { type: 'string' } }, { rule: 'self.all(x, self.all(y, x == y))' })
    assert.deepEqual(check(object({ a: list })), [
      `~.properties[a].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x ${hint}`,
      '~.properties[a].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema',
      `~: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x ${hint}`,
    ])
    const message = ruled(integer, { rule: 'self > 1', messageExpression: "'was ' + string(self)" })
    assert.match(
      check(object({ a: message }))[0] ?? '',
      /messageExpression: Forbidden: estimated messageExpression cost/,
    )
    const kept = { isFaulty: () => false, show: () => '', costsAnything: true }
    assert.equal(runAtOnce(checkRules(structuralOf(object({ a: list })), fieldPath('~'), kept)).length, 2)
  })

  it('are not checked if the schema is invalid', () => {
    assert.deepEqual(
      check(object({ a: ruled(integer, { rule: 'foo' }) }), (path) => path.toString() === '~.properties[a]'),
      [],
    )
  })
})

describe('x-kubernetes-validations of an object', () => {
  const run = (schema: JSONSchemaProps, next: object, old?: object): ReturnType<typeof runRules> =>
    runRules(next as JsonObject, structuralOf(schema), { old: old as JsonObject | undefined })
  const errors = (...args: Parameters<typeof run>): string[] => run(...args).errors.map(fieldErrorText)
  const spec = (...rules: readonly ValidationRule[]): JSONSchemaProps => object({ spec: ruled(integer, ...rules) })

  it('report their message or their expression', () => {
    assert.deepEqual(errors(spec({ rule: 'self < 10' }), { spec: 20 }), [
      'spec: Invalid value: 20: failed rule: self < 10',
    ])
    assert.deepEqual(errors(spec({ rule: 'self < 10', message: ' was big ' }), { spec: 20 }), [
      'spec: Invalid value: 20: was big',
    ])
    const worded = { rule: 'self < 10', messageExpression: "'was %d'.format([self])" }
    assert.deepEqual(errors(spec(worded), { spec: 20 }), ['spec: Invalid value: 20: was 20'])
    const failing = { rule: 'self < 10', messageExpression: "'was %d'.format([10 / (self - 20)])", message: 'big' }
    assert.deepEqual(errors(spec(failing), { spec: 20 }), ['spec: Invalid value: 20: big'])
    assert.deepEqual(errors(spec({ rule: 'self < 10' }, { rule: 'self < 11' }), { spec: 20 }).length, 2)
    assert.deepEqual(errors(spec({ rule: 'self < 10' }), { spec: 1 }), [])
  })

  it('report a reason and a field path', () => {
    const schema = (reason: string): JSONSchemaProps =>
      object({ s: ruled(object({ x: integer }), { rule: 'self.x < 1', reason, fieldPath: '.x', message: 'm' }) })
    assert.deepEqual(errors(schema('FieldValueForbidden'), { s: { x: 2 } }), ['s.x: Forbidden: m'])
    assert.deepEqual(errors(schema('FieldValueRequired'), { s: { x: 2 } }), ['s.x: Required value: m'])
    assert.deepEqual(errors(schema('FieldValueDuplicate'), { s: { x: 2 } }), ['s.x: Duplicate value'])
    assert.deepEqual(errors(schema('FieldValueInvalid'), { s: { x: 2 } }), ['s.x: Invalid value: m'])
  })

  it('fail on evaluation errors', () => {
    const schema = (rule: string): JSONSchemaProps => object({ s: ruled(object({ x: integer }), { rule }) })
    assert.deepEqual(errors(schema('10 / self.x > 1'), { s: { x: 0 } }), [
      's: Invalid value: "object": division by zero evaluating rule: 10 / self.x > 1',
    ])
    assert.deepEqual(errors(schema('self.x > 1'), { s: {} }), [
      's: Invalid value: "object": no such key: x evaluating rule: self.x > 1',
    ])
  })

  it('compare with the old value, if there is one', () => {
    const schema = spec({ rule: 'self == oldSelf' })
    assert.deepEqual(errors(schema, { spec: 2 }, { spec: 1 }), ['spec: Invalid value: 2: failed rule: self == oldSelf'])
    assert.deepEqual(errors(schema, { spec: 2 }), [])
    assert.deepEqual(errors(schema, { spec: 2 }, {}), [])
    assert.deepEqual(errors(schema, {}, { spec: 1 }), [])
    const optional = spec({ rule: 'oldSelf.hasValue() || self == 1', optionalOldSelf: true })
    assert.deepEqual(errors(optional, { spec: 2 }).length, 1)
    assert.deepEqual(errors(optional, { spec: 2 }, { spec: 1 }), [])
  })

  it('match items of keyed lists with their old values', () => {
    const items = ruled(object({ k: text, v: integer }), { rule: 'self.v >= oldSelf.v' })
    const schema = object({
      l: { type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'], items },
    })
    const old = {
      l: [
        { k: 'a', v: 2 },
        { k: 'b', v: 2 },
      ],
    }
    assert.deepEqual(
      errors(
        schema,
        {
          l: [
            { k: 'b', v: 1 },
            { k: 'c', v: 0 },
            { k: 'a', v: 3 },
          ],
        },
        old,
      ),
      ['l[0]: Invalid value: failed rule: self.v >= oldSelf.v'],
    )
  })

  it('only warn if an invalid value is unchanged', () => {
    const items = object({ k: text, v: ruled(text, { rule: 'self.size() < 3' }) })
    const schema = object({
      m: { type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'], items },
      p: { type: 'array', items: ruled(text, { rule: 'self.size() < 3' }) },
    })
    const old = { m: [{ k: 'a', v: 'long' }], p: ['long'] }
    const { errors: none, warnings } = run(schema, { ...old, m: [...old.m, { k: 'b', v: '' }] }, old)
    assert.deepEqual(none, [])
    assert.deepEqual(warnings, [
      'm[0].v: Invalid value: "long": failed rule: self.size() < 3',
      'p[0]: Invalid value: "long": failed rule: self.size() < 3',
    ])
    assert.deepEqual(errors(schema, { p: ['long', 'x'] }, old), [
      'p[0]: Invalid value: "long": failed rule: self.size() < 3',
    ])
    assert.deepEqual(errors(schema, { p: ['long'] }), ['p[0]: Invalid value: "long": failed rule: self.size() < 3'])
  })

  it('stop at the cost budget', () => {
    const hungry = { rule: 'self.all(x, self.all(y, x + y > -1))' }
    const schema = object({ l: ruled({ type: 'array', items: integer }, hungry, hungry) })
    assert.deepEqual(errors(schema, { l: Array.from({ length: 2_000 }, (_, at) => at) }), [
      `l: Invalid value: "array": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: ${hungry.rule}`,
    ])
    const many = object({ l: { type: 'array', items: ruled({ type: 'array', items: integer }, hungry) } })
    const lists = Array.from({ length: 40 }, () => Array.from({ length: 350 }, (_, at) => at))
    const { errors: faults, budgetLeft } = run(many, { l: lists })
    assert.equal(
      faults.map(fieldErrorText).at(-1)?.replace(/\d+/, 'n'),
      'l[n]: Invalid value: "array": validation failed due to running out of cost budget, no further validation rules will be run',
    )
    assert.ok(budgetLeft < 0 && RULES_BUDGET === 10_000_000)
  })

  it('run for the status as well', () => {
    const schema = structuralOf(object({ status: ruled(object({ n: integer }), { rule: 'self.n < 1' }) }))
    const { errors: faults } = validateObject({ next: { status: { n: 2 } }, old: {}, part: 'status' }, schema)
    assert.deepEqual(faults.map(fieldErrorText), ['status: Invalid value: failed rule: self.n < 1'])
  })
})
