/** Tests custom resources: reads, validation errors, subresources and tables. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { APPLY, Custom, definition, type Json, MERGE, object, specSchema, TABLE } from './custom-kit.ts'

let custom: Custom
before(async () => {
  custom = await Custom.start()
})
after(() => custom.plane.stop())

const base = (plural: string, version = 'v1'): string => `/apis/ex.io/${version}/namespaces/default/${plural}`
const warningsOf = (answer: { headers: Headers }): string[] =>
  (answer.headers.get('warning') ?? '').split(/, (?=299)/).filter((text) => text !== '')

const NUMBER = { type: 'integer' }
const TEXT = { type: 'string' }

describe('a custom resource', () => {
  before(() =>
    custom.define(
      definition('Val', {
        versions: [
          {
            name: 'v1',
            schema: specSchema({
              s: TEXT,
              objs: { type: 'array', items: { type: 'object', properties: { a: TEXT } } },
              req: { type: 'object', properties: { x: TEXT } },
              emb: {
                type: 'object',
                'x-kubernetes-embedded-resource': true,
                'x-kubernetes-preserve-unknown-fields': true,
              },
            }),
          },
        ],
      }),
    ),
  )

  it('is pruned, with a warning for each unknown field', async () => {
    const body = object('Val', 'w', { spec: { zork: 1, req: { zz: 1 }, objs: [{ b: 1, a: 'x' }] } })
    const answer = await custom.ask('POST', base('vals'), body)
    assert.deepEqual(warningsOf(answer), [
      '299 - "unknown field \\"spec.objs[0].b\\""',
      '299 - "unknown field \\"spec.req.zz\\""',
      '299 - "unknown field \\"spec.zork\\""',
    ])
    assert.deepEqual((answer.json() as Json).spec, { objs: [{ a: 'x' }], req: {} })
  })

  it('is rejected for unknown fields with strict validation', async () => {
    const body = object('Val', 'st', { spec: { zork: 1, objs: [{ b: 1 }] } })
    assert.equal(
      await custom.refused('POST', `${base('vals')}?fieldValidation=Strict`, body),
      '400 Val in version "v1" cannot be handled as a Val: strict decoding error: unknown field "spec.objs[0].b", unknown field "spec.zork"',
    )
    const double = `{"apiVersion":"ex.io/v1","kind":"Val","metadata":{"name":"d"},"spec":{"zork":1,"s":"a","s":"b"}}`
    assert.equal(
      await custom.refused('POST', `${base('vals')}?fieldValidation=Strict`, double),
      '400 Val in version "v1" cannot be handled as a Val: strict decoding error: duplicate field "spec.s", unknown field "spec.zork"',
    )
    await custom.must('POST', base('vals'), object('Val', 'patched', { spec: { s: 'a' } }))
    assert.match(
      await custom.refused('PATCH', `${base('vals')}/patched?fieldValidation=Strict`, { spec: { zork: 1 } }, MERGE),
      /^422 {2}"" is invalid: patch: Invalid value: "\{.*"zork\\":1.*\}": strict decoding error: unknown field "spec.zork"$/,
    )
  })

  it('requires kind and apiVersion', async () => {
    assert.equal(
      await custom.refused('POST', base('vals'), object('Foo', 'x')),
      '422 Foo.ex.io "x" is invalid: kind: Invalid value: "Foo": must be Val',
    )
    assert.equal(
      await custom.refused('POST', base('vals'), object('Val', 'x', {}, 'ex.io/v2')),
      '400 the API version in the data (ex.io/v2) does not match the expected API version (ex.io/v1)',
    )
    assert.match(
      await custom.refused('POST', base('vals'), { apiVersion: 'ex.io/v1', metadata: { name: 'x' } }),
      /^400 the object provided is unrecognized \(must be of type Val\): Object 'Kind' is missing in '\{.*\}' \(\{.*\)$/,
    )
    await custom.must('POST', base('vals'), object('Val', 'named', { spec: {} }))
    assert.equal(
      await custom.refused('PATCH', `${base('vals')}/named`, { apiVersion: 'ex.io/v9' }, MERGE),
      '422 Val.ex.io "named" is invalid: apiVersion: Invalid value: "ex.io/v9": must be ex.io/v1',
    )
    assert.match(
      await custom.refused('POST', base('vals'), { ...object('Val', 'x'), metadata: { name: 'x', labels: { a: 1 } } }),
      /^400 .*json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string$/,
    )
  })

  it('may be written as JSON or YAML, and supports three patch types', async () => {
    const protobuf = { 'content-type': 'application/vnd.kubernetes.protobuf' }
    assert.match(await custom.refused('POST', base('vals'), 'k8s', protobuf), /^415 the body of the request was in an/)
    const only = { accept: 'application/vnd.kubernetes.protobuf' }
    assert.match(await custom.refused('GET', base('vals'), undefined, only), /^406 /)
    const either = { accept: 'application/vnd.kubernetes.protobuf, application/json' }
    assert.equal((await custom.must('GET', base('vals'), undefined, either)).kind, 'ValList')
    const cbor = { accept: 'application/cbor' }
    assert.equal(
      await custom.refused('GET', base('vals'), undefined, cbor),
      '406 only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf',
    )
    const strategic = { 'content-type': 'application/strategic-merge-patch+json' }
    assert.equal(
      await custom.refused('PATCH', `${base('vals')}/named`, {}, strategic),
      '415 the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
    )
  })

  it('exists only in its namespace and version', async () => {
    const nothing = '404 404 page not found\n'
    for (const path of [base('vals', 'v7'), base('nones'), '/apis/ex.io/v7', '/apis/ex.io/v1/nodes/x']) {
      assert.equal(await custom.refused('GET', path), nothing, path)
    }
    assert.equal(await custom.refused('POST', '/apis/ex.io/v1/vals', object('Val', 'x')), nothing)
    await custom.define(definition('Clustered', { scope: 'Cluster' }))
    assert.equal(await custom.refused('GET', base('clustereds')), nothing)
    await custom.must('POST', '/apis/ex.io/v1/clustereds', object('Clustered', 'x'))
    assert.equal((await custom.must('GET', '/apis/ex.io/v1/clustereds/x')).metadata.namespace, undefined)
  })
})

describe('defaults of a custom resource', () => {
  it('are set on write and, for older objects, on read', async () => {
    const early = specSchema({ a: TEXT, b: TEXT })
    await custom.define(definition('Late', { versions: [{ name: 'v1', schema: early }] }))
    const made = await custom.must('POST', base('lates'), object('Late', 'old', { spec: { a: 'x', b: 'y' } }))
    await custom.redefine('lates.ex.io', (spec) => {
      spec.versions[0].schema = specSchema({
        a: TEXT,
        c: { type: 'string', default: 'dc' },
        d2: { type: 'object', default: {}, properties: { x: { type: 'string', default: 'dx' } } },
        d3: { type: 'object', properties: { x: { type: 'string', default: 'dx' } } },
      })
    })
    const shown = await custom.must('GET', `${base('lates')}/old`)
    assert.deepEqual(shown.spec, { a: 'x', c: 'dc', d2: { x: 'dx' } })
    assert.equal(shown.metadata.resourceVersion, made.metadata.resourceVersion)
    assert.deepEqual((await custom.must('GET', base('lates'))).items[0].spec, shown.spec)
    const labelled = await custom.must('PATCH', `${base('lates')}/old`, { metadata: { labels: { l: '1' } } }, MERGE)
    assert.deepEqual([labelled.metadata.generation, labelled.spec], [1, shown.spec])
    assert.deepEqual((await custom.must('POST', base('lates'), object('Late', 'new', { spec: {} }))).spec, {
      c: 'dc',
      d2: { x: 'dx' },
    })
  })
})

const SUB = {
  name: 'v1',
  schema: specSchema(
    {
      replicas: NUMBER,
      color: TEXT,
      on: { type: 'boolean' },
      list: { type: 'array', items: TEXT },
      when: TEXT,
      map: { type: 'object', additionalProperties: TEXT },
    },
    { type: 'object', properties: { replicas: NUMBER, selector: TEXT, ready: { type: 'string', default: 'no' } } },
  ),
  subresources: {
    status: {},
    scale: {
      specReplicasPath: '.spec.replicas',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.status.selector',
    },
  },
  selectableFields: [{ jsonPath: '.spec.color' }, { jsonPath: '.spec.on' }, { jsonPath: '.spec.replicas' }],
  additionalPrinterColumns: [
    { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas' },
    { name: 'Text', type: 'string', jsonPath: '.spec.replicas', description: 'as text', priority: 2 },
    { name: 'On', type: 'boolean', jsonPath: '.spec.on' },
    { name: 'List', type: 'string', jsonPath: '.spec.list' },
    { name: 'First', type: 'string', jsonPath: '.spec.list[*]' },
    { name: 'Map', type: 'string', jsonPath: '.spec.map' },
    { name: 'When', type: 'date', jsonPath: '.spec.when' },
    { name: 'Wrong', type: 'integer', jsonPath: '.spec.color' },
    { name: 'Out', type: 'string', jsonPath: '.spec.list[7]' },
  ],
}

describe('subresources of a custom resource', () => {
  before(() => custom.define(definition('Sub', { versions: [SUB] })))

  it('separate the status from the spec', async () => {
    const sent = object('Sub', 'st', { spec: { replicas: 1 }, status: { replicas: 9 } })
    sent.metadata.generation = 7
    const made = await custom.must('POST', base('subs'), sent)
    assert.deepEqual([made.status, made.metadata.generation], [undefined, 1])
    const ready = await custom.must(
      'PATCH',
      `${base('subs')}/st/status`,
      { metadata: { labels: { x: 'y' }, finalizers: ['a/b'] }, spec: { replicas: 5 }, status: { replicas: 3 } },
      MERGE,
    )
    assert.deepEqual(
      [ready.spec, ready.status, ready.metadata.generation],
      [{ replicas: 1 }, { ready: 'no', replicas: 3 }, 1],
    )
    assert.deepEqual([ready.metadata.labels, ready.metadata.finalizers], [undefined, undefined])
    const entry = ready.metadata.managedFields.at(-1)
    assert.deepEqual(
      [entry.subresource, entry.fieldsV1],
      ['status', { 'f:status': { '.': {}, 'f:ready': {}, 'f:replicas': {} } }],
    )
    const next = await custom.must(
      'PATCH',
      `${base('subs')}/st`,
      { spec: { replicas: 2 }, status: { replicas: 8 } },
      MERGE,
    )
    assert.deepEqual([next.spec, next.status.replicas, next.metadata.generation], [{ replicas: 2 }, 3, 2])
  })

  it('treat the status as ordinary data if there is no status subresource', async () => {
    await custom.define(definition('Plain'))
    const made = await custom.must('POST', base('plains'), object('Plain', 'p', { status: { a: 1 } }))
    assert.deepEqual([made.status, made.metadata.generation], [{ a: 1 }, 1])
    const next = await custom.must('PATCH', `${base('plains')}/p`, { status: { a: 2 } }, MERGE)
    assert.deepEqual([next.status, next.metadata.generation], [{ a: 2 }, 2])
    assert.equal(await custom.refused('GET', `${base('plains')}/p/status`), '404 plains.ex.io "p" not found')
    assert.equal(await custom.refused('GET', `${base('plains')}/p/zork`), '404 plains.ex.io "p" not found')
  })

  it('support only their own verbs', async () => {
    assert.equal(
      await custom.refused('POST', `${base('subs')}/st/status`, object('Sub', 'st')),
      '405 create is not supported on resources of kind "subs.ex.io"',
    )
    assert.equal(
      await custom.refused('DELETE', `${base('subs')}/st/status`),
      '405 delete is not supported on resources of kind "subs.ex.io"',
    )
  })

  it('scale objects that have replicas', async () => {
    const path = `${base('subs')}/sc`
    await custom.must('POST', base('subs'), object('Sub', 'sc', { spec: { replicas: 2 } }))
    await custom.must('PATCH', `${path}/status`, { status: { replicas: 2, selector: 'l=1' } }, MERGE)
    const scale = await custom.must('GET', `${path}/scale`)
    const { name, namespace, uid, resourceVersion, creationTimestamp, ...rest } = scale.metadata
    assert.deepEqual([name, namespace, rest], ['sc', 'default', {}])
    assert.ok(uid && resourceVersion && creationTimestamp)
    assert.deepEqual(
      [scale.kind, scale.apiVersion, scale.spec, scale.status],
      ['Scale', 'autoscaling/v1', { replicas: 2 }, { replicas: 2, selector: 'l=1' }],
    )
    const scaled = await custom.must('PATCH', `${path}/scale`, { spec: { replicas: 5 } }, MERGE)
    assert.equal(scaled.spec.replicas, 5)
    const strategic = { 'content-type': 'application/strategic-merge-patch+json' }
    assert.match(await custom.refused('PATCH', `${path}/scale`, {}, strategic), /^415 /)
    const now = await custom.must('GET', path)
    assert.equal(now.spec.replicas, 5)
    const entry = now.metadata.managedFields.find((one: Json) => one.subresource === 'scale')
    assert.equal(entry.apiVersion, 'ex.io/v1')
    assert.equal(
      await custom.refused('PATCH', `${path}/scale`, { spec: { replicas: -1 } }, MERGE),
      '422 Sub.ex.io "sc" is invalid: .spec.replicas: Invalid value: -1: should be a non-negative integer',
    )
    assert.match(
      await custom.refused('PUT', `${path}/scale`, { ...scale, spec: { replicas: 1 } }),
      /^409 Operation cannot be fulfilled/,
    )
    await custom.must('POST', base('subs'), object('Sub', 'none'))
    assert.equal(
      await custom.refused('GET', `${base('subs')}/none/scale`),
      '500 Internal error occurred: the spec replicas field ".spec.replicas" does not exist',
    )
    await custom.must('PATCH', `${base('subs')}/none/scale`, { spec: { replicas: 3 } }, MERGE)
    assert.equal((await custom.must('GET', `${base('subs')}/none`)).spec.replicas, 3)
  })
})

describe('lists of custom resources', () => {
  before(async () => {
    const { subresources: _, ...version } = SUB
    await custom.define(definition('Row', { versions: [version] }))
    const spec = { replicas: 2, color: 'red', on: true, list: ['p', 'q'], map: { x: 'y' }, when: 'never' }
    await custom.must('POST', base('rows'), object('Row', 'a', { spec }))
    await custom.must('POST', base('rows'), object('Row', 'b', { spec: { when: '2020-01-01T00:00:00Z' } }))
  })

  const names = async (selector: string): Promise<string[]> => {
    const { items } = await custom.must('GET', `${base('rows')}?fieldSelector=${encodeURIComponent(selector)}`)
    return items.map((one: Json) => one.metadata.name)
  }

  it("have an empty continue token, as upstream's unstructured lists", async () => {
    const { metadata } = await custom.must('GET', base('rows'))
    assert.deepEqual(Object.keys(metadata), ['continue', 'resourceVersion'])
    assert.equal(metadata.continue, '')
    const page = await custom.must('GET', `${base('rows')}?limit=1`)
    assert.notEqual(page.metadata.continue, '')
    const table = await custom.must('GET', base('rows'), undefined, TABLE)
    assert.deepEqual(Object.keys(table.metadata), ['resourceVersion'])
  })

  it('are filtered by selectable fields', async () => {
    assert.deepEqual(await names('spec.color=red'), ['a'])
    assert.deepEqual(await names('spec.color!=red'), ['b'])
    assert.deepEqual(await names('spec.on=true'), ['a'])
    assert.deepEqual(await names('spec.on=false'), [])
    assert.deepEqual(await names('spec.replicas=2,metadata.name=a'), ['a'])
    assert.equal(
      await custom.refused('GET', `${base('rows')}?fieldSelector=spec.a%3D1`),
      '400 field label not supported: spec.a',
    )
  })

  it('are tables with the declared columns', async () => {
    const table = await custom.must('GET', base('rows'), undefined, TABLE)
    const columns = table.columnDefinitions.map(({ name, type, format, priority }: Json) => [
      name,
      type,
      format,
      priority,
    ])
    assert.deepEqual(columns.slice(0, 3), [
      ['Name', 'string', 'name', 0],
      ['Replicas', 'integer', '', 0],
      ['Text', 'string', '', 2],
    ])
    assert.match(table.columnDefinitions[0].description, /^Name must be unique within a namespace/)
    assert.equal(
      table.columnDefinitions[1].description,
      'Custom resource definition column (in JSONPath format): .spec.replicas',
    )
    assert.deepEqual(table.rows[0].cells, ['a', 2, '2', true, '["p","q"]', 'p', '{"x":"y"}', '<invalid>', null, null])
    assert.match(table.rows[1].cells[7], /^\d+y\d*d?$/)
    assert.deepEqual(table.rows[1].cells.slice(1, 4), [null, null, null])
    assert.equal(table.rows[0].object.kind, 'PartialObjectMetadata')
  })

  it('show name and age without declared columns, and the columns before an invalid path', async () => {
    await custom.define(definition('Bare'))
    const bare = await custom.must('GET', base('bares'), undefined, TABLE)
    assert.deepEqual(
      bare.columnDefinitions.map(({ name, type }: Json) => [name, type]),
      [
        ['Name', 'string'],
        ['Age', 'date'],
      ],
    )
    const additionalPrinterColumns = [
      { name: 'A', type: 'string', jsonPath: '.spec.a' },
      { name: 'B', type: 'string', jsonPath: '.spec[?(@.a' },
    ]
    await custom.define(definition('Odd', { versions: [{ name: 'v1', additionalPrinterColumns }] }))
    const odd = await custom.must('GET', base('odds'), undefined, TABLE)
    assert.deepEqual(
      odd.columnDefinitions.map(({ name }: Json) => name),
      ['Name', 'A'],
    )
  })

  it('are deleted as a collection, which returns them', async () => {
    const gone = await custom.must('DELETE', base('rows'))
    assert.deepEqual([gone.kind, gone.items.length], ['RowList', 2])
    await custom.must('POST', base('rows'), object('Row', 'a'))
    const one = await custom.must('DELETE', `${base('rows')}/a`)
    assert.deepEqual([one.kind, one.status, typeof one.details.uid], ['Status', 'Success', 'string'])
  })
})

describe('server-side apply of a custom resource', () => {
  before(() =>
    custom.define(
      definition('App', {
        versions: [
          {
            name: 'v1',
            schema: specSchema({
              replicas: NUMBER,
              mp: {
                type: 'array',
                'x-kubernetes-list-type': 'map',
                'x-kubernetes-list-map-keys': ['k'],
                items: { type: 'object', required: ['k'], properties: { k: TEXT, v: TEXT } },
              },
              st: { type: 'array', 'x-kubernetes-list-type': 'set', items: TEXT },
              at: { type: 'array', items: TEXT },
            }),
            subresources: { status: {} },
          },
        ],
      }),
    ),
  )
  const apply = (name: string, spec: object, manager: string): Parameters<Custom['ask']> => [
    'PATCH',
    `${base('apps')}/${name}?fieldManager=${manager}`,
    object('App', name, { spec }),
    APPLY,
  ]

  it('merges lists by their list type', async () => {
    await custom.must(...apply('a', { mp: [{ k: '1', v: 'a' }], st: ['x'], at: ['1'] }, 'one'))
    const both = await custom.must(...apply('a', { mp: [{ k: '2', v: 'b' }], st: ['y'] }, 'two'))
    assert.deepEqual(both.spec, {
      at: ['1'],
      mp: [
        { k: '1', v: 'a' },
        { k: '2', v: 'b' },
      ],
      st: ['x', 'y'],
    })
    assert.deepEqual(both.metadata.managedFields[0].fieldsV1['f:spec'], {
      'f:at': {},
      'f:mp': { 'k:{"k":"1"}': { '.': {}, 'f:k': {}, 'f:v': {} } },
      'f:st': { 'v:"x"': {} },
    })
    const less = await custom.must(...apply('a', { st: ['y'] }, 'two'))
    assert.deepEqual(less.spec.mp, [{ k: '1', v: 'a' }])
    assert.match(
      await custom.refused(...apply('a', { mp: [{ k: '1', v: 'z' }] }, 'three')),
      /^409 Apply failed with 1 conflict: conflict with "one": \.spec\.mp\[k="1"\]\.v$/,
    )
  })

  it('rejects lists that the schema cannot merge', async () => {
    const prefix = '500 failed to create typed patch object (/b; ex.io/v1, Kind=App): '
    assert.equal(
      await custom.refused(...apply('b', { mp: [{ k: '1' }, { k: '1' }] }, 'one')),
      `${prefix}.spec.mp: duplicate entries for key [k="1"]`,
    )
    assert.equal(
      await custom.refused(...apply('b', { zork: 1 }, 'one')),
      `${prefix}.spec.zork: field not declared in schema`,
    )
    assert.equal(
      await custom.refused(...apply('b', { replicas: 'x' }, 'one')),
      `${prefix}.spec.replicas: expected numeric (int or float), got string`,
    )
    const other = object('App', 'b', {}, 'ex.io/v7')
    assert.equal(
      await custom.refused('PATCH', `${base('apps')}/b?fieldManager=m`, other, APPLY),
      '400 invalid object type: ex.io/v7, Kind=App',
    )
  })
})

describe('versions of a custom resource without a conversion webhook', () => {
  before(() =>
    custom.define(
      definition('Two', {
        versions: [
          { name: 'v2', schema: specSchema({ a: TEXT, b: TEXT }) },
          { name: 'v1', schema: specSchema({ a: TEXT, c: { type: 'string', default: 'd-v1' } }) },
          { name: 'v0', schema: specSchema({ a: TEXT }), deprecated: true },
          { name: 'v0beta1', deprecated: true, deprecationWarning: 'too old' },
        ],
      }),
    ),
  )

  it('differ in apiVersion, and contain the fields of their schema', async () => {
    await custom.must('POST', base('twos', 'v1'), object('Two', 'x', { spec: { a: '1' } }))
    const newer = await custom.must('GET', `${base('twos', 'v2')}/x`)
    assert.deepEqual([newer.apiVersion, newer.spec], ['ex.io/v2', { a: '1' }])
    assert.equal(newer.metadata.managedFields[0].apiVersion, 'ex.io/v1')
    // It was read by the schema of the stored version first.
    assert.deepEqual((await custom.must('GET', `${base('twos', 'v1')}/x`)).spec, { a: '1' })
    await custom.must('PATCH', `${base('twos', 'v2')}/x`, { spec: { b: '2' } }, MERGE)
    assert.deepEqual((await custom.must('GET', base('twos', 'v1'))).items[0].spec, { a: '1' })
    assert.deepEqual((await custom.must('GET', `${base('twos', 'v2')}/x`)).spec, { a: '1', b: '2' })
  })

  it('count as one resource in metrics', async () => {
    const { text } = await custom.ask('GET', '/metrics')
    assert.match(text, /^apiserver_resource_objects\{group="ex\.io",resource="twos"\} 1$/m)
  })

  it('cause warnings if they are deprecated', async () => {
    assert.deepEqual(warningsOf(await custom.ask('GET', base('twos', 'v0'))), [
      '299 - "ex.io/v0 Two is deprecated; use ex.io/v2 Two"',
    ])
    assert.deepEqual(warningsOf(await custom.ask('GET', base('twos', 'v0beta1'))), ['299 - "too old"'])
  })

  it('are migrated by an unchanged update', async () => {
    await custom.define(definition('Mig', { versions: [{ name: 'v1' }, { name: 'v2' }] }))
    const made = await custom.must('POST', base('migs'), object('Mig', 'x', { spec: { a: 1 } }))
    const same = await custom.must('PUT', `${base('migs')}/x`, made)
    assert.equal(same.metadata.resourceVersion, made.metadata.resourceVersion)
    const changed = await custom.redefine('migs.ex.io', ({ versions }) => {
      for (const version of versions) version.storage = version.name === 'v2'
    })
    assert.deepEqual(changed.status.storedVersions, ['v1', 'v2'])
    const shown = await custom.must('GET', `${base('migs', 'v2')}/x`)
    assert.deepEqual(
      [shown.apiVersion, shown.spec, shown.metadata.resourceVersion],
      ['ex.io/v2', { a: 1 }, made.metadata.resourceVersion],
    )
    const again = await custom.must('PUT', `${base('migs', 'v2')}/x`, shown)
    assert.notEqual(again.metadata.resourceVersion, made.metadata.resourceVersion)
    assert.equal(
      (await custom.must('PUT', `${base('migs', 'v2')}/x`, again)).metadata.resourceVersion,
      again.metadata.resourceVersion,
    )
  })
})

describe('discovery of custom resources', () => {
  it('orders versions by priority and resources by creation, with their subresources', async () => {
    const group = 'disc.io'
    const names = { shortNames: ['zz'], categories: ['all'] }
    await custom.define(definition('Zeta', { group, names, versions: [SUB, { name: 'v2' }, { name: 'v0beta1' }] }))
    await custom.define(definition('Alpha', { group }))
    const document = await custom.must('GET', `/apis/${group}`)
    assert.deepEqual(
      document.versions.map(({ version }: Json) => version),
      ['v2', 'v1', 'v0beta1'],
    )
    assert.equal(document.preferredVersion.version, 'v2')
    const { resources } = await custom.must('GET', `/apis/${group}/v1`)
    assert.deepEqual(resources[0], {
      name: 'zetas',
      singularName: 'zeta',
      namespaced: true,
      kind: 'Zeta',
      verbs: ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'],
      shortNames: ['zz'],
      categories: ['all'],
      storageVersionHash: resources[0].storageVersionHash,
    })
    assert.deepEqual(resources.slice(1, 3), [
      { name: 'zetas/status', singularName: '', namespaced: true, kind: 'Zeta', verbs: ['get', 'patch', 'update'] },
      {
        name: 'zetas/scale',
        singularName: '',
        namespaced: true,
        group: 'autoscaling',
        version: 'v1',
        kind: 'Scale',
        verbs: ['get', 'patch', 'update'],
      },
    ])
    assert.equal(resources[3].name, 'alphas')
    const accept = { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' }
    const { items } = await custom.must('GET', '/apis', undefined, accept)
    const found = items.find(({ metadata }: Json) => metadata.name === group)
    const [alpha, zeta] = found.versions[1].resources
    assert.equal(alpha.resource, 'alphas')
    assert.deepEqual(zeta.responseKind, { group, version: 'v1', kind: 'Zeta' })
    assert.deepEqual(zeta.subresources[0].responseKind, { group, version: 'v1', kind: 'Zeta' })
    assert.equal(found.versions[1].freshness, 'Current')
  })
})
