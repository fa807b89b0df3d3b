/** Tests OpenAPI of custom resources, as kubectl explain and client-side validation read it. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Custom, definition, DEFINITIONS, type Json } from './custom-kit.ts'

let custom: Custom
before(async () => {
  custom = await Custom.start()
})
after(() => custom.plane.stop())

const schema = {
  openAPIV3Schema: {
    type: 'object',
    description: 'a shape',
    required: ['spec'],
    properties: {
      spec: {
        type: 'object',
        required: ['a', 'nul'],
        properties: {
          a: { type: 'string', default: 'x', minLength: 1, description: 'the first' },
          nul: { type: 'object', nullable: true, properties: { b: { type: 'string' } } },
          either: { 'x-kubernetes-int-or-string': true },
          open: {
            type: 'object',
            'x-kubernetes-preserve-unknown-fields': true,
            properties: { known: { type: 'string' } },
          },
          list: { type: 'array', items: { type: 'integer', nullable: true } },
          emb: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { extra: { type: 'string' } } },
          one: { type: 'object', oneOf: [{ required: ['p'] }], properties: { p: { type: 'string' } } },
        },
        'x-kubernetes-validations': [{ rule: 'self.a != "b"' }],
      },
    },
  },
}

const names = ({ paths }: Json, group: string): string[] =>
  Object.keys(paths)
    .filter((path) => path.includes(group))
    .sort((one, other) => (one < other ? -1 : 1))

describe('OpenAPI of custom resources', () => {
  before(() =>
    custom.define(
      definition('Shape', {
        group: 'open.io',
        versions: [{ name: 'v1', schema, subresources: { status: {} }, selectableFields: [{ jsonPath: '.spec.a' }] }],
      }),
    ),
  )

  const documentOf = async (group: string): Promise<Json> => {
    const { paths } = await custom.eventually(
      () => custom.must('GET', '/openapi/v3'),
      (index) => index.paths[`apis/${group}/v1`] !== undefined,
    )
    return custom.must('GET', paths[`apis/${group}/v1`].serverRelativeURL)
  }

  it('contains the whole schema in v3, with apiVersion, kind and metadata', async () => {
    const document = await documentOf('open.io')
    assert.deepEqual(document.info, { title: 'Kubernetes CRD Swagger', version: 'v0.1.0' })
    const { 'io.open.v1.Shape': shape, 'io.open.v1.ShapeList': list } = document.components.schemas
    const { apiVersion, kind, metadata, spec } = shape.properties
    assert.match(apiVersion.description, /^APIVersion defines the versioned schema/)
    assert.match(kind.description, /^Kind is a string value/)
    assert.deepEqual(metadata.allOf, [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }])
    assert.ok(document.components.schemas['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'])
    assert.deepEqual([shape.description, shape.required, spec.required], ['a shape', ['spec'], ['a', 'nul']])
    assert.deepEqual(spec.properties.a, { type: 'string', default: 'x', minLength: 1, description: 'the first' })
    assert.equal(spec.properties.nul.nullable, true)
    assert.deepEqual(spec.properties.either, {
      'x-kubernetes-int-or-string': true,
      anyOf: [{ type: 'integer' }, { type: 'string' }],
    })
    assert.deepEqual(spec.properties.emb.required, ['kind', 'apiVersion'])
    assert.deepEqual(Object.keys(spec.properties.emb.properties), ['apiVersion', 'extra', 'kind', 'metadata'])
    assert.deepEqual(spec['x-kubernetes-validations'], [{ rule: 'self.a != "b"' }])
    assert.deepEqual(shape['x-kubernetes-group-version-kind'], [{ group: 'open.io', kind: 'Shape', version: 'v1' }])
    assert.deepEqual(shape['x-kubernetes-selectable-fields'], [{ fieldPath: 'spec.a' }])
    assert.equal(list.description, 'ShapeList is a list of Shape')
    assert.deepEqual(names(document, 'open.io'), [
      '/apis/open.io/v1/namespaces/{namespace}/shapes',
      '/apis/open.io/v1/namespaces/{namespace}/shapes/{name}',
      '/apis/open.io/v1/namespaces/{namespace}/shapes/{name}/status',
      '/apis/open.io/v1/shapes',
    ])
    const { get, patch } = document.paths['/apis/open.io/v1/namespaces/{namespace}/shapes/{name}']
    assert.deepEqual([get.operationId, get.tags], ['readOpenIoV1NamespacedShape', ['openIo_v1']])
    assert.deepEqual(Object.keys(get.responses['200'].content), ['application/json', 'application/yaml'])
    assert.deepEqual(Object.keys(patch.requestBody.content), [
      'application/apply-patch+yaml',
      'application/json-patch+json',
      'application/merge-patch+json',
    ])
  })

  it('contains the part of the schema that v2 supports in v2', async () => {
    const document = await custom.eventually(
      () => custom.must('GET', '/openapi/v2'),
      ({ definitions }) => definitions['io.open.v1.Shape'] !== undefined,
    )
    const { spec, metadata } = document.definitions['io.open.v1.Shape'].properties
    assert.equal(metadata.$ref, '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta')
    assert.deepEqual(spec.required, ['a'])
    assert.deepEqual(spec.properties.a, { type: 'string', minLength: 1, description: 'the first' })
    assert.deepEqual(spec.properties.nul, {})
    assert.deepEqual(spec.properties.either, { 'x-kubernetes-int-or-string': true })
    assert.deepEqual(spec.properties.open, { 'x-kubernetes-preserve-unknown-fields': true })
    assert.deepEqual(spec.properties.list, { type: 'array', items: {} })
    assert.deepEqual(spec.properties.one, { type: 'object', properties: { p: { type: 'string' } } })
    assert.equal(spec.properties.emb.properties.metadata.$ref, metadata.$ref)
    const { patch, get } = document.paths['/apis/open.io/v1/namespaces/{namespace}/shapes/{name}']
    assert.deepEqual(get.produces, ['application/json', 'application/yaml'])
    assert.deepEqual(patch.consumes, [
      'application/json-patch+json',
      'application/merge-patch+json',
      'application/apply-patch+yaml',
    ])
  })

  it('omits the schema of fields that are not structural', async () => {
    await custom.define(definition('Any', { group: 'any.io' }))
    const document = await custom.eventually(
      () => custom.must('GET', '/openapi/v2'),
      ({ definitions }) => definitions['io.any.v1.Any'] !== undefined,
    )
    assert.deepEqual(document.definitions['io.any.v1.Any'], {
      type: 'object',
      'x-kubernetes-group-version-kind': [{ group: 'any.io', kind: 'Any', version: 'v1' }],
    })
  })

  it('changes with the CustomResourceDefinition', async () => {
    const before = await custom.must('GET', '/openapi/v3')
    await custom.redefine('shapes.open.io', (spec) => {
      spec.versions[0].schema.openAPIV3Schema.description = 'another'
    })
    const after = await custom.eventually(
      () => custom.must('GET', '/openapi/v3'),
      ({ paths }) => paths['apis/open.io/v1'].serverRelativeURL !== before.paths['apis/open.io/v1'].serverRelativeURL,
    )
    const document = await custom.must('GET', after.paths['apis/open.io/v1'].serverRelativeURL)
    assert.equal(document.components.schemas['io.open.v1.Shape'].description, 'another')
    await custom.must('DELETE', `${DEFINITIONS}/shapes.open.io`)
    await custom.eventually(
      () => custom.must('GET', '/openapi/v3'),
      ({ paths }) => paths['apis/open.io/v1'] === undefined,
    )
    await custom.eventually(
      () => custom.must('GET', '/openapi/v2'),
      ({ definitions }) => definitions['io.open.v1.Shape'] === undefined,
    )
  })
})
