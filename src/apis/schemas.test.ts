import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, it } from 'node:test'

import type { GroupVersionKind } from '#meta/kind.ts'
import type { FieldSchema, ProtobufMessage, ScalarType, Schema, StructSchema } from '#meta/schema.ts'

import { knownGroupVersions, knownKinds, schemaFor, structFor } from './schemas.ts'

const facts = process.env['HYPERKUBE_API_FACTS'] ?? resolve(import.meta.dirname, '../../../shared/kubernetes-api')
const fixtures = `${facts}/fixtures`
const skip = existsSync(fixtures) ? false : `no API facts in "${facts}"`

const pod = schemaFor({ group: '', version: 'v1', kind: 'Pod' })!

describe('schemaFor', () => {
  it('returns the same object each time, shared between kinds', () => {
    const template = structFor('core.v1', 'PodTemplateSpec')
    assert.equal(schemaFor({ group: '', version: 'v1', kind: 'Pod' }), pod)
    assert.equal(at(schemaFor({ group: 'apps', version: 'v1', kind: 'Deployment' })!, 'spec.template').schema, template)
    assert.equal(at(pod, 'spec').schema, template.fields.get('spec')?.schema)
  })

  it('has no schema for custom resources or names of Object.prototype', () => {
    for (const gvk of [
      { group: 'example.com', version: 'v1', kind: 'Widget' },
      { group: 'example.com', version: 'v1', kind: 'DeleteOptions' },
      { group: '', version: 'v2', kind: 'Pod' },
      { group: '', version: 'v1', kind: 'PodSpec' },
      { group: '', version: 'v1', kind: 'constructor' },
      { group: '', version: 'v1', kind: '__proto__' },
      { group: '__proto__', version: 'v1', kind: 'Pod' },
    ]) {
      assert.equal(schemaFor(gvk), undefined, JSON.stringify(gvk))
    }
  })

  it('throws with the name of a missing struct', () => {
    assert.throws(() => structFor('core.v1', 'Nothing'), /No struct "Nothing" in the table "core.v1"/)
  })

  it('uses one struct for all group versions of a shared kind', () => {
    const options = schemaFor({ group: 'meta.k8s.io', version: 'v1', kind: 'DeleteOptions' })
    assert.ok(options)
    assert.equal(schemaFor({ group: '', version: 'v1', kind: 'DeleteOptions' }), options)
    assert.equal(schemaFor({ group: 'extensions', version: 'v1beta1', kind: 'DeleteOptions' }), options)
  })

  for (const [group, version, kind, goType] of [
    ['', 'v1', 'Status', 'v1.Status'],
    ['', 'v1', 'List', 'v1.List'],
    ['', 'v1', 'APIResourceList', 'v1.APIResourceList'],
    ['meta.k8s.io', 'v1', 'Table', 'v1.Table'],
    ['meta.k8s.io', 'v1beta1', 'Table', 'v1.Table'],
    ['meta.k8s.io', 'v1', 'PartialObjectMetadataList', 'v1.PartialObjectMetadataList'],
    ['meta.k8s.io', 'v1beta1', 'PartialObjectMetadataList', 'v1beta1.PartialObjectMetadataList'],
    ['apidiscovery.k8s.io', 'v2', 'APIGroupDiscoveryList', 'v2.APIGroupDiscoveryList'],
    ['admission.k8s.io', 'v1', 'AdmissionReview', 'v1.AdmissionReview'],
    ['apiextensions.k8s.io', 'v1', 'ConversionReview', 'v1.ConversionReview'],
    ['apiextensions.k8s.io', 'v1beta1', 'CustomResourceDefinition', 'v1beta1.CustomResourceDefinition'],
    ['apiregistration.k8s.io', 'v1beta1', 'APIServiceList', 'v1beta1.APIServiceList'],
    ['rbac.authorization.k8s.io', 'v1', 'ClusterRole', 'v1.ClusterRole'],
  ] as const) {
    it(`returns a schema for ${group}/${version} ${kind}`, () => {
      const schema = schemaFor({ group, version, kind })
      assert.equal(schema?.goType, goType)
      assert.deepEqual([...schema.fields.keys()].slice(0, 2), ['kind', 'apiVersion'])
    })
  }
})

describe('presence of a field in a schema', () => {
  const cases: readonly [GroupVersionKind, string, Partial<FieldSchema>][] = [
    [gvk('apps', 'Deployment'), 'spec.replicas', { pointer: true, omitEmpty: true }],
    [gvk('apps', 'Deployment'), 'spec.minReadySeconds', { pointer: false, omitEmpty: true }],
    [gvk('apps', 'Deployment'), 'spec.selector', { pointer: true, omitEmpty: false, required: true }],
    [gvk('apps', 'Deployment'), 'status', { pointer: false, omitEmpty: false }],
    [gvk('apps', 'Deployment'), 'spec.strategy', { pointer: false, omitEmpty: false }],
    [gvk('apps', 'ControllerRevision'), 'data', { pointer: false, omitEmpty: false }],
    [gvk('rbac.authorization.k8s.io', 'Role'), 'rules', { pointer: false, omitEmpty: false }],
    [gvk('', 'Pod'), 'metadata.creationTimestamp', { pointer: false, omitEmpty: true }],
    [gvk('', 'Pod'), 'metadata.deletionTimestamp', { pointer: true, omitEmpty: true }],
    [gvk('', 'Pod'), 'metadata.name', { pointer: false, omitEmpty: true }],
    [gvk('', 'Pod'), 'spec.containers.resources', { pointer: false, omitEmpty: false }],
    [gvk('', 'Pod'), 'spec.automountServiceAccountToken', { pointer: true, omitEmpty: true }],
    [gvk('', 'Pod'), 'status.conditions.lastProbeTime', { pointer: false, omitEmpty: false }],
    [gvk('', 'Pod'), 'spec.containers.env.valueFrom.resourceFieldRef.divisor', { pointer: false, omitEmpty: false }],
    [gvk('', 'Service'), 'spec.ports.targetPort', { pointer: false, omitEmpty: false }],
    [gvk('', 'Service'), 'status.loadBalancer', { pointer: false, omitEmpty: false }],
    [gvk('', 'Event'), 'firstTimestamp', { pointer: false, omitEmpty: false }],
    [gvk('', 'Event'), 'reportingComponent', { pointer: false, omitEmpty: false }],
    [gvk('', 'Node'), 'status.daemonEndpoints.kubeletEndpoint.Port', { pointer: false, omitEmpty: false }],
    [gvk('', 'ConfigMapList'), 'items', { pointer: false, omitEmpty: false }],
    [gvk('', 'Status'), 'metadata', { pointer: false, omitEmpty: false }],
  ]
  for (const [kind, path, expected] of cases) {
    it(`follows Go's rules for pointers and omitempty in ${kind.kind} ${path}`, () => {
      const field = at(schemaFor(kind)!, path)
      for (const [name, value] of Object.entries(expected)) assert.equal(field[name as keyof FieldSchema], value, name)
    })
  }
})

describe('merge rules in a schema', () => {
  it('include list types, keys, strategies and defaults', () => {
    const ports = at(pod, 'spec.containers.ports')
    assert.deepEqual(
      [ports.listType, ports.mapKeys, ports.patchStrategy, ports.patchMergeKey],
      ['map', ['containerPort', 'protocol'], ['merge'], 'containerPort'],
    )
    assert.equal(at(pod, 'spec.containers.ports.protocol').default, 'TCP')
    assert.deepEqual(at(pod, 'spec.volumes').patchStrategy, ['merge', 'retainKeys'])
    assert.equal(at(pod, 'metadata.finalizers').listType, 'set')
    assert.equal(at(pod, 'spec.containers.args').listType, 'atomic')
    assert.equal(at(pod, 'spec.nodeSelector').mapType, 'atomic')
    assert.equal((at(pod, 'spec.securityContext').schema as StructSchema).mapType, 'granular')
    assert.equal(
      (at(pod, 'spec.volumes.configMap.items').schema as { items?: StructSchema }).items?.mapType,
      'granular',
    )
    assert.equal(structFor('core.v1', 'LocalObjectReference').mapType, 'atomic')
    const claimRef = at(structFor('core.v1', 'PersistentVolumeSpec'), 'claimRef')
    assert.deepEqual([claimRef.mapType, (claimRef.schema as StructSchema).mapType], ['granular', 'atomic'])
  })

  it('include rules of fields that JSON inlines', () => {
    assert.equal(at(pod, 'spec.volumes.projected.sources').listType, 'atomic')
    assert.equal(at(pod, 'spec.ephemeralContainers.name').required, true)
    assert.equal(at(pod, 'spec.ephemeralContainers.ports').patchMergeKey, 'containerPort')
  })

  it('include the feature gate of a field', () => {
    assert.equal(at(pod, 'spec.containers.lifecycle.stopSignal').gate, 'ContainerStopSignals')
    assert.equal(at(schemaFor(gvk('coordination.k8s.io', 'Lease'))!, 'spec.strategy').gate, 'CoordinatedLeaderElection')
    assert.equal(at(pod, 'spec.hostname').gate, undefined)
  })
})

describe('Go type name in a schema', () => {
  for (const [path, goType] of [
    ['status.phase', 'v1.PodPhase'],
    ['spec.priority', 'int32'],
    ['metadata.uid', 'types.UID'],
    ['spec.hostNetwork', 'bool'],
    ['spec.containers.resources.requests', 'v1.ResourceList'],
    ['metadata.creationTimestamp', 'v1.Time'],
    ['spec', 'v1.PodSpec'],
  ] as const) {
    it(`is ${goType} for Pod ${path}`, () => assert.equal((at(pod, path).schema as { goType?: string }).goType, goType))
  }

  it('is that of the items for a list, unless Go names the list type', () => {
    const { schema } = at(pod, 'spec.containers.securityContext.capabilities.add')
    assert.deepEqual(schema, {
      type: 'list',
      items: { type: 'string', goType: 'v1.Capability' },
      pointerItems: false,
    })
    const extra = at(schemaFor(gvk('authentication.k8s.io', 'TokenReview'))!, 'status.user.extra').schema
    assert.equal(extra.type === 'map' && (extra.values as { goType?: string }).goType, 'v1.ExtraValue')
  })
})

describe('protobuf schema', () => {
  it('has unique, ascending field numbers in every message of every kind', () => {
    let messages = 0
    for (const struct of allStructs()) {
      if (struct.protobuf === undefined) continue
      messages++
      const numbers = struct.protobuf.fields.map(({ number }) => number)
      assert.deepEqual(
        numbers,
        [...new Set(numbers)].sort((a, b) => a - b),
        struct.goType,
      )
    }
    assert.ok(messages > 900, `${messages} messages`)
  })

  it('nests structs that JSON inlines', () => {
    const volume = structFor('core.v1', 'Volume')
    const nested = volume.protobuf?.fields.find(({ inline }) => inline !== undefined)
    assert.equal(nested?.number, 2)
    assert.equal(nested.field, undefined)
    assert.ok(fieldsOf(nested.inline!).has(volume.fields.get('hostPath')))
    assert.deepEqual([...volume.fields.keys()].slice(0, 2), ['name', 'hostPath'])
  })

  it('distinguishes a list wrapped in a message from a repeated field', () => {
    const verbs = structFor('meta.v1', 'APIResource').protobuf?.fields.find(({ field }) => field?.name === 'verbs')
    assert.deepEqual([verbs?.wire, verbs?.repeated, verbs?.field?.schema.type], ['message', false, 'list'])
    const shortNames = structFor('meta.v1', 'APIResource').protobuf?.fields.find(({ number }) => number === 5)
    assert.deepEqual([shortNames?.wire, shortNames?.repeated], ['string', true])
  })

  it('is absent for structs with only a JSON form', () => {
    assert.equal(structFor('meta.v1', 'Table').protobuf, undefined)
    assert.ok(pod.protobuf)
  })

  it('has every JSON field except kind and apiVersion', () => {
    for (const struct of allStructs()) {
      if (struct.protobuf === undefined) continue
      const placed = fieldsOf(struct.protobuf)
      const without = [...struct.fields.values()].filter((field) => !placed.has(field)).map(({ name }) => name)
      assert.ok(
        without.every((name) => name === 'kind' || name === 'apiVersion'),
        `${struct.goType}: ${without.join(', ')}`,
      )
    }
  })
})

describe('schemas of recursive and special types', () => {
  const props = structFor('apiextensions.v1', 'JSONSchemaProps')

  it('contain cyclic references between schema objects', () => {
    const properties = props.fields.get('properties')?.schema
    assert.equal(properties?.type === 'map' && properties.values, props)
  })

  it('keep the alternatives of union types', () => {
    const items = props.fields.get('items')?.schema
    assert.equal(items?.type, 'any')
    assert.equal(items.goType, 'v1.JSONSchemaPropsOrArray')
    assert.equal(items.alternatives?.fields.get('schema')?.schema, props)
    assert.deepEqual(props.fields.get('default')?.schema, { type: 'any', goType: 'v1.JSON' })
  })

  it('have JSON names that differ from the protobuf names', () => {
    for (const name of ['$ref', '$schema', 'x-kubernetes-int-or-string', 'x-kubernetes-list-map-keys']) {
      assert.ok(props.fields.has(name), name)
    }
  })
})

describe('recorded objects of upstream', { skip }, () => {
  const files = skip ? [] : readdirSync(fixtures).filter((file) => file.endsWith('.json'))

  it('are 185 files', () => assert.equal(files.length, 185))

  for (const file of files) {
    it(`have the fields of the schema in its order: ${file}`, () => {
      const [, group = '', version = '', kind = ''] = /^(.+)\.(v\d\w*)\.(\w+)\.json$/.exec(file) ?? []
      const schema = schemaFor({ group: group === 'core' ? '' : group, version, kind })
      assert.ok(schema, 'a schema')
      compare(schema, JSON.parse(readFileSync(`${fixtures}/${file}`, 'utf8')), kind)
    })
  }
})

/**
 * Fixtures hold every field once, so a struct in one has exactly the fields of its schema, in Go's order. A kind inside
 * another comes without kind and apiVersion, because fixtures are what survives protobuf.
 */
function compare(schema: Schema, value: unknown, path: string): void {
  if (schema.type === 'list') {
    assert.ok(Array.isArray(value), path)
    for (const item of value) compare(schema.items, item, path)
  } else if (schema.type === 'map') {
    for (const [key, item] of Object.entries(value as object)) compare(schema.values, item, `${path}.${key}`)
  } else if (schema.type === 'struct') {
    const isNestedKind = schema.fields.has('kind') && !Object.hasOwn(value as object, 'kind') && path.includes('.')
    const names = [...schema.fields.keys()].slice(isNestedKind ? 2 : 0)
    assert.deepEqual(Object.keys(value as object), names, path)
    for (const [name, item] of Object.entries(value as object))
      compare(at(schema, name).schema, item, `${path}.${name}`)
  } else if (schema.type !== 'any' && value !== null) {
    assert.match(typeof value, jsonTypes[schema.type], path)
  }
}

const jsonTypes: Readonly<Record<ScalarType, RegExp>> = {
  boolean: /boolean/,
  int32: /number/,
  int64: /number/,
  float64: /number/,
  'int-or-string': /number|string/,
  string: /string/,
  bytes: /string/,
  quantity: /string/,
  time: /string/,
  microtime: /string/,
  duration: /string/,
}

function gvk(group: string, kind: string): GroupVersionKind {
  return { group, version: 'v1', kind }
}

/** The field at a path of JSON names; lists and maps are passed through. */
function at(struct: StructSchema, path: string): FieldSchema {
  let schema: Schema = struct
  let field: FieldSchema | undefined
  for (const name of path.split('.')) {
    while (schema.type === 'list' || schema.type === 'map')
      schema = schema.type === 'list' ? schema.items : schema.values
    field = schema.type === 'struct' ? schema.fields.get(name) : undefined
    assert.ok(field, `no "${name}" in ${path}`)
    schema = field.schema
  }
  return field!
}

function allStructs(): Set<StructSchema> {
  const found = new Set<StructSchema>()
  const visit = (schema: Schema): void => {
    if (schema.type === 'list') visit(schema.items)
    else if (schema.type === 'map') visit(schema.values)
    else if (schema.type === 'any' && schema.alternatives) visit(schema.alternatives)
    else if (schema.type === 'struct' && !found.has(schema)) {
      found.add(schema)
      for (const field of schema.fields.values()) visit(field.schema)
    }
  }
  for (const groupVersion of knownGroupVersions()) {
    for (const kind of knownKinds(groupVersion)) visit(schemaFor({ ...groupVersion, kind })!)
  }
  return found
}

function fieldsOf(message: ProtobufMessage): Set<FieldSchema | undefined> {
  return new Set(message.fields.flatMap(({ field, inline }) => (inline ? [...fieldsOf(inline)] : [field])))
}
