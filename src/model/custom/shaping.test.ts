/**
 * Tests how custom resources are processed on write and read: pruning, defaults, embedded objects and list validation.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { JSONSchemaProps } from '#apis/apiextensions/v1.ts'
import type { JsonObject, JsonValue } from '#lib/json/value.ts'
import { encodeFieldsV1 } from '#meta/apply/fields-v1.ts'
import { validateTyped } from '#meta/apply/validate.ts'
import { fieldSetOf } from '#meta/apply/walk.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'

import { applyDefaults, dropNulls } from './defaults.ts'
import { coerceEmbedded, validateEmbedded } from './embedded.ts'
import { validateListTypes } from './list-types.ts'
import { validateObject } from './object-rules.ts'
import { prune } from './prune.ts'
import { structuralOf } from './structural.ts'
import { schemaOf } from './typed-schema.ts'

const object = (properties: Record<string, JSONSchemaProps>, more: JSONSchemaProps = {}): JSONSchemaProps => ({
  type: 'object',
  properties,
  ...more,
})
const text: JSONSchemaProps = { type: 'string' }
const open: JSONSchemaProps = { 'x-kubernetes-preserve-unknown-fields': true }

describe('pruning of custom resources', () => {
  const pruned = (value: object, schema: JSONSchemaProps): readonly [object, string[]] => {
    const copy = structuredClone(value) as JsonObject
    const unknown = prune(copy, structuralOf(schema))
    return [copy, unknown]
  }

  it('removes unknown fields, and returns their paths', () => {
    const schema = object({ spec: object({ a: text, objs: { type: 'array', items: object({ k: text }) } }) })
    const value = {
      apiVersion: 'v1',
      kind: 'X',
      metadata: { name: 'x' },
      spec: { zork: 1, a: 'a', objs: [{ k: 'k', b: 1 }] },
      more: {},
    }
    assert.deepEqual(pruned(value, schema), [
      { apiVersion: 'v1', kind: 'X', metadata: { name: 'x' }, spec: { a: 'a', objs: [{ k: 'k' }] } },
      ['more', 'spec.objs[0].b', 'spec.zork'],
    ])
  })

  it('keeps map entries, and preserved fields except within typed properties', () => {
    const schema = object({
      map: { type: 'object', additionalProperties: object({ a: text }) },
      open: { ...object({ named: object({ a: text }) }), ...open },
      list: { type: 'array', ...open, items: object({ a: object({ b: text }) }) },
    })
    const value = {
      map: { x: { a: '', z: 1 } },
      open: { any: { thing: 1 }, named: { a: '', z: 1 } },
      list: [{ any: 1, a: { b: '', c: 1 } }],
    }
    assert.deepEqual(pruned(value, schema), [
      { map: { x: { a: '' } }, open: { any: { thing: 1 }, named: { a: '' } }, list: [{ any: 1, a: { b: '' } }] },
      ['list[0].a.c', 'map.x.z', 'open.named.z'],
    ])
  })

  it('keeps apiVersion, kind and metadata of embedded objects', () => {
    const schema = object({ e: object({ spec: object({}) }, { 'x-kubernetes-embedded-resource': true }) })
    const e = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { x: 1 }, y: 1 }
    assert.deepEqual(pruned({ e }, schema), [
      { e: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: {} } },
      ['e.spec.x', 'e.y'],
    ])
  })

  it('empties objects in lists without an item schema, at any depth', () => {
    let deep: JsonValue = [{ z: 1 }]
    for (let level = 0; level < 9_000; level++) deep = [deep]
    const value = { s: deep }
    const unknown = prune(value, structuralOf(object({ s: text })))
    assert.equal(unknown.length, 1)
  })
})

describe('defaults of custom resources', () => {
  const defaulted = (value: object, schema: JSONSchemaProps): object => {
    const copy = structuredClone(value) as JsonObject
    applyDefaults(copy, structuralOf(schema))
    return copy
  }

  it('are set for absent fields whose parent exists or has a default', () => {
    const inner = { x: { type: 'integer', default: 5 } }
    const schema = object({ d1: object(inner), d2: object(inner, { default: {} }), d3: object(inner) })
    assert.deepEqual(defaulted({ d1: {} }, schema), { d1: { x: 5 }, d2: { x: 5 } })
  })

  it('replace null where it is not allowed; null without a default is dropped later', () => {
    const schema = object({
      a: { type: 'string', default: 'd' },
      b: text,
      n: { type: 'string', nullable: true },
      nd: { type: 'string', nullable: true, default: 'd' },
      map: { type: 'object', additionalProperties: text },
      list: { type: 'array', items: text },
    })
    const value = { a: null, b: null, n: null, nd: null, map: { k: null, l: 'x' }, list: [null] }
    assert.deepEqual(defaulted(value, schema), { ...value, a: 'd' })
    dropNulls(value, structuralOf(schema))
    assert.deepEqual(value, { a: null, n: null, nd: null, map: { l: 'x' }, list: [null] })
  })

  it('are separate copies in each object', () => {
    const schema = structuralOf(object({ a: object({ b: text }, { default: { b: 'x' } }) }))
    const first: { a: { b: string } } = { a: { b: '' } }
    const second: JsonObject = {}
    Reflect.deleteProperty(first, 'a')
    applyDefaults(first, schema)
    first.a.b = 'changed'
    applyDefaults(second, schema)
    assert.deepEqual(second, { a: { b: 'x' } })
  })
})

describe('embedded object in a custom resource', () => {
  const schema = structuralOf(
    object({ spec: object({ emb: { type: 'object', 'x-kubernetes-embedded-resource': true, ...open } }) }),
  )
  const faults = (emb: object): string[] =>
    validateEmbedded({ spec: { emb } } as JsonObject, schema).map(fieldErrorText)

  it('requires apiVersion, kind and valid metadata', () => {
    const dns1035 =
      "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
    assert.deepEqual(faults({}), ['spec.emb.apiVersion: Required value', 'spec.emb.kind: Required value'])
    assert.deepEqual(faults({ apiVersion: 'a/b/c', kind: 'Pod_' }), [
      'spec.emb.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
      `spec.emb.kind: Invalid value: "Pod_": ${dns1035}`,
    ])
    assert.deepEqual(faults({ apiVersion: '', kind: 1 }), [
      'spec.emb.apiVersion: Invalid value: "": must not be empty',
      'spec.emb.kind: Invalid value: 1: must be a string',
    ])
    assert.match(
      faults({ apiVersion: 'v1', kind: 'Pod', metadata: { labels: { a: '?' } } }).join(),
      /^spec\.emb\.metadata\.labels: Invalid value: "\?"/,
    )
    assert.deepEqual(faults({ apiVersion: 'v1', kind: 'Pod', metadata: { labels: { a: 'b' } } }), [])
  })

  it('has the metadata fields of every object', () => {
    const value = {
      spec: { emb: { metadata: { name: 'x', zz: 1, labels: { b: 'b', a: 'a' }, creationTimestamp: null } } },
    }
    const unknown: string[] = []
    assert.equal(coerceEmbedded(value as JsonObject, schema, { unknown }), undefined)
    assert.equal(JSON.stringify(value), '{"spec":{"emb":{"metadata":{"labels":{"a":"a","b":"b"},"name":"x"}}}}')
    assert.deepEqual(unknown, ['spec.emb.metadata.zz'])
  })

  it('is rejected if its metadata cannot be decoded, and loses such fields when stored', () => {
    const value = (): JsonObject => ({ spec: { emb: { kind: 1, metadata: { name: 'x', labels: { a: 1 } } } } })
    const wrongKind = coerceEmbedded(value(), schema)
    assert.equal(wrongKind && fieldErrorText(wrongKind), 'spec.emb.kind: Invalid value: 1: must be a string')
    const wrongLabels: JsonObject = { spec: { emb: { metadata: { labels: { a: 1 } } } } }
    const error = coerceEmbedded(wrongLabels, schema)
    assert.equal(
      error && fieldErrorText(error),
      'spec.emb.metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string',
    )
    const stored = value()
    assert.equal(coerceEmbedded(stored, schema, { dropInvalid: true }), undefined)
    assert.deepEqual(stored, { spec: { emb: { metadata: { name: 'x' } } } })
  })
})

describe('items of sets and keyed lists in custom resources', () => {
  const schema = structuralOf(
    object({
      st: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
      mp: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k', 'l'],
        items: object({ k: text, l: { type: 'integer', default: 7 } }),
      },
    }),
  )
  const faults = (value: object): string[] => validateListTypes(value as JsonObject, schema).map(fieldErrorText)

  it('must be unique, and are reported at their second occurrence', () => {
    assert.deepEqual(faults({ st: ['a', 'b', 'a', 'a'] }), ['st[2]: Duplicate value: "a"'])
    const twice = { k: 'a', l: 7 }
    assert.deepEqual(faults({ mp: [twice, { ...twice, v: 1 }, { k: 'a', l: 8 }] }), [
      'mp[1]: Duplicate value: {"k":"a","l":7}',
    ])
    assert.deepEqual(faults({ mp: ['x'] }), [
      'mp[0]: Invalid value: "x": must be an object for an array of list-type map',
    ])
  })

  it('may keep duplicates that the old object has', () => {
    const doubled: JsonObject = { st: ['a', 'a'] }
    assert.equal(validateObject({ next: doubled, old: doubled }, schema).errors.length, 0)
    assert.equal(validateObject({ next: doubled, old: {} }, schema).errors.length, 1)
  })
})

describe('validation of a custom resource', () => {
  const schema = structuralOf(
    object(
      {
        spec: object({ n: { type: 'integer', maximum: 1 } }, { 'x-kubernetes-validations': [{ rule: 'true' }] }),
        status: object({ ready: text }),
      },
      {},
    ),
  )
  const scale = { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n' }
  const errors = (...args: Parameters<typeof validateObject>): string[] =>
    validateObject(...args).errors.map(fieldErrorText)

  it('reports skipped CEL rules after structural errors', () => {
    const skipped =
      '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation'
    assert.deepEqual(errors({ next: { spec: { n: 'x' } } }, schema), [
      'spec.n: Invalid value: "string": spec.n in body must be of type integer: "string"',
      skipped,
    ])
    const metadataErrors = (): FieldError[] => [fieldPath('metadata.name').required('name or generateName is required')]
    assert.deepEqual(errors({ next: { spec: { n: 1 } }, metadataErrors }, schema), [skipped])
    assert.deepEqual(errors({ next: { spec: { n: 2 } } }, schema), [
      'spec.n: Invalid value: 2: spec.n in body should be less than or equal to 1',
    ])
  })

  it('checks only the status if only that is written', () => {
    assert.deepEqual(
      errors({ next: { spec: { n: 'x' }, status: { ready: 1 } }, part: 'status' }, schema)[0],
      'status.ready: Invalid value: "integer": ready in body must be of type string: "integer"',
    )
  })

  it('requires int32 replicas', () => {
    assert.deepEqual(errors({ next: { spec: { n: -1 } } }, schema, scale), [
      '.spec.n: Invalid value: -1: should be a non-negative integer',
    ])
    assert.deepEqual(errors({ next: { status: { n: 2 ** 31 } } }, schema, scale), [
      '.status.n: Invalid value: 2147483648: should be less than or equal to 2147483647',
    ])
    assert.deepEqual(errors({ next: { status: { n: 'x' } }, part: 'status' }, schema, scale), [
      '.status.n: Invalid value: 0: .status.n accessor error: x is of the type string, expected int64',
    ])
  })
})

describe('typed schema of a custom resource', () => {
  const schema = schemaOf(
    structuralOf(
      object({
        spec: object({
          n: { type: 'integer' },
          any: open,
          is: { 'x-kubernetes-int-or-string': true },
          at: { type: 'array', 'x-kubernetes-list-type': 'atomic', items: text },
          whole: { type: 'object', 'x-kubernetes-map-type': 'atomic', properties: { a: text } },
          sets: {
            type: 'object',
            additionalProperties: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
          },
          mp: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['k'],
            items: object({ k: { type: 'string', default: 'd' }, v: text }),
          },
        }),
      }),
    ),
    'io.ex.v1.Life',
  )

  it('defines the ownership of list items and map entries', () => {
    const value = {
      spec: {
        n: 1,
        any: { x: 1 },
        is: '1',
        at: ['a'],
        whole: { a: '' },
        sets: { s: ['x'] },
        mp: [{ k: '1', v: 'v' }, { v: 'w' }],
      },
    }
    assert.deepEqual(encodeFieldsV1(fieldSetOf({ schema }, value)), {
      'f:spec': {
        'f:any': { 'f:x': {} },
        'f:at': {},
        'f:is': {},
        'f:mp': {
          'k:{"k":"1"}': { '.': {}, 'f:k': {}, 'f:v': {} },
          'k:{"k":"d"}': { '.': {}, 'f:v': {} },
        },
        'f:n': {},
        'f:sets': { 'f:s': { '.': {}, 'v:"x"': {} } },
        'f:whole': {},
      },
    })
  })

  it('reports values that server-side apply cannot merge', () => {
    const value = { spec: { zork: 1, n: 'x', mp: [{ k: '1' }, { k: '1' }] } }
    assert.deepEqual(validateTyped({ schema }, value), ['.spec.zork: field not declared in schema'])
    assert.deepEqual(validateTyped({ schema }, { spec: { n: 'x', mp: [{ k: '1' }, { k: '1' }] } }), [
      '.spec.n: expected numeric (int or float), got string',
      '.spec.mp: duplicate entries for key [k="1"]',
    ])
  })
})
