/** Refusal cases: invalid parts of a CustomResourceDefinition, except for validation rules. */
import type { Trial } from '../case.ts'
import { list, property, SCHEMA, VERSION } from './definition.ts'

const text = { type: 'string' }
const object = (properties: object, more: object = {}): object => ({ type: 'object', properties, ...more })
const schema = (why: string, openAPIV3Schema: unknown): Trial => ({ why, set: { [SCHEMA]: openAPIV3Schema } })
const version = (name: string, more: object = {}): object => ({
  name,
  served: true,
  storage: false,
  schema: { openAPIV3Schema: { type: 'object' } },
  ...more,
})
const webhook = (why: string, part: object): Trial => ({
  why,
  set: {
    '/spec/conversion': {
      strategy: 'Webhook',
      webhook: { clientConfig: { url: 'https://a.example.com' }, conversionReviewVersions: ['v1'], ...part },
    },
  },
})
const approval = (why: string, annotation: string): Trial => ({
  why,
  set: {
    '/spec/group': 'a.k8s.io',
    '/metadata/name': 'widgets.a.k8s.io',
    '/metadata/annotations': { 'api-approved.kubernetes.io': annotation },
  },
})

export const namesAndVersions: readonly Trial[] = [
  approval('the approval of a protected group is invalid', 'sure'),
  {
    why: 'the second of two schemas is wrong',
    set: { '/spec/versions/-': version('v2', { schema: { openAPIV3Schema: { type: 'string' } } }) },
  },
  {
    why: 'both of two equal schemas are wrong',
    set: {
      [SCHEMA]: { type: 'string' },
      '/spec/versions/-': version('v2', { schema: { openAPIV3Schema: { type: 'string' } } }),
    },
  },
  { why: 'no version is stored of two', set: { [`${VERSION}/storage`]: false, '/spec/versions/-': version('v2') } },
  {
    why: 'a repeated version with equal schemas',
    set: { [SCHEMA]: { type: 'object' }, '/spec/versions/-': version('v1') },
  },
  {
    why: 'a warning is too long',
    set: { [`${VERSION}/deprecated`]: true, [`${VERSION}/deprecationWarning`]: 'x'.repeat(257) },
  },
  {
    why: 'a warning has more lines',
    set: { [`${VERSION}/deprecated`]: true, [`${VERSION}/deprecationWarning`]: 'a\nb' },
  },
  { why: 'a warning is empty', set: { [`${VERSION}/deprecated`]: true, [`${VERSION}/deprecationWarning`]: '' } },
  webhook('a webhook with unknown review versions', { conversionReviewVersions: ['v2', 'v3'] }),
  webhook('a webhook with a repeated review version', { conversionReviewVersions: ['v1', 'v1'] }),
  webhook('a webhook is at a service without a name', { clientConfig: { service: { namespace: 'a', name: '' } } }),
  {
    why: 'a webhook has no use',
    set: {
      '/spec/conversion': {
        strategy: 'None',
        webhook: { clientConfig: { url: 'https://a.example.com' }, conversionReviewVersions: ['v1'] },
      },
    },
  },
]

export const structure: readonly Trial[] = [
  schema('additional properties are at the root', { type: 'object', additionalProperties: text }),
  schema('the root may be null', { type: 'object', nullable: true }),
  schema('the kind is a number', object({ apiVersion: { type: 'integer' }, kind: { type: 'integer' } })),
  schema('the metadata is described', object({ metadata: { type: 'object', description: 'x' } })),
  schema('the metadata has a default', object({ metadata: object({ name: { type: 'string', default: 'x' } }) })),
  {
    why: 'the root has a limit, and there is a status',
    set: { [SCHEMA]: { type: 'object', maxProperties: 3 }, [`${VERSION}/subresources`]: { status: {} } },
  },
  {
    why: 'the root is text, and there is a status',
    set: { [SCHEMA]: text, [`${VERSION}/subresources`]: { status: {} } },
  },
  property('items are a list', { type: 'array', items: [text] }),
  property('items have no type', { type: 'array', items: {} }),
  property('additional properties have no type', { type: 'object', additionalProperties: {} }),
  property('properties are named by patterns', { type: 'object', patternProperties: { a: text } }),
  property('a schema has definitions', { type: 'object', definitions: { a: text } }),
  property('a schema has dependencies', { type: 'object', dependencies: { a: ['b'] } }),
  property('a schema has an id', { type: 'object', id: 'x' }),
  property('an object with properties and additionalProperties', object({ b: text }, { additionalProperties: false })),
  property('the type is null', { type: 'null' }),
  property('an alternative with every field', {
    type: 'object',
    anyOf: [
      {
        type: 'object',
        description: 'x',
        nullable: true,
        default: {},
        title: 't',
        'x-kubernetes-validations': [{ rule: 'true' }],
      },
    ],
  }),
  property('an alternative names additional properties', { type: 'object', oneOf: [{ additionalProperties: text }] }),
  property('a number or text keeps unknown fields', {
    'x-kubernetes-int-or-string': true,
    'x-kubernetes-preserve-unknown-fields': true,
  }),
  property('an embedded resource has no fields', { type: 'object', 'x-kubernetes-embedded-resource': true }),
  property('an embedded resource has additional properties', {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    additionalProperties: text,
  }),
  property(
    'an embedded resource has invalid metadata',
    object({ metadata: text, kind: { type: 'integer' } }, { 'x-kubernetes-embedded-resource': true }),
  ),
  property(
    'metadata of an embedded resource is one',
    object(
      { metadata: { type: 'object', 'x-kubernetes-embedded-resource': true } },
      { 'x-kubernetes-embedded-resource': true },
    ),
  ),
]

const map = (part: object, keys: readonly string[] = ['k']): object =>
  list({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys, ...part })

export const lists: readonly Trial[] = [
  property('a list type is of an object', { type: 'object', 'x-kubernetes-list-type': 'set' }),
  property('a map type is of text', { type: 'string', 'x-kubernetes-map-type': 'atomic' }),
  property('repeated keys', map({ items: object({ k: text }, { required: ['k'] }) }, ['z', 'k', 'k'])),
  property('a key is an object', map({ items: object({ k: { type: 'object' } }, { required: ['k'] }) })),
  property('items of a map are text', map({ items: text })),
  property('keys are of a set', {
    type: 'array',
    'x-kubernetes-list-type': 'set',
    'x-kubernetes-list-map-keys': ['k'],
    items: text,
  }),
  property('items of a set may be null', {
    type: 'array',
    'x-kubernetes-list-type': 'set',
    items: { type: 'string', nullable: true },
  }),
  property('a key may be null', map({ items: object({ k: { type: 'string', nullable: true } }, { required: ['k'] }) })),
  property('items of a set are sets', {
    type: 'array',
    'x-kubernetes-list-type': 'set',
    items: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
  }),
  property('a map has several items', {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['k'],
    items: [text],
  }),
  property('a map has no items', {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['k'],
  }),
]

export const defaults: readonly Trial[] = [
  property('a default is of another type', { type: 'integer', default: 'x' }),
  property('a default is not allowed', { type: 'string', enum: ['a'], default: 'x' }),
  property('a default has unknown fields', object({ b: text }, { default: { zz: 1 } })),
  property(
    'a part of a default is of another type',
    object({ b: { type: 'array', items: text } }, { default: { b: [1] } }),
  ),
  property('a default breaks several rules', { type: 'string', minLength: 2, pattern: '^a', default: 'x' }),
  property('a default without a required field', object({ b: text, c: text }, { required: ['b', 'c'], default: {} })),
  property(
    'a default of an embedded resource is none',
    object({ b: text }, { 'x-kubernetes-embedded-resource': true, default: { b: 'x' } }),
  ),
  property(
    'a default in metadata is invalid',
    object(
      { metadata: object({ name: { type: 'string', default: '?/' } }) },
      { 'x-kubernetes-embedded-resource': true },
    ),
  ),
  property(
    'a default in additional properties of metadata',
    object(
      { metadata: object({ labels: { type: 'object', additionalProperties: { type: 'string', default: 'x' } } }) },
      { 'x-kubernetes-embedded-resource': true },
    ),
  ),
  schema('the whole has a default', object({ spec: { type: 'object' } }, { default: { spec: {} } })),
  property('a default is of another type than its format', { type: 'object', format: 'date', default: 'x' }),
  property('a default of items is of another type', { type: 'array', items: { type: 'string', default: 1 } }),
]

const column = (why: string, part: object): Trial => ({
  why,
  set: { [`${VERSION}/additionalPrinterColumns`]: [{ name: 'A', type: 'string', jsonPath: '.spec.a', ...part }] },
})
const scale = (why: string, part: object): Trial => ({
  why,
  set: {
    [`${VERSION}/subresources`]: { scale: { specReplicasPath: '.spec.a', statusReplicasPath: '.status.a', ...part } },
  },
})
const fields = (why: string, ...paths: readonly string[]): Trial => ({
  why,
  set: { [`${VERSION}/selectableFields`]: paths.map((jsonPath) => ({ jsonPath })) },
})

export const parts: readonly Trial[] = [
  column('a column has no name', { name: '' }),
  column('a column has no type', { type: '' }),
  column('a column has an unknown format', { format: 'foo' }),
  column('a column has a path without a dot', { jsonPath: 'spec.a' }),
  scale('a scale has a path without a dot', { specReplicasPath: 'spec.replicas' }),
  scale('a scale has a selector elsewhere', { labelSelectorPath: '.metadata.labels' }),
  fields('a selectable field is an object', '.spec'),
  fields('a selectable field is in metadata', '.metadata.name'),
  fields('a selectable field has no dot', 'spec.a'),
  fields('a repeated selectable field', '.spec.a', '.spec.a'),
  {
    why: 'there are nine selectable fields',
    set: {
      [`${SCHEMA}/properties/spec/properties`]: Object.fromEntries(Array.from('abcdefghi', (name) => [name, text])),
      [`${VERSION}/selectableFields`]: Array.from('abcdefghi', (name) => ({ jsonPath: `.spec.${name}` })),
    },
  },
  {
    why: 'a selectable field has no schema',
    set: { [`${VERSION}/schema`]: undefined, [`${VERSION}/selectableFields`]: [{ jsonPath: '.spec.a' }] },
  },
]

export const taken: readonly Trial[] = [
  schema('the root has a limit, and there is no status', { type: 'object', maxProperties: 3 }),
  property('what must not be names a field', { type: 'object', not: { properties: { b: { minLength: 1 } } } }),
  property('the format is unknown', { type: 'string', format: 'foo' }),
  property('the minimum is above the maximum', { type: 'integer', minimum: 2, maximum: 1 }),
  property('a multiple is negative', { type: 'integer', multipleOf: -1 }),
  property('nothing is allowed', { type: 'string', enum: [] }),
  property('a minimum is exclusive that is not there', { type: 'integer', exclusiveMinimum: true }),
  property('a default is null', { type: 'string', default: null }),
  schema('the status has a default without being a part', object({ status: object({ a: text }, { default: {} }) })),
  approval('a protected group is not approved, and says so', 'unapproved, testing'),
  approval('a protected group is approved', 'https://github.com/kubernetes/kubernetes/pull/1'),
]
