/** Refusal cases: invalid custom resources of a definition whose schema uses every supported keyword. */
import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import type { Kind } from '#apis/kinds.ts'

import type { KindCases, Trial } from '../case.ts'

const group = 'custom.example.com'

const Values: Kind = {
  group,
  version: 'v1',
  kind: 'Value',
  plural: 'values',
  singular: 'value',
  listKind: 'ValueList',
  namespaced: true,
  shortNames: [],
  categories: [],
  verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  subresources: [{ name: 'status', kind: { group, version: 'v1', kind: 'Value' }, verbs: ['get', 'patch', 'update'] }],
  storage: { group, version: 'v1' },
}

const text = { type: 'string' }
const integer = { type: 'integer' }
const object = (properties: object, more: object = {}): object => ({ type: 'object', properties, ...more })
const list = (items: object, more: object = {}): object => ({ type: 'array', items, ...more })
const rule = (schema: object, ...rules: readonly object[]): object => ({ ...schema, 'x-kubernetes-validations': rules })
const pair = { p: text, q: text }

const FORMATS =
  'date-time date duration ipv4 ipv6 cidr uuid uuid3 uuid4 uuid5 uri email hostname byte mac isbn creditcard ssn hexcolor rgbcolor bsonobjectid k8s-short-name k8s-long-name'.split(
    ' ',
  )

/** `date-time` is no name for a field. */
const fieldOf = (format: string): string => `f${format.replaceAll('-', '')}`

const spec = object({
  s: text,
  i: integer,
  i32: { type: 'integer', format: 'int32' },
  i64: { type: 'integer', format: 'int64' },
  n: { type: 'number' },
  fl: { type: 'number', format: 'float' },
  b: { type: 'boolean' },
  ios: { 'x-kubernetes-int-or-string': true },
  arr: list(text, { minItems: 1, maxItems: 2 }),
  props: { type: 'object', additionalProperties: text, minProperties: 1, maxProperties: 2 },
  en: { type: 'string', enum: ['a', 'b'] },
  eni: { type: 'integer', enum: [1, 2] },
  pat: { type: 'string', pattern: '^[a-z]+$' },
  mn: { type: 'integer', minimum: 3 },
  mx: { type: 'integer', maximum: 5 },
  xmn: { type: 'integer', minimum: 3, exclusiveMinimum: true },
  xmx: { type: 'number', maximum: 5, exclusiveMaximum: true },
  mul: { type: 'integer', multipleOf: 3 },
  mulf: { type: 'number', multipleOf: 0.1 },
  neg: { type: 'integer', multipleOf: -1 },
  ln: { type: 'string', minLength: 2, maxLength: 3 },
  req: object({ x: text, y: text }, { required: ['x'] }),
  one: object(pair, { oneOf: [{ required: ['p'] }, { required: ['q'] }] }),
  any: object(pair, { anyOf: [{ required: ['p'] }, { required: ['q'] }] }),
  all: { type: 'integer', allOf: [{ minimum: 2 }, { maximum: 4 }] },
  near: object({ a: integer, b: integer }, { oneOf: [{ required: ['c'], properties: { c: {} } }] }),
  nt: object(pair, { not: { required: ['p'] } }),
  nul: { type: 'string', nullable: true },
  emb: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
  st: list(text, { 'x-kubernetes-list-type': 'set' }),
  mp: list(object({ k: text, l: { type: 'integer', default: 7 }, v: text }, { required: ['k'] }), {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['k', 'l'],
  }),
  ...Object.fromEntries(FORMATS.map((format) => [fieldOf(format), { type: 'string', format }])),
})

const ruled = object({
  n: rule(integer, { rule: 'self < 10' }),
  msg: rule(integer, { rule: 'self < 10', message: 'was big' }),
  expr: rule(integer, { rule: 'self < 10', messageExpression: "'was %d'.format([self])" }),
  bad: rule(integer, { rule: 'self < 10', messageExpression: "'was %d'.format([10 / (self - 20)])", message: 'big' }),
  forb: rule(integer, { rule: 'self < 10', reason: 'FieldValueForbidden', message: 'no' }),
  dup: rule(object({ x: integer }), { rule: 'self.x < 10', reason: 'FieldValueDuplicate', fieldPath: '.x' }),
  div: rule(object({ x: integer }), { rule: '10 / self.x > 1' }),
  two: rule(integer, { rule: 'self < 10' }, { rule: 'self < 11' }),
  fix: rule(integer, { rule: 'self == oldSelf', message: 'is fixed' }),
  opt: rule(integer, { rule: 'oldSelf.hasValue() || self == 1', optionalOldSelf: true }),
  time: rule({ type: 'string', format: 'date-time' }, { rule: "self < timestamp('2020-01-01T00:00:00Z')" }),
  keyed: list(
    rule(object({ k: { ...text, maxLength: 5 }, v: integer }, { required: ['k'] }), { rule: 'self.v >= oldSelf.v' }),
    {
      maxItems: 5,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
    },
  ),
})

const definition = {
  metadata: { name: `values.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural: 'values', kind: 'Value' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: object({
            spec,
            ruled,
            status: object({ ready: text, n: rule(integer, { rule: 'self < 10' }) }),
          }),
        },
        subresources: { status: {} },
      },
    ],
  },
}

/** One field of the spec, filled wrongly. */
const wrong = (why: string, field: string, value: unknown): Trial => ({ why, set: { [`/spec/${field}`]: value } })
const breaks = (why: string, field: string, value: unknown): Trial => ({ why, set: { [`/ruled/${field}`]: value } })

const refused: readonly Trial[] = [
  wrong('text is a number', 's', 1),
  wrong('text is a list', 's', []),
  wrong('text is a flag', 's', true),
  wrong('text is an object', 's', {}),
  wrong('a number is text', 'n', 'x'),
  wrong('an integer is broken', 'i', 1.5),
  wrong('an int32 is too large', 'i32', 2 ** 31),
  wrong('an int32 is text', 'i32', 'x'),
  wrong('an int32 is a flag', 'i32', true),
  wrong('an int64 is too large', 'i64', 1e20),
  wrong('a float is too large', 'fl', 1e300),
  wrong('a flag is text', 'b', 'true'),
  wrong('a number or text is a flag', 'ios', true),
  wrong('an item is a number', 'arr', ['a', 1]),
  wrong('an item is null', 'arr', [null]),
  wrong('items are missing', 'arr', []),
  wrong('there are too many items', 'arr', ['a', 'b', 'c']),
  wrong('a value of a map is a number', 'props', { a: 1 }),
  wrong('a map is empty', 'props', {}),
  wrong('a map has too many entries', 'props', { a: '', b: '', c: '' }),
  wrong('a value is not among those allowed', 'en', 'c'),
  wrong('a number is not among those allowed', 'eni', 3),
  wrong('text does not match', 'pat', 'A1'),
  wrong('a number is too small', 'mn', 1),
  wrong('a number is too large', 'mx', 6),
  wrong('a number is at its lower bound', 'xmn', 3),
  wrong('a number is at its upper bound', 'xmx', 5),
  wrong('a broken number is above its bound', 'xmx', 5.5),
  wrong('a number is not a multiple', 'mul', 4),
  wrong('a fractional number is not a multiple', 'mulf', 0.25),
  wrong('a multiple is impossible', 'neg', 4),
  wrong('text is too short', 'ln', 'a'),
  wrong('text is too long', 'ln', 'äöüß'),
  wrong('a required field is missing', 'req', {}),
  wrong('a required field is null', 'req', { x: null }),
  wrong('none of the alternatives fits', 'one', {}),
  wrong('two of the alternatives fit', 'one', { p: '', q: '' }),
  wrong('not one of the conditions holds', 'any', {}),
  wrong('a condition does not hold', 'all', 5),
  wrong('a "not" in a schema that is not satisfied', 'nt', { p: '' }),
  wrong('an embedded object is not an object', 'emb', {}),
  wrong('an embedded object has an unknown version', 'emb', { apiVersion: 'a/b/c', kind: 'Pod' }),
  wrong('an embedded object has an unknown kind', 'emb', { apiVersion: 'v1', kind: 'Pod_' }),
  wrong('an embedded object has invalid labels', 'emb', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { labels: { a: '?' } },
  }),
  wrong('an embedded object has an invalid name', 'emb', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a/b' } }),
  wrong('an embedded object has metadata of another type', 'emb', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { labels: { a: 1 } },
  }),
  wrong('a set has a repeated value', 'st', ['a', 'b', 'a', 'a']),
  wrong('a keyed list has a repeated key', 'mp', [{ k: 'a' }, { k: 'a', v: 'x' }, { k: 'a', l: 8 }]),
  ...FORMATS.map((format) => wrong(`a string that violates the format ${format}`, fieldOf(format), '?')),
  breaks('a rule is broken', 'n', 20),
  breaks('a rule with a message is broken', 'msg', 20),
  breaks('a rule that words itself is broken', 'expr', 20),
  breaks('a rule whose wording fails is broken', 'bad', 20),
  breaks('a rule with a reason is broken', 'forb', 20),
  breaks('a rule with a path is broken', 'dup', { x: 20 }),
  breaks('a rule divides by zero', 'div', { x: 0 }),
  breaks('a rule misses a key', 'div', {}),
  breaks('two rules are broken', 'two', 20),
  breaks('a value without an old one is not as it should be', 'opt', 2),
  breaks('a time that is too late', 'time', '2021-01-01T00:00:00Z'),
  { ...breaks('a fixed value changes', 'fix', 2), on: 'update', stored: { '/ruled/fix': 1 } },
  {
    ...breaks('an item falls behind its old self', 'keyed', [
      { k: 'b', v: 1 },
      { k: 'a', v: 3 },
      { k: 'c', v: 0 },
    ]),
    on: 'update',
    stored: {
      '/ruled/keyed': [
        { k: 'a', v: 2 },
        { k: 'b', v: 2 },
      ],
    },
  },
  { why: 'the status is of another type', on: 'update status', set: { '/status': { ready: 1 } } },
  { why: 'the status breaks a rule', on: 'update status', set: { '/status': { n: 20 } } },
  { why: 'the kind is another', set: { '/kind': 'Other' } },
  { why: 'labels are numbers', set: { '/metadata/labels': { a: 1 } } },
  { why: 'the name has capitals', set: { '/metadata/name': 'A' } },
]

export const value: KindCases = {
  kind: Values,
  given: [{ kind: CustomResourceDefinitions, object: definition }],
  valid: { metadata: { name: 'a' }, spec: { s: 'x', nul: null }, ruled: { n: 1 } },
  refused,
  taken: [
    wrong('a whole number has a point', 'i', 1.0),
    wrong('a null is dropped', 's', null),
    wrong('a null is kept', 'nul', null),
    wrong('a field is not known', 'zork', 1),
    wrong('a number is not broken', 'n', 1),
    breaks('a rule holds', 'n', 9),
    { ...breaks('a fixed value goes', 'fix', undefined), on: 'update', stored: { '/ruled/fix': 1 } },
    { ...breaks('a fixed value stays', 'n', 2), on: 'update', stored: { '/ruled/fix': 1 } },
  ],
}
