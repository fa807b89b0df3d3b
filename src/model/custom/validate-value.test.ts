import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { JSONSchemaProps } from '#apis/apiextensions/v1.ts'
import type { JsonValue } from '#lib/json/value.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'

import { structuralOf } from './structural.ts'
import { validateValue, type ValueContext } from './validate-value.ts'

const object = (properties: Record<string, JSONSchemaProps>, more: JSONSchemaProps = {}): JSONSchemaProps => ({
  type: 'object',
  properties,
  ...more,
})

function faults(value: unknown, schema: JSONSchemaProps, context?: ValueContext): FieldError[] {
  return validateValue(value as JsonValue, structuralOf(schema), context)
}

const texts = (...args: Parameters<typeof faults>): string[] => faults(...args).map(fieldErrorText)

/** Errors of `spec.f`, which has the schema; without the usual path. */
function inField(value: unknown, schema: JSONSchemaProps): string[] {
  return texts({ spec: { f: value } }, object({ spec: object({ f: schema }) }))
}

type Case = readonly [value: unknown, schema: JSONSchemaProps, faults: readonly string[]]

function runCases(cases: readonly Case[]): void {
  for (const [value, schema, expected] of cases) {
    const title = JSON.stringify([value, schema], (_, part: unknown) => (typeof part === 'bigint' ? `${part}n` : part))
    assert.deepEqual(inField(value, schema), expected, title)
  }
}

const at = (text: string): string => `spec.f: Invalid value: ${text}`

describe('type check of a custom resource value', () => {
  it('compares the value with its schema', () => {
    const wrong = (expected: string, actual: string): string[] => [
      at(`"${actual}": spec.f in body must be of type ${expected}: "${actual}"`),
    ]
    runCases([
      [1, { type: 'string' }, wrong('string', 'integer')],
      [true, { type: 'string' }, wrong('string', 'boolean')],
      [[], { type: 'object' }, wrong('object', 'array')],
      [{}, { type: 'boolean' }, wrong('boolean', 'object')],
      ['1', { type: 'integer' }, wrong('integer', 'string')],
      [1.5, { type: 'boolean' }, wrong('boolean', 'number')],
      [null, { type: 'string' }, wrong('string', 'null')],
      [null, { type: 'string', nullable: true }, []],
      [1, { type: 'number' }, []],
      ['x', { 'x-kubernetes-int-or-string': true }, []],
      [8, { 'x-kubernetes-int-or-string': true }, []],
      [true, { 'x-kubernetes-int-or-string': true }, wrong('integer,string', 'boolean')],
      [{ any: [1] }, { 'x-kubernetes-preserve-unknown-fields': true }, []],
    ])
    assert.equal(faults({ f: 1 }, object({ f: { type: 'string' } }))[0]?.type, 'FieldValueTypeInvalid')
  })

  it('reports errors by index, by key and from the given root', () => {
    const strings: JSONSchemaProps = { type: 'array', items: { type: 'string' } }
    assert.deepEqual(texts({ a: ['x', 1] }, object({ a: strings })), [
      'a[1]: Invalid value: "integer": a[1] in body must be of type string: "integer"',
    ])
    assert.deepEqual(
      texts({ p: { k: 1 } }, object({ p: { type: 'object', additionalProperties: { type: 'string' } } })),
      ['p.k: Invalid value: "integer": p.k in body must be of type string: "integer"'],
    )
    assert.deepEqual(texts({ ready: 1 }, object({ ready: { type: 'string' } }), { path: fieldPath('status') }), [
      'status.ready: Invalid value: "integer": ready in body must be of type string: "integer"',
    ])
    assert.deepEqual(texts('x', { type: 'integer' }, { path: fieldPath('spec.default') }), [
      'spec.default: Invalid value: "string":  in body must be of type integer: "string"',
    ])
  })

  it('checks the range of int32 and int64, and of no other formats', () => {
    const nowhere = (text: string): string =>
      `<nil>: Invalid value: "": Checked value must be of type ${text} in spec.f`
    runCases([
      [1, { type: 'integer' }, []],
      [9_007_199_254_740_993n, { type: 'integer', format: 'int64' }, []],
      [
        1.5,
        { type: 'integer' },
        [at('"number": spec.f in body must be of type integer: "number"'), nowhere('integer (default format)')],
      ],
      [2 ** 31, { type: 'integer', format: 'int32' }, [nowhere('integer with format int32')]],
      [
        1e20,
        { type: 'integer', format: 'int64' },
        [at('"float64": spec.f in body must be of type int64: "float64"'), nowhere('integer with format int64')],
      ],
      [1e300, { type: 'number', format: 'float' }, [nowhere('number with format float')]],
      [true, { type: 'integer', format: 'int32' }, [at('"": spec.f in body must be of type int32: ""')]],
    ])
  })
})

describe('validation of a custom resource value', () => {
  it('lists the allowed values of an enum', () => {
    runCases([
      ['c', { type: 'string', enum: ['a', 'b'] }, ['spec.f: Unsupported value: "c": supported values: "a", "b"']],
      [3, { type: 'integer', enum: [1, 2] }, ['spec.f: Unsupported value: 3: supported values: "1", "2"']],
      ['a', { type: 'string', enum: ['a'] }, []],
      ['A1', { type: 'string', pattern: '^[a-z]+$' }, [at('"A1": spec.f in body should match \'^[a-z]+$\'')]],
    ])
  })

  it('checks limits of numbers', () => {
    const shouldBe = (shown: string, text: string): string[] => [at(`${shown}: spec.f in body should be ${text}`)]
    runCases([
      [1, { type: 'integer', minimum: 3 }, shouldBe('1', 'greater than or equal to 3')],
      [6, { type: 'integer', maximum: 5 }, shouldBe('6', 'less than or equal to 5')],
      [3, { type: 'integer', minimum: 3, exclusiveMinimum: true }, shouldBe('3', 'greater than 3')],
      [5, { type: 'integer', maximum: 5, exclusiveMaximum: true }, shouldBe('5', 'less than 5')],
      [7, { type: 'integer', multipleOf: 3 }, shouldBe('7', 'a multiple of 3')],
      [0.3, { type: 'number', multipleOf: 0.1 }, []],
      [0.25, { type: 'number', multipleOf: 0.1 }, shouldBe('0.25', 'a multiple of 0.1')],
      [1.5, { type: 'number', maximum: -1e6 }, shouldBe('1.5', 'less than or equal to -1e+06')],
      [4, { type: 'integer', multipleOf: -2 }, [at('-2: factor MultipleOf declared for spec.f must be positive: -2')]],
      [
        9_007_199_254_740_993n,
        { type: 'integer', maximum: 5 },
        shouldBe('9007199254740993', 'less than or equal to 5'),
      ],
    ])
  })

  it('checks limits of sizes', () => {
    runCases([
      ['a', { type: 'string', minLength: 2 }, [at('"a": spec.f in body should be at least 2 chars long')]],
      ['abcd', { type: 'string', maxLength: 3 }, ['spec.f: Too long: may not be more than 3 bytes']],
      ['äöü', { type: 'string', maxLength: 3 }, []],
      ['😀😀', { type: 'string', maxLength: 2 }, []],
      [[], { type: 'array', minItems: 1 }, [at('0: spec.f in body should have at least 1 items')]],
      [[1, 2, 3], { type: 'array', maxItems: 2 }, ['spec.f: Too many: 3: must have at most 2 items']],
      [{}, { type: 'object', minProperties: 1 }, [at('0: spec.f in body should have at least 1 properties')]],
      [{ a: 1, b: 2, c: 3 }, { type: 'object', maxProperties: 2 }, ['spec.f: Too many: 3: must have at most 2 items']],
      [
        {},
        object({ x: { type: 'string' } }, { required: ['x', 'y'] }),
        ['spec.f.x: Required value', 'spec.f.y: Required value'],
      ],
      [
        { x: 1 },
        { type: 'object', additionalProperties: false },
        [at('"x": spec.f.x in body is a forbidden property')],
      ],
    ])
    assert.deepEqual(texts({}, { type: 'object', required: ['spec'] }), ['spec: Required value'])
  })

  it('supports allOf, anyOf, oneOf and not', () => {
    const nowhere = (text: string): string => `<nil>: Invalid value: "": "spec.f" ${text}`
    const both = object({ p: { type: 'string' }, q: { type: 'string' } })
    const oneOf = { ...both, oneOf: [{ required: ['p'] }, { required: ['q'] }] }
    const anyOf = { ...both, anyOf: [{ required: ['p'] }, { required: ['q'] }] }
    runCases([
      [
        {},
        oneOf,
        [nowhere('must validate one and only one schema (oneOf). Found none valid'), 'spec.f.p: Required value'],
      ],
      [{ p: '', q: '' }, oneOf, [nowhere('must validate one and only one schema (oneOf). Found 2 valid alternatives')]],
      [{ p: '' }, oneOf, []],
      [{}, anyOf, [nowhere('must validate at least one schema (anyOf)'), 'spec.f.p: Required value']],
      [
        1,
        { type: 'integer', allOf: [{ minimum: 2 }, { minimum: 3 }] },
        [
          at('1: spec.f in body should be greater than or equal to 2'),
          at('1: spec.f in body should be greater than or equal to 3'),
          nowhere('must validate all the schemas (allOf). None validated'),
        ],
      ],
      [
        2,
        { type: 'integer', allOf: [{ minimum: 2 }, { minimum: 3 }] },
        [
          at('2: spec.f in body should be greater than or equal to 3'),
          nowhere('must validate all the schemas (allOf)'),
        ],
      ],
      [1, { type: 'integer', not: { minimum: 1 } }, [nowhere('must not validate the schema (not)')]],
    ])
  })

  it('reports the best matching alternative of oneOf and anyOf', () => {
    const schema = {
      ...object({ a: { type: 'integer' }, b: { type: 'integer' } }),
      oneOf: [{ required: ['c'] }, { properties: { a: { maximum: 1 }, b: { minimum: 9 } } }],
    }
    const [, nearest] = inField({ a: 1, b: 1 }, schema)
    assert.equal(nearest, 'spec.f.b: Invalid value: 1: spec.f.b in body should be greater than or equal to 9')
  })

  it('reports at most a thousand errors', () => {
    const many = Array.from({ length: 5_000 }, () => 1)
    assert.equal(inField(many, { type: 'array', items: { type: 'string' } }).length, 1_000)
  })
})

describe('validation of an unchanged custom resource value', () => {
  const tight = object({
    s: { type: 'string', maxLength: 2 },
    list: { type: 'array', items: { type: 'string', maxLength: 2 } },
    keyed: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
      items: object({ k: { type: 'string' }, v: { type: 'string', maxLength: 2 } }),
    },
    req: object({ x: { type: 'string' } }, { required: ['x'] }),
  })
  const update = (old: object, next: object): string[] =>
    texts({ spec: next }, object({ spec: tight }), { old: { spec: old } as JsonValue })

  it('is skipped', () => {
    assert.deepEqual(update({ s: 'long' }, { s: 'long', list: ['x'] }), [])
    assert.deepEqual(update({ s: 'long' }, { s: 'longer' }), ['spec.s: Too long: may not be more than 2 bytes'])
    assert.deepEqual(update({ req: {} }, { req: {}, s: 'x' }), [])
    const item = { k: 'a', v: 'long' }
    assert.deepEqual(update({ keyed: [item] }, { keyed: [{ k: 'b', v: 'x' }, item] }), [])
  })

  it('is not skipped in lists without keys, nor on create', () => {
    assert.deepEqual(update({ list: ['long'] }, { list: ['long', 'x'] }), [
      'spec.list[0]: Too long: may not be more than 2 bytes',
    ])
    assert.deepEqual(update({ list: ['long'] }, { list: ['long'], s: 'x' }), [])
    assert.deepEqual(texts({ spec: { s: 'long' } }, object({ spec: tight })), [
      'spec.s: Too long: may not be more than 2 bytes',
    ])
  })
})
