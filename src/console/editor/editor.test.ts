/** Tests the pure parts of the editor: YAML, paths, schema, plans of edits, merges. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { KubeObject } from '#meta/object.ts'

import { type EditedObject, planEdit } from './changes.ts'
import { placeAt } from './cursor-path.ts'
import { ownersOf } from './field-owners.ts'
import { parseFieldPath, pathText, stepsIn } from './field-path.ts'
import { lintValue } from './lint-schema.ts'
import { mergeLines } from './merge-lines.ts'
import { type Schema, schemaAt, schemaOfKind, type Schemas, typeText } from './schema.ts'
import { describeAt, suggestionsAt } from './suggest.ts'
import { editable, parseDocuments, toYaml } from './yaml-text.ts'

const SCHEMAS: Schemas = {
  Pod: {
    type: 'object',
    required: ['spec'],
    'x-kubernetes-group-version-kind': [{ group: '', version: 'v1', kind: 'Pod' }],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: { allOf: [{ $ref: '#/components/schemas/Spec' }], description: 'The wanted state.' },
    },
  },
  Spec: {
    type: 'object',
    properties: {
      replicas: { type: 'integer' },
      restartPolicy: { type: 'string', enum: ['Always', 'Never'], description: 'When to restart.' },
      hostNetwork: { type: 'boolean' },
      selector: { type: 'object', additionalProperties: { type: 'string' } },
      args: { type: 'array', items: { type: 'string' } },
      containers: {
        type: 'array',
        items: { $ref: '#/components/schemas/Container' },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      },
    },
  },
  Container: {
    type: 'object',
    required: ['name'],
    properties: {
      name: { type: 'string' },
      image: { type: 'string' },
      port: { format: 'int-or-string' },
      args: { type: 'array', items: { type: 'string' } },
    },
  },
}
const root = schemaOfKind(SCHEMAS, 'v1', 'Pod') as Schema
const kindSchema = { schemas: SCHEMAS, root }

describe('YAML of objects', () => {
  it('has the rules of Kubernetes: octal numbers, times as text', () => {
    const [{ object } = { object: undefined }] = parseDocuments('a: 0644\nb: 2001-12-14\nc: yes\nd: 12:30:45\n')
    assert.deepEqual(
      { ...object, metadata: undefined },
      { a: 420, b: '2001-12-14', c: true, d: '12:30:45', metadata: undefined },
    )
    assert.match(toYaml({ a: 'yes', b: '0644' }), /a: "yes"\nb: "0644"/)
  })

  it('leaves out what the server writes', () => {
    const object = {
      kind: 'Pod',
      metadata: { name: 'a', uid: 'u', managedFields: [] },
      spec: {},
      status: {},
    } as KubeObject
    assert.deepEqual(editable(object), { kind: 'Pod', metadata: { name: 'a' }, spec: {} })
  })

  it('finds the range of a field or of its nearest parent', () => {
    const text = 'spec:\n  containers:\n  - name: app\n    image: x\n'
    const [document] = parseDocuments(text)
    const cut = (path: string): string => {
      const { from, to } = document!.rangeOf(parseFieldPath(path))
      return text.slice(from, to)
    }
    assert.equal(cut('spec.containers[0].image'), 'image: x')
    assert.equal(cut('.spec.containers[name="app"].image'), 'image: x')
    assert.equal(cut('spec.containers[0].ports[1]'), 'name: app\n    image: x\n')
  })

  it('reports errors with their place, and documents that are no maps', () => {
    assert.match(parseDocuments('a: [1')[0]?.problems[0]?.message ?? '', /end with a \]/)
    assert.equal(parseDocuments('just text')[0]?.problems[0]?.message, 'An object must be a map')
    assert.equal(parseDocuments('').length, 0)
    assert.equal(parseDocuments('a: 1\n---\n---\nb: 2\n').length, 2)
  })
})

describe('paths of fields', () => {
  it('are read as the API server writes them', () => {
    assert.deepEqual(parseFieldPath('spec.containers[0].image'), ['spec', 'containers', 0, 'image'])
    assert.deepEqual(parseFieldPath('.spec.ports[port=80,protocol="TCP"]'), [
      'spec',
      'ports',
      { port: 80, protocol: 'TCP' },
    ])
    assert.deepEqual(parseFieldPath('metadata.labels[a.b/c]'), ['metadata', 'labels', 'a.b/c'])
  })

  it('lead through a value as far as it goes', () => {
    const value = { ports: [{ port: 80 }] }
    assert.deepEqual(stepsIn(value, parseFieldPath('.ports[port=80,protocol="TCP"].name')), ['ports', 0])
    assert.equal(pathText(['ports', 0, 'a.b']), 'ports[0][a.b]')
  })
})

describe('places in a text', () => {
  const PLACES: readonly (readonly [text: string, path: readonly (string | number)[], field: string | undefined])[] = [
    ['spec:\n  |', ['spec'], undefined],
    ['spec:\n  containers:\n  - name: app\n    im|', ['spec', 'containers', 0], undefined],
    ['spec:\n  containers:\n    - name: a\n    - name: b\n      image: |', ['spec', 'containers', 1], 'image'],
    ['spec:\n  restartPolicy: N|', ['spec'], 'restartPolicy'],
    ['a: 1\n---\nspec:\n  x|', ['spec'], undefined],
    ['spec:\n  containers:\n  - name: a\n  re|', ['spec'], undefined],
    ['|', [], undefined],
  ]
  for (const [marked, path, field] of PLACES) {
    it(`are found in ${JSON.stringify(marked)}`, () => {
      const place = placeAt(marked.replace('|', ''), marked.indexOf('|'))
      assert.deepEqual([place.path, place.field], [path, field])
    })
  }
})

describe('suggestions', () => {
  const labels = (marked: string): readonly string[] =>
    suggestionsAt(kindSchema, marked.replace('|', ''), marked.indexOf('|')).suggestions.map(({ label }) => label)

  it('are the fields that are not there yet', () => {
    assert.deepEqual(labels('kind: Pod\n|'), ['apiVersion', 'metadata', 'spec'])
    assert.deepEqual(labels('spec:\n  containers:\n  - name: a\n    i|'), ['image', 'port', 'args'])
  })

  it('are the values of an enum or a boolean', () => {
    assert.deepEqual(labels('spec:\n  restartPolicy: |'), ['Always', 'Never'])
    assert.deepEqual(labels('spec:\n  hostNetwork: |'), ['true', 'false'])
  })

  it('are written so that they stay one value, whatever characters they have', () => {
    const odd = { type: 'string', enum: ['a\nkind: Secret', 'true', 'x # y', '\u001B[31m', 'web'] } as const
    const schemas = { Odd: { properties: { mode: odd, 'a: b\nc': { type: 'string' } } } } as const
    const inserted = (text: string): readonly string[] =>
      suggestionsAt({ schemas, root: schemas.Odd }, text, text.length).suggestions.map(({ insert }) => insert)
    assert.deepEqual(inserted('mode: '), ['"a\\nkind: Secret"', '"true"', '"x # y"', String.raw`"\e[31m"`, 'web'])
    assert.deepEqual(inserted(''), ['mode: ', '"a: b\\nc": '])
    for (const text of inserted('mode: ')) {
      const [document] = parseDocuments(`mode: ${text}\n`)
      const { mode } = (document?.object ?? {}) as { mode?: (typeof odd.enum)[number] }
      assert.ok(mode !== undefined && odd.enum.includes(mode), text)
    }
  })

  it('describe the field under the pointer', () => {
    const text = 'spec:\n  restartPolicy: Always\n'
    assert.deepEqual(describeAt(kindSchema, text, text.indexOf('restart') + 3), {
      title: 'restartPolicy: string',
      text: 'When to restart.\nOne of: Always, Never',
    })
    assert.match(describeAt(kindSchema, text, 1)?.text ?? '', /wanted state/)
  })
})

describe('the schema', () => {
  it('names types', () => {
    assert.equal(typeText(SCHEMAS, schemaAt(SCHEMAS, root, ['spec', 'containers'])), '[]object')
    assert.equal(typeText(SCHEMAS, schemaAt(SCHEMAS, root, ['spec', 'selector'])), 'map of string')
    assert.equal(typeText(SCHEMAS, schemaAt(SCHEMAS, root, ['spec', 'containers', 0, 'port'])), 'integer or string')
  })

  it('finds unknown fields, wrong types and missing fields', () => {
    const value = {
      spec: { replicas: 'x', wrong: 1, restartPolicy: 'Maybe', selector: { a: 'b' }, containers: [{ image: 'i' }] },
    }
    assert.deepEqual(
      lintValue(SCHEMAS, root, value).map(({ path, message }) => `${pathText(path)}: ${message}`),
      [
        'spec.replicas: This must be integer',
        'spec.wrong: There is no field "wrong" here',
        'spec.restartPolicy: This must be one of Always, Never',
        'spec.containers[0]: The field "name" is missing',
      ],
    )
  })
})

describe('planEdit()', () => {
  const base = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a', namespace: 'n', labels: { x: '1' } },
    spec: {
      replicas: 1,
      args: ['a'],
      containers: [
        { name: 'app', image: 'i1' },
        { name: 'side', image: 's' },
      ],
    },
  } as KubeObject & { spec: object }
  const edit = (mine: object, more: Partial<EditedObject> = {}): ReturnType<typeof planEdit> =>
    planEdit({ base, mine: { ...base, ...mine }, schemas: SCHEMAS, root, ...more })

  it('applies only changed fields, and elements of lists by their keys', () => {
    const containers = [
      { name: 'app', image: 'i2' },
      { name: 'side', image: 's' },
    ]
    assert.deepEqual(edit({ spec: { ...base.spec, containers } }), {
      type: 'apply',
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'a', namespace: 'n' },
        spec: { containers: [{ name: 'app', image: 'i2' }] },
      },
    })
  })

  it('sends lists without keys whole', () => {
    const plan = edit({ spec: { ...base.spec, args: ['a', 'b'] } })
    assert.deepEqual(plan.type === 'apply' && (plan.body as { spec?: unknown }).spec, { args: ['a', 'b'] })
  })

  it('repeats fields that the console owns, which an apply would remove otherwise', () => {
    const managedFields = [
      {
        manager: 'hyperkube-console',
        operation: 'Apply' as const,
        fieldsV1: {
          'f:metadata': { 'f:labels': { 'f:x': {} } },
          'f:spec': { 'f:containers': { 'k:{"name":"side"}': { '.': {}, 'f:name': {}, 'f:image': {} } } },
        },
      },
    ]
    const plan = edit({ spec: { ...base.spec, replicas: 2 } }, { managedFields })
    assert.deepEqual(plan.type === 'apply' && plan.body, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a', namespace: 'n', labels: { x: '1' } },
      spec: { replicas: 2, containers: [{ name: 'side', image: 's' }] },
    })
  })

  it('claims nothing inside a map of which it owns only the existence', () => {
    const fieldsV1 = { 'f:metadata': { 'f:labels': { '.': {} } } }
    const managedFields = [{ manager: 'hyperkube-console', operation: 'Apply' as const, fieldsV1 }]
    const plan = edit({ spec: { ...base.spec, replicas: 2 } }, { managedFields })
    assert.deepEqual(plan.type === 'apply' && plan.body.metadata, { name: 'a', namespace: 'n', labels: {} })
  })

  it('patches when a field, an element or an order is removed, and tests what was there', () => {
    const { labels: _, ...metadata } = base.metadata
    assert.deepEqual(edit({ metadata }), {
      type: 'patch',
      body: [
        { op: 'test', path: '/metadata/labels', value: { x: '1' } },
        { op: 'remove', path: '/metadata/labels' },
      ],
      paths: [['metadata', 'labels']],
    })
    const spec = { ...base.spec, containers: [{ name: 'side', image: 's' }] }
    assert.equal(edit({ spec }).type, 'patch')
  })

  it('plans nothing for an equal object', () => assert.deepEqual(edit({}), { type: 'nothing' }))
})

describe('ownersOf()', () => {
  it('names managers that apply a field', () => {
    const object = {
      metadata: {
        managedFields: [
          {
            manager: 'helm',
            operation: 'Apply',
            fieldsV1: { 'f:spec': { 'f:containers': { 'k:{"name":"app"}': { 'f:image': {} } } } },
          },
          { manager: 'kube-controller-manager', operation: 'Update', fieldsV1: { 'f:spec': { 'f:replicas': {} } } },
        ],
      },
      spec: { replicas: 1, containers: [{ name: 'app', image: 'x' }] },
    } as unknown as KubeObject
    const paths = [
      ['spec', 'containers', 0, 'image'],
      ['spec', 'replicas'],
    ]
    assert.deepEqual(ownersOf(object, paths), [{ field: 'spec.containers[0].image', manager: 'helm' }])
  })
})

describe('mergeLines()', () => {
  const merge = (base: string, mine: string, live: string): string | undefined => {
    const changes = mergeLines(base, mine, live)
    if (changes === undefined) return undefined
    return [...changes]
      .reverse()
      .reduce((text, { from, to, insert }) => text.slice(0, from) + insert + text.slice(to), mine)
  }

  it('brings in changes of other lines', () => {
    assert.equal(merge('a\nb\nc\nd\ne\n', 'A\nb\nc\nd\ne\n', 'a\nb\nc\nd\nE\n'), 'A\nb\nc\nd\nE\n')
    assert.equal(merge('a\nb\nc\nd\ne\n', 'a\nb\nc\nd\nE\n', 'x\na\nb\nc\nd\ne\n'), 'x\na\nb\nc\nd\nE\n')
    assert.equal(merge('a\nb\nc\n', 'a\nb\nc\n', 'a\nc\n'), 'a\nc\n')
  })

  it('refuses changes of the same lines', () => {
    assert.equal(merge('a\nb\nc\n', 'a\nB\nc\n', 'a\nX\nc\n'), undefined)
  })
})
