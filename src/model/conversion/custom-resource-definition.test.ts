import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { schemaFor } from '#apis/schemas.ts'
import { arbitraryOf } from '#kits/meta/arbitrary-object.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'

import { convert } from './conversion.ts'

const kind = 'CustomResourceDefinition'
const served: GroupVersionKind = { group: 'apiextensions.k8s.io', version: 'v1', kind }
const stored: GroupVersionKind = { group: 'apiextensions.k8s.io', version: 'v1beta1', kind }

function definition(gvk: GroupVersionKind, spec: object): KubeObject {
  const object = { kind, apiVersion: apiVersionOf(gvk), metadata: { name: 'as.example.com' }, spec: deepCopy(spec) }
  const offences: string[] = []
  const decoded = decodeValue(schemaFor(gvk)!, object, 'Strict', { offences })
  assert.deepEqual(offences, [])
  return decoded as KubeObject
}

function specOf(object: KubeObject): JsonObject {
  return (object as unknown as JsonObject)['spec'] as JsonObject
}

const names = { plural: 'as', kind: 'A' }
const schema = { openAPIV3Schema: { type: 'object' } }
const column = { name: 'Age', type: 'date' }

describe('conversion of a CustomResourceDefinition', () => {
  it('moves properties that all versions share to the top level', () => {
    const spec = specOf(
      convert(
        definition(served, {
          group: 'example.com',
          names,
          scope: 'Namespaced',
          versions: [
            {
              name: 'v1',
              served: true,
              storage: true,
              schema,
              additionalPrinterColumns: [{ ...column, jsonPath: '.a' }],
            },
            { name: 'v2', served: true, storage: false, schema, subresources: { status: {} } },
          ],
        }),
        stored,
      ),
    )
    assert.equal(spec['version'], 'v1')
    assert.deepEqual(spec['validation'], schema)
    assert.equal(spec['subresources'], undefined)
    assert.equal(spec['preserveUnknownFields'], false)
    assert.deepEqual(spec['versions'], [
      { name: 'v1', served: true, storage: true, additionalPrinterColumns: [{ ...column, JSONPath: '.a' }] },
      { name: 'v2', served: true, storage: false, subresources: { status: {} } },
    ])
  })

  it('accepts the form of early releases, with one version and no list', () => {
    const old = definition(stored, {
      group: 'example.com',
      version: 'v1',
      names,
      scope: 'Cluster',
      validation: schema,
      subresources: { status: {} },
      additionalPrinterColumns: [{ ...column, JSONPath: '.a' }],
    })
    assert.deepEqual(specOf(convert(old, served))['versions'], [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema,
        subresources: { status: {} },
        additionalPrinterColumns: [{ ...column, jsonPath: '.a' }],
      },
    ])
  })

  it('keeps the conversion webhook', () => {
    const clientConfig = { url: 'https://example.com/convert' }
    const conversion = { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1'] } }
    const given = definition(served, { group: 'example.com', names, scope: 'Cluster', versions: null, conversion })
    const there = convert(given, stored)
    assert.deepEqual(specOf(there)['conversion'], {
      strategy: 'Webhook',
      webhookClientConfig: clientConfig,
      conversionReviewVersions: ['v1'],
    })
    assert.deepEqual(convert(there, served), given)
  })

  it('sorts the keys of defaults at any depth, as Go does', () => {
    const property = { type: 'object', default: { b: 1, a: { d: 1, c: 2 } } }
    const deep = { openAPIV3Schema: { type: 'object', properties: { default: property, x: { items: property } } } }
    const given = definition(served, {
      group: 'example.com',
      names,
      scope: 'Cluster',
      versions: [{ name: 'v1', served: true, storage: true, schema: deep }],
    })
    const text = encodeJson(convert(given, stored))
    assert.equal(text.split('"default":{"a":{"c":2,"d":1},"b":1}').length, 3)
  })

  it('round-trips through the store', () => {
    const property = fc.property(arbitraryOf(served), (object) => {
      const conversion = specOf(object)['conversion'] as JsonObject | undefined
      // An empty webhook is dropped.
      const webhook = conversion?.['webhook'] as JsonObject | undefined
      if (webhook?.['clientConfig'] === undefined) delete conversion?.['webhook']
      // The stored version omits empty lists, so they are absent afterwards.
      if ((specOf(object)['versions'] as unknown[] | null)?.length === 0) specOf(object)['versions'] = null
      if ((webhook?.['conversionReviewVersions'] as unknown[] | null)?.length === 0) {
        webhook!['conversionReviewVersions'] = null
      }
      assert.deepEqual(convert(convert(object, stored), served), object)
    })
    fc.assert(property, { numRuns: 30 })
  })
})
