import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { schemaFor, structFor } from '#apis/schemas.ts'
import { arbitraryOf } from '#kits/meta/arbitrary-object.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'

import { convert } from './conversion.ts'
import { compareShapes } from './shape.ts'

const group = 'resource.k8s.io'
const kinds = ['ResourceClaim', 'ResourceClaimTemplate', 'ResourceSlice'] as const

/** A struct without some fields. */
function without(struct: StructSchema, ...names: string[]): StructSchema {
  const fields = new Map([...struct.fields].filter(([name]) => !names.includes(name)))
  return { ...struct, fields }
}

function canonical(version: string, kind: string, fields: object): KubeObject {
  const object = { kind, apiVersion: `${group}/${version}`, ...deepCopy(fields) }
  const offences: string[] = []
  const decoded = decodeValue(schemaFor({ group, version, kind })!, object, 'Strict', { offences })
  assert.deepEqual(offences, [])
  return decoded as KubeObject
}

describe('devices in resource.k8s.io/v1beta1', () => {
  it('have the fields of a v1 Device inside basic', () => {
    const basic = structFor('resource.v1beta1', 'BasicDevice')
    const device = without(structFor('resource.v1', 'Device'), 'name')
    assert.deepEqual(compareShapes(basic, device).differences, [])
  })

  it('are requested with the fields of an ExactDeviceRequest in v1', () => {
    const request = without(structFor('resource.v1beta1', 'DeviceRequest'), 'name', 'firstAvailable')
    const exact = structFor('resource.v1', 'ExactDeviceRequest')
    assert.deepEqual(compareShapes(request, exact).differences, [])
  })

  for (const kind of kinds) {
    it(`round-trip in ${kind} from v1beta1 to v1 and back`, () => {
      const [spoke, hub] = [
        { group, version: 'v1beta1', kind },
        { group, version: 'v1', kind },
      ]
      const property = fc.property(arbitraryOf(spoke), (object) => {
        // A device without basic cannot be distinguished from an empty one in later versions.
        const given = each(object, ['spec', 'devices'], (device) => ({ basic: {}, ...device }))
        assert.deepEqual(convert(convert(given, hub), spoke), given)
      })
      fc.assert(property, { numRuns: 60 })
    })

    it(`round-trip in ${kind} from v1 to v1beta1 and back`, () => {
      const [spoke, hub] = [
        { group, version: 'v1beta1', kind },
        { group, version: 'v1', kind },
      ]
      const property = fc.property(arbitraryOf(hub), (object) => {
        const given = object as unknown as JsonObject
        const spec = given['spec'] as JsonObject
        // Values that v1beta1 cannot express: an empty node name, a request for exactly nothing.
        if (spec['nodeName'] === '') delete spec['nodeName']
        if (spec['allNodes'] === false) delete spec['allNodes']
        const claim = (kind === 'ResourceClaimTemplate' ? spec['spec'] : spec) as JsonObject
        dropEmptyRequests(claim['devices'])
        assert.deepEqual(convert(convert(object, spoke), hub), object)
      })
      fc.assert(property, { numRuns: 60 })
    })
  }

  const requests: readonly [name: string, v1beta1: object, v1: object][] = [
    ['a class', { name: 'a', deviceClassName: 'c' }, { name: 'a', exactly: { deviceClassName: 'c' } }],
    [
      'any other inline field, even without a class',
      { name: 'a', adminAccess: false },
      { name: 'a', exactly: { deviceClassName: '', adminAccess: false } },
    ],
    ['nothing', { name: 'a' }, { name: 'a' }],
    [
      'alternatives',
      { name: 'a', firstAvailable: [{ name: 's', deviceClassName: 'c' }] },
      { name: 'a', firstAvailable: [{ name: 's', deviceClassName: 'c' }] },
    ],
  ]
  for (const [name, v1beta1, v1] of requests) {
    it(`convert between both versions a request that has ${name}`, () => {
      const make = (version: string, request: object): KubeObject =>
        canonical(version, 'ResourceClaim', { metadata: { name: 'x' }, spec: { devices: { requests: [request] } } })
      const [old, current] = [make('v1beta1', v1beta1), make('v1', v1)]
      assert.deepEqual(convert(old, { group, version: 'v1', kind: 'ResourceClaim' }), current)
      assert.deepEqual(convert(current, { group, version: 'v1beta1', kind: 'ResourceClaim' }), old)
    })
  }

  it('always have a basic, even if it is empty', () => {
    const spec = { driver: 'd', pool: { name: 'p' }, nodeName: '', devices: [{ name: 'a' }] }
    const slice = canonical('v1', 'ResourceSlice', { metadata: { name: 'x' }, spec })
    const old = convert(slice, { group, version: 'v1beta1', kind: 'ResourceSlice' }) as unknown as JsonObject
    assert.deepEqual((old['spec'] as JsonObject)['devices'], [{ name: 'a', basic: {} }])
    assert.equal((old['spec'] as JsonObject)['nodeName'], undefined)
  })
})

function each(object: KubeObject, [a, b]: [string, string], change: (item: JsonObject) => JsonObject): KubeObject {
  const part = (object as unknown as JsonObject)[a]
  if (!isJsonObject(part) || !Array.isArray(part[b])) return object
  const changed = { ...object, [a]: { ...part, [b]: part[b].map((item) => change(item as JsonObject)) } }
  const schema = schemaFor({ group, version: 'v1beta1', kind: object.kind! })!
  return decodeValue(schema, deepCopy(changed), 'Ignore', { offences: [] }) as KubeObject
}

function dropEmptyRequests(devices: JsonValue | undefined): void {
  if (!isJsonObject(devices)) return
  for (const request of (devices['requests'] ?? []) as JsonObject[]) {
    const { exactly } = request
    if (isJsonObject(exactly) && JSON.stringify(exactly) === '{"deviceClassName":""}') delete request['exactly']
  }
}
