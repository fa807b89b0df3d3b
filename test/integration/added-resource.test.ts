/** Tests adding a resource with a new schema to a running API server, and removing it. */
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { after, before, describe, it } from 'node:test'

import type { Kind } from '#apis/kinds.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { BUILT_IN } from '#apiserver/registry/shapes.ts'
import type { KubeObject } from '#meta/object.ts'
import type { FieldSchema, Schema, StructSchema } from '#meta/schema.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { type ControlPlane, type ControlPlaneResponse, startControlPlane } from '#testing/control-plane.ts'

interface Widget extends KubeObject {
  spec?: { size?: number; colour?: string; parts?: string[]; shape?: string }
  status?: { ready?: boolean }
}

function kindIn(version: string): Kind<Widget> {
  const own = { group: 'example.com', version, kind: 'Widget' }
  return {
    ...own,
    plural: 'widgets',
    singular: 'widget',
    listKind: 'WidgetList',
    namespaced: true,
    shortNames: ['wd'],
    categories: [],
    verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
    subresources: [{ name: 'status', kind: own, verbs: ['get', 'patch', 'update'] }],
    storage: { group: 'example.com', version: 'v1' },
  }
}

const TEXT: Schema = { type: 'string', goType: 'string' }
const INTEGER: Schema = { type: 'int64', goType: 'int64' }

function struct(goType: string, fields: Readonly<Record<string, Schema | FieldSchema>>): StructSchema {
  const fieldOf = ([name, one]: [string, Schema | FieldSchema]): [string, FieldSchema] =>
    'schema' in one
      ? [name, one]
      : [name, { name, schema: one, required: false, pointer: one.type === 'struct', omitEmpty: true }]
  return {
    type: 'struct',
    goType,
    fields: new Map(Object.entries(fields).map(fieldOf)),
    mapType: 'granular',
    preserveUnknown: false,
  }
}

/** Like that of every object, with fields of its own. v1beta1 calls the colour shape. */
function schemaOf(version: string): StructSchema {
  const any = BUILT_IN.schemaFor({ group: '', version: 'v1', kind: 'ConfigMap' })
  const { kind, apiVersion, metadata } = Object.fromEntries(any?.fields ?? []) as Record<string, FieldSchema>
  const look = version === 'v1' ? { colour: TEXT } : { shape: TEXT }
  const name = `com.example.${version}.Widget`
  return struct(name, {
    kind: kind!,
    apiVersion: apiVersion!,
    metadata: metadata!,
    spec: struct(`${name}Spec`, { size: INTEGER, ...look, parts: { type: 'list', items: TEXT, pointerItems: false } }),
    status: struct(`${name}Status`, { ready: { type: 'boolean', goType: 'bool' } }),
  })
}

function setSize(widget: Widget): void {
  widget.spec = { size: 1, ...widget.spec }
}

function widgets(): Resource<Widget> {
  return defineResource<Widget>({
    kind: kindIn('v1'),
    otherVersions: [{ kind: kindIn('v1beta1'), applyDefaults: setSize }],
    storagePrefix: 'example.com/widgets',
    shapes: {
      schemas: { 'example.com/v1': schemaOf('v1'), 'example.com/v1beta1': schemaOf('v1beta1') },
      convert(object, { version }) {
        const { spec = {}, ...rest } = object as Widget
        const { colour, shape, ...same } = spec
        const look = colour ?? shape
        const own = look === undefined ? {} : version === 'v1' ? { colour: look } : { shape: look }
        return { ...rest, apiVersion: `example.com/${version}`, spec: { ...same, ...own } } as Widget
      },
    },
    generation: 'spec',
    applyDefaults: setSize,
    validate: ({ spec }) => ((spec?.size ?? 0) > 0 ? [] : [fieldPath('spec.size').required()]),
    fieldSelectors: { 'spec.colour': ({ spec }) => spec?.colour ?? '' },
    columns: [{ name: 'Size', type: 'integer', value: ({ spec }) => spec?.size ?? 0 }],
  })
}

const BASE = '/apis/example.com/v1/namespaces/default/widgets'
const OLD = BASE.replace('/v1/', '/v1beta1/')
const MERGE = { 'content-type': 'application/merge-patch+json' }
const APPLY = { 'content-type': 'application/apply-patch+yaml' }
const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane()
})
after(() => plane.stop())

const add = (): Promise<unknown> => plane.running.server.registry.add(widgets())
const remove = (): boolean => plane.running.server.registry.remove({ group: 'example.com', plural: 'widgets' })
const ask = (...args: Parameters<ControlPlane['request']>): Promise<ControlPlaneResponse> => plane.request(...args)
// oxlint-disable-next-line typescript/no-explicit-any -- answers are looked into, not relied upon
const must = async (...args: Parameters<ControlPlane['request']>): Promise<any> => {
  const answer = await ask(...args)
  assert.ok(answer.status < 300, `${args[0]} ${args[1]}: ${answer.status} ${answer.text}`)
  return answer.json()
}
/** The answer, once it begins. */
function watch(path: string): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${plane.token}` }
  return new Promise((resolve, reject) => {
    get(plane.url + path, { ca: plane.ca, headers }, resolve).on('error', reject)
  })
}
const widget = (name: string, spec: object = {}, version = 'v1'): object => ({
  apiVersion: `example.com/${version}`,
  kind: 'Widget',
  metadata: { name },
  spec,
})

describe('an API resource added while the server runs', () => {
  before(add)
  after(remove)

  it('has defaults, managedFields and validation on creation', async () => {
    const made = await must('POST', `${BASE}?fieldManager=maker`, widget('a', { colour: 'red' }))
    assert.deepEqual(made.spec, { size: 1, colour: 'red' })
    assert.equal(made.metadata.generation, 1)
    assert.deepEqual(made.metadata.managedFields[0].fieldsV1, { 'f:spec': { '.': {}, 'f:colour': {}, 'f:size': {} } })
    const refused = await ask('POST', BASE, widget('b', { size: -1 }))
    assert.equal(refused.status, 422)
    assert.match(refused.text, /Widget.example.com \\"b\\" is invalid: spec.size: Required value/)
  })

  it('rejects unknown fields', async () => {
    const strict = await ask('POST', `${BASE}?fieldValidation=Strict`, widget('c', { weight: 1 }))
    assert.equal(strict.status, 400)
    assert.match(strict.text, /unknown field \\"spec.weight\\"/)
    const wrong = await ask('POST', BASE, widget('c', { size: 'large' }))
    assert.equal(wrong.status, 400, wrong.text)
  })

  it('can be read, listed, selected and printed as a table', async () => {
    await must('POST', BASE, widget('blue', { colour: 'blue', size: 3 }))
    assert.equal((await must('GET', `${BASE}/blue`)).spec.size, 3)
    const list = await must('GET', `${BASE}?fieldSelector=spec.colour%3Dblue`)
    assert.deepEqual([list.kind, list.items.map((one: KubeObject) => one.metadata.name)], ['WidgetList', ['blue']])
    const table = await must('GET', `${BASE}/blue`, undefined, TABLE)
    assert.deepEqual(table.rows[0].cells.at(-1), 3)
    const protobuf = await ask('GET', BASE, undefined, { accept: 'application/vnd.kubernetes.protobuf' })
    assert.equal(protobuf.status, 406)
  })

  it('can be read and written in each of its versions', async () => {
    await must('POST', OLD, widget('old', { shape: 'round' }, 'v1beta1'))
    assert.deepEqual((await must('GET', `${BASE}/old`)).spec, { size: 1, colour: 'round' })
    assert.deepEqual((await must('GET', `${OLD}/old`)).spec, { size: 1, shape: 'round' })
  })

  it('can be updated, patched and applied, with a separate status', async () => {
    const made = await must('POST', BASE, widget('changing', { colour: 'red' }))
    const next = { ...made, spec: { ...made.spec, size: 2 } }
    assert.equal((await must('PUT', `${BASE}/changing`, next)).metadata.generation, 2)
    const patched = await must('PATCH', `${BASE}/changing`, { spec: { size: 4 }, status: { ready: true } }, MERGE)
    assert.deepEqual([patched.spec.size, patched.status], [4, undefined])
    const ready = await must('PATCH', `${BASE}/changing/status`, { spec: { size: 9 }, status: { ready: true } }, MERGE)
    assert.deepEqual([ready.spec.size, ready.status], [4, { ready: true }])
    const config = widget('changing', { size: 7 })
    const path = `${BASE}/changing?fieldManager=other`
    assert.equal((await ask('PATCH', path, config, APPLY)).status, 409)
    assert.equal((await must('PATCH', `${path}&force=true`, config, APPLY)).spec.size, 7)
    assert.equal((await must('PATCH', `${BASE}/applied?fieldManager=m`, widget('applied'), APPLY)).spec.size, 1)
  })

  it('can be deleted alone and as a collection', async () => {
    await must('POST', BASE, widget('gone'))
    await must('DELETE', `${BASE}/gone`)
    assert.equal((await ask('GET', `${BASE}/gone`)).status, 404)
    assert.ok((await must('DELETE', BASE)).items.length > 0)
    assert.deepEqual((await must('GET', BASE)).items, [])
  })

  it('appears in discovery, OpenAPI and the root paths', async () => {
    // The list of all groups shows those that have an APIService.
    const group: { versions: { version: string }[] } = await must('GET', '/apis/example.com')
    assert.deepEqual(
      group.versions.map(({ version }) => version),
      ['v1', 'v1beta1'],
    )
    const { resources } = await must('GET', '/apis/example.com/v1')
    assert.deepEqual(
      resources.map(({ name }: { name: string }) => name),
      ['widgets', 'widgets/status'],
    )
    const index = await must('GET', '/openapi/v3')
    assert.ok(index.paths['apis/example.com/v1'])
    const v3 = await must('GET', '/openapi/v3/apis/example.com/v1')
    const { Widget: shown, WidgetList: list } = Object.fromEntries(
      Object.entries<Record<string, unknown>>(v3.components.schemas).map(([name, one]) => [
        name.split('.').at(-1),
        one,
      ]),
    )
    assert.deepEqual(Object.keys(shown?.['properties'] ?? {}), ['kind', 'apiVersion', 'metadata', 'spec', 'status'])
    assert.deepEqual(list?.['x-kubernetes-group-version-kind'], [
      { group: 'example.com', kind: 'WidgetList', version: 'v1' },
    ])
    const v2 = await must('GET', '/openapi/v2')
    assert.ok(v2.paths['/apis/example.com/v1/namespaces/{namespace}/widgets/{name}'])
    assert.ok(v2.definitions['com.example.v1.Widget'])
    assert.ok((await must('GET', '/')).paths.includes('/apis/example.com/v1'))
  })
})

describe('an API resource removed while the server runs', () => {
  it('disappears from all paths at once, and its watches end', async () => {
    await add()
    await must('POST', BASE, widget('left'))
    const watching = await watch(`${BASE}?watch=true&resourceVersion=0`)
    const events = watching.setEncoding('utf8')[Symbol.asyncIterator]()
    assert.match((await events.next()).value as string, /"type":"ADDED"/)
    assert.equal(remove(), true)
    const rest: string[] = []
    for await (const piece of { [Symbol.asyncIterator]: () => events }) rest.push(piece as string)
    assert.deepEqual(rest, [])

    assert.equal((await ask('GET', BASE)).status, 404)
    assert.equal((await ask('POST', BASE, widget('x'))).status, 404)
    assert.equal((await ask('GET', '/apis/example.com/v1')).status, 404)
    for (const path of ['/apis', '/openapi/v2', '/openapi/v3', '/']) {
      assert.doesNotMatch((await ask('GET', path)).text, /widgets/i, path)
    }
    assert.equal(remove(), false)
  })

  it('has its stored objects when it is added again', async () => {
    await add()
    assert.equal((await must('GET', `${BASE}/left`)).spec.size, 1)
    remove()
  })
})
