import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'

import type { KindCases, Trial } from '../case.ts'
import { defaults, lists, namesAndVersions, parts, structure, taken } from './definition-faults.ts'
import { rules, takenRules } from './definition-rules.ts'
import { list, property, SCHEMA, VERSION } from './definition.ts'

const rule = (why: string, validation: object): Trial =>
  property(why, { type: 'integer', 'x-kubernetes-validations': [validation] })
export const customResourceDefinition: KindCases = {
  kind: CustomResourceDefinitions,
  valid: {
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: { spec: { type: 'object', properties: { a: { type: 'string' } } } },
            },
          },
        },
      ],
    },
  },
  refused: [
    { why: 'the name is not made of its parts', set: { '/metadata/name': 'widget.example.com' } },
    { why: 'the group is missing', set: { '/spec/group': '' } },
    { why: 'the group has no dot', set: { '/spec/group': 'example', '/metadata/name': 'widgets.example' } },
    { why: 'the group has capitals', set: { '/spec/group': 'Example.com' } },
    { why: 'the group is protected', set: { '/spec/group': 'a.k8s.io', '/metadata/name': 'widgets.a.k8s.io' } },
    { why: 'the scope is unknown', set: { '/spec/scope': 'Galaxy' } },
    { why: 'the scope is missing', set: { '/spec/scope': '' } },
    { why: 'the plural has capitals', set: { '/spec/names/plural': 'Widgets' } },
    { why: 'the plural is missing', set: { '/spec/names/plural': '' } },
    { why: 'the kind is missing', set: { '/spec/names/kind': '' } },
    { why: 'the kind has a dot', set: { '/spec/names/kind': 'Wid.get' } },
    { why: 'the kind is that of its list', set: { '/spec/names/listKind': 'Widget' } },
    { why: 'a short name has capitals', set: { '/spec/names/shortNames': ['W'] } },
    { why: 'a category has a space', set: { '/spec/names/categories': ['a b'] } },
    { why: 'versions are missing', set: { '/spec/versions': undefined } },
    { why: 'a version has capitals', set: { [`${VERSION}/name`]: 'V1' } },
    {
      why: 'a repeated version',
      set: {
        '/spec/versions/-': {
          name: 'v1',
          served: true,
          storage: false,
          schema: { openAPIV3Schema: { type: 'object' } },
        },
      },
    },
    {
      why: 'two versions are stored',
      set: {
        '/spec/versions/-': {
          name: 'v2',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object' } },
        },
      },
    },
    {
      why: 'no version is stored',
      set: { [`${VERSION}/storage`]: false },
    },
    { why: 'a version has no schema', set: { [`${VERSION}/schema`]: undefined } },
    { why: 'a deprecation warning without deprecation', set: { [`${VERSION}/deprecationWarning`]: 'old' } },
    { why: 'the schema has no type', set: { [`${SCHEMA}/type`]: undefined } },
    { why: 'the schema is not an object', set: { [SCHEMA]: { type: 'string' } } },
    {
      why: 'the schema limits metadata',
      set: { [`${SCHEMA}/properties/metadata`]: { type: 'object', properties: { labels: { type: 'object' } } } },
    },
    property('a property has no type', { description: 'x' }),
    property('a property has an unknown type', { type: 'text' }),
    property('a list has no items', { type: 'array' }),
    property('an object has both kinds of properties', {
      type: 'object',
      properties: { b: { type: 'string' } },
      additionalProperties: { type: 'string' },
    }),
    property('items are unique', { type: 'array', uniqueItems: true, items: { type: 'string' } }),
    property('a reference is used', { $ref: '#/definitions/x' }),
    property('a reference is empty', { type: 'string', $ref: '' }),
    property('further items are allowed', { type: 'array', items: { type: 'string' }, additionalItems: {} }),
    property('a pattern is none', { type: 'string', pattern: '(' }),
    property('an alternative has a type', { type: 'string', anyOf: [{ type: 'string' }, { minLength: 1 }] }),
    property('a list is of an unknown kind', list({ 'x-kubernetes-list-type': 'bag' })),
    property('a map has no keys', list({ 'x-kubernetes-list-type': 'map' })),
    property('a map has unknown keys', list({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['z'] })),
    property('a map has optional keys', list({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'] })),
    property('keys are of no map', list({ 'x-kubernetes-list-map-keys': ['k'] })),
    property('a set is of objects', list({ 'x-kubernetes-list-type': 'set' })),
    property('a map is of an unknown kind', { type: 'object', 'x-kubernetes-map-type': 'bag' }),
    property('preserveUnknownFields is false', { type: 'object', 'x-kubernetes-preserve-unknown-fields': false }),
    property('an embedded resource is text', { type: 'string', 'x-kubernetes-embedded-resource': true }),
    rule('a rule is empty', { rule: '' }),
    rule('a rule has a reason that is unknown', { rule: 'self > 1', reason: 'Odd' }),
    rule('a rule has a field path to nowhere', { rule: 'self > 1', fieldPath: '.b' }),
    rule('a rule has a message over lines', { rule: 'self > 1', message: 'a\nb' }),
    {
      why: 'a column has no path',
      set: { [`${VERSION}/additionalPrinterColumns`]: [{ name: 'A', type: 'string', jsonPath: '' }] },
    },
    {
      why: 'a column has an unknown type',
      set: { [`${VERSION}/additionalPrinterColumns`]: [{ name: 'A', type: 'text', jsonPath: '.spec.a' }] },
    },
    {
      why: 'a scale has no paths',
      set: { [`${VERSION}/subresources`]: { scale: { specReplicasPath: '', statusReplicasPath: '' } } },
    },
    {
      why: 'a scale has paths elsewhere',
      set: { [`${VERSION}/subresources`]: { scale: { specReplicasPath: '.status.a', statusReplicasPath: '.spec.a' } } },
    },
    { why: 'a selectable field is not there', set: { [`${VERSION}/selectableFields`]: [{ jsonPath: '.spec.z' }] } },
    { why: 'the conversion is unknown', set: { '/spec/conversion': { strategy: 'Odd' } } },
    { why: 'a webhook is missing', set: { '/spec/conversion': { strategy: 'Webhook' } } },
    {
      why: 'a webhook has no versions',
      set: {
        '/spec/conversion': {
          strategy: 'Webhook',
          webhook: { clientConfig: { url: 'https://a.example.com' }, conversionReviewVersions: [] },
        },
      },
    },
    {
      why: 'a webhook is called in the clear',
      set: {
        '/spec/conversion': {
          strategy: 'Webhook',
          webhook: { clientConfig: { url: 'http://a.example.com' }, conversionReviewVersions: ['v1'] },
        },
      },
    },
    {
      why: 'a webhook is nowhere',
      set: {
        '/spec/conversion': { strategy: 'Webhook', webhook: { clientConfig: {}, conversionReviewVersions: ['v1'] } },
      },
    },
    ...namesAndVersions,
    ...structure,
    ...lists,
    ...defaults,
    ...parts,
    ...rules,
    { why: 'unknown fields are kept everywhere', set: { '/spec/preserveUnknownFields': true } },
    { why: 'the group changes', on: 'update', set: { '/spec/group': 'other.com' } },
    { why: 'the plural changes', on: 'update', set: { '/spec/names/plural': 'gadgets' } },
    {
      why: 'no version is stored any more',
      on: 'update',
      set: { [`${VERSION}/storage`]: false },
    },
  ],
  taken: [
    ...taken,
    ...takenRules,
    {
      why: 'a column has a path that is none',
      set: { [`${VERSION}/additionalPrinterColumns`]: [{ name: 'A', type: 'string', jsonPath: '.spec[' }] },
    },
    property('unknown fields are kept of text', { type: 'string', 'x-kubernetes-preserve-unknown-fields': true }),
    property('it is an integer or text and something else', { 'x-kubernetes-int-or-string': true, type: 'string' }),
    property('nothing more is allowed', { type: 'object', additionalProperties: false }),
  ],
}
