import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { JSONSchemaProps } from '#apis/apiextensions/v1.ts'
import type { WriteContext } from '#apiserver/registry/resource.ts'
import { createVirtualClock } from '#lib/clock.ts'

import { changed, tryRules } from '../../rules.fixture.ts'
import { CLEANUP_FINALIZER, customResourceDefinition } from './resource.ts'

const { create, update, read, cells } = tryRules(customResourceDefinition)

const object = (properties: Record<string, JSONSchemaProps>, more: JSONSchemaProps = {}): JSONSchemaProps => ({
  type: 'object',
  properties,
  ...more,
})

const schema = object({
  spec: object({ replicas: { type: 'integer', format: 'int32' }, name: { type: 'string' } }),
  status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
})

const body = {
  metadata: { name: 'foos.acme.io' },
  spec: {
    group: 'acme.io',
    scope: 'Namespaced',
    names: {
      plural: 'foos',
      singular: 'foo',
      kind: 'Foo',
      listKind: 'FooList',
      shortNames: ['f'],
      categories: ['all'],
    },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: schema },
        subresources: { status: {}, scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.n' } },
        additionalPrinterColumns: [{ name: 'N', type: 'string', jsonPath: '.spec.name' }],
        selectableFields: [{ jsonPath: '.spec.name' }],
      },
    ],
    conversion: { strategy: 'None' },
  },
}

const established = {
  ...body,
  status: {
    acceptedNames: { plural: 'foos', kind: 'Foo' },
    conditions: [{ type: 'Established', status: 'True' }],
    storedVersions: ['v1'],
  },
}

type Table = readonly (readonly [path: string, value: unknown, errors: readonly string[]])[]

async function refuses(table: Table): Promise<void> {
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, `${path} ${JSON.stringify(value)}`)
  }
}

const dns1035 =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"

describe('CustomResourceDefinition', () => {
  it('requires the name plural.group, even if generated', async () => {
    const { errors } = await create(changed(body, 'metadata', { name: 'foos.other', generateName: 'foos.' }))
    const why = 'must be spec.names.plural+"."+spec.group'
    assert.deepEqual(
      errors.filter((error) => error.endsWith(why)),
      [`metadata.generateName: Invalid value: "foos.": ${why}`, `metadata.name: Invalid value: "foos.other": ${why}`],
    )
  })

  it('is accepted, and records the storage version', async () => {
    const { errors, object: taken } = await create(body)
    assert.deepEqual(errors, [])
    assert.equal(taken.metadata.generation, 1)
    assert.deepEqual(taken.status, {
      conditions: null,
      acceptedNames: { plural: '', kind: '' },
      storedVersions: ['v1'],
    })
  })

  it('derives singular and listKind from its kind', () => {
    const { spec } = read({ metadata: { name: 'x' }, spec: { names: { plural: 'foos', kind: 'Foo' }, versions: [] } })
    assert.deepEqual(spec.names, { plural: 'foos', singular: 'foo', kind: 'Foo', listKind: 'FooList' })
    assert.deepEqual(spec.conversion, { strategy: 'None' })
  })

  it('rejects invalid names', async () => {
    await refuses([
      [
        'metadata.name',
        'bars.acme.io',
        ['metadata.name: Invalid value: "bars.acme.io": must be spec.names.plural+"."+spec.group'],
      ],
      ['spec.scope', '', ['spec.scope: Required value']],
      ['spec.scope', 'Galaxy', ['spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"']],
      [
        'spec.names.kind',
        'Foo_',
        [`spec.names.kind: Invalid value: "Foo_": may have mixed case, but should otherwise match: ${dns1035}`],
      ],
      [
        'spec.names.listKind',
        'Foo',
        ['spec.names.listKind: Invalid value: "Foo": kind and listKind may not be the same'],
      ],
      ['spec.names.shortNames', ['F'], [`spec.names.shortNames[0]: Invalid value: "F": ${dns1035}`]],
      ['spec.names.categories', ['A'], [`spec.names.categories[0]: Invalid value: "A": ${dns1035}`]],
    ])
    const core = changed(changed(body, 'spec.group', 'acme'), 'metadata.name', 'foos.acme')
    assert.deepEqual((await create(core)).errors, [
      'spec.group: Invalid value: "acme": should be a domain with at least one dot',
    ])
  })

  it('requires approval for groups of the Kubernetes project', async () => {
    const ours = changed(changed(body, 'spec.group', 'x.k8s.io'), 'metadata.name', 'foos.x.k8s.io')
    const approve = (annotation: string): object =>
      changed(ours, 'metadata.annotations', { 'api-approved.kubernetes.io': annotation })
    const field = 'metadata.annotations[api-approved.kubernetes.io]'
    const rule = 'protected groups must have approval annotation "api-approved.kubernetes.io"'
    const link = 'see https://github.com/kubernetes/enhancements/pull/1111'
    assert.deepEqual((await create(ours)).errors, [`${field}: Required value: ${rule}, ${link}`])
    assert.deepEqual((await create(approve('sure'))).errors, [
      `${field}: Invalid value: "sure": ${rule} with either a URL or a reason starting with "unapproved", ${link}`,
    ])
    assert.deepEqual((await create(approve('https://acme.io/1'))).errors, [])
    assert.deepEqual((await create(approve('unapproved, testing'))).errors, [])
  })
})

describe('versions of a definition', () => {
  it('are rejected for invalid names, storage and warnings', async () => {
    const second = { name: 'v2', served: true, storage: false, schema: { openAPIV3Schema: { type: 'object' } } }
    const twice = { ...body.spec.versions[0], storage: true, name: 'v2' }
    await refuses([
      [
        'spec.versions.0.name',
        '1',
        [`spec.versions[0].name: Invalid value: "1": ${dns1035}`, `spec.version: Invalid value: "1": ${dns1035}`],
      ],
      [
        'spec.versions.0.deprecationWarning',
        'old',
        ['spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions'],
      ],
      [
        'spec.versions.0.schema',
        undefined,
        [
          'spec.versions[0].schema.openAPIV3Schema: Required value',
          'spec.selectableFields: Invalid value: "": may only be set when validations.schema is included',
        ],
      ],
      [
        'spec.preserveUnknownFields',
        true,
        [
          'spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
        ],
      ],
    ])
    assert.deepEqual((await create(changed(body, 'spec.versions.1', second))).errors, [])
    const { errors } = await create(changed(body, 'spec.versions.1', twice))
    assert.match(
      errors[0] ?? '',
      /^spec\.versions: Invalid value: .*: must have exactly one version marked as storage version$/,
    )
    assert.deepEqual(errors.slice(1), [
      'status.storedVersions: Invalid value: ["v1"]: must have the storage version v2',
    ])
  })

  it('are rejected for invalid subresources, columns and selectable fields', async () => {
    const types = 'must be one of boolean,date,integer,number,string'
    await refuses([
      [
        'spec.versions.0.subresources.scale',
        { specReplicasPath: '', statusReplicasPath: 'status.n' },
        [
          'spec.subresources.scale.specReplicasPath: Required value',
          'spec.subresources.scale.statusReplicasPath: Invalid value: "status.n": must be a simple json path starting with .',
        ],
      ],
      [
        'spec.versions.0.subresources.scale.labelSelectorPath',
        '.metadata.x',
        [
          'spec.subresources.scale.labelSelectorPath: Invalid value: ".metadata.x": should be a json path under either .spec or .status',
        ],
      ],
      [
        'spec.versions.0.additionalPrinterColumns.0',
        { name: '', type: 'text', format: 'long', jsonPath: 'x' },
        [
          'spec.additionalPrinterColumns[0].name: Required value',
          `spec.additionalPrinterColumns[0].type: Invalid value: "text": ${types}`,
          'spec.additionalPrinterColumns[0].format: Invalid value: "long": must be one of byte,date,date-time,double,float,int32,int64,password',
          'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "x": must be a simple json path starting with .',
        ],
      ],
      [
        'spec.versions.0.selectableFields',
        [
          { jsonPath: '' },
          { jsonPath: '.spec.x' },
          { jsonPath: '.spec' },
          { jsonPath: ".spec['name']" },
          { jsonPath: '.spec.name' },
          { jsonPath: '.spec.name' },
        ],
        [
          'spec.selectableFields[0].jsonPath: Required value',
          'spec.selectableFields[1].jsonPath: Invalid value: ".spec.x": is an invalid path: does not refer to a valid field',
          'spec.selectableFields[2].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.',
          'spec.selectableFields[3].jsonPath: Invalid value: ".spec[\'name\']": is an invalid path: array notation is not allowed',
          'spec.selectableFields[5].jsonPath: Duplicate value: ".spec.name"',
        ],
      ],
    ])
  })

  it('require a reachable conversion webhook', async () => {
    const webhook = { clientConfig: { url: 'http://h' }, conversionReviewVersions: ['v9'] }
    await refuses([
      [
        'spec.conversion',
        { strategy: 'Magic' },
        ['spec.conversion.strategy: Unsupported value: "Magic": supported values: "None", "Webhook"'],
      ],
      [
        'spec.conversion',
        { strategy: 'Webhook' },
        [
          'spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook',
          'spec.conversion.conversionReviewVersions: Required value',
        ],
      ],
      [
        'spec.conversion',
        { strategy: 'Webhook', webhook },
        [
          'spec.conversion.webhookClientConfig.url: Invalid value: "http": \'https\' is the only allowed URL scheme; desired format: https://host[/path]',
          'spec.conversion.conversionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1',
        ],
      ],
      [
        'spec.conversion',
        { strategy: 'None', webhook },
        [
          'spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook',
          'spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook',
        ],
      ],
    ])
  })

  it('cannot be removed while status.storedVersions lists them', async () => {
    const versions = [{ ...body.spec.versions[0], name: 'v2' }]
    const { errors } = await update(changed(established, 'spec.versions', versions), established)
    assert.deepEqual(errors, [
      'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions',
    ])
    const both = [
      { ...body.spec.versions[0], storage: false },
      { ...body.spec.versions[0], name: 'v2' },
    ]
    const { object: next } = await update(changed(established, 'spec.versions', both), established)
    assert.deepEqual(next.status.storedVersions, ['v1', 'v2'])
  })
})

describe('schema of a definition', () => {
  /** Errors of `schema`, without its path. */
  async function complaints(given: JSONSchemaProps, withStatus = false): Promise<string[]> {
    const version = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: given } }
    const whole = changed(body, 'spec.versions', [withStatus ? { ...version, subresources: { status: {} } } : version])
    const { errors } = await create(whole)
    return errors.map((error) => error.replace('spec.validation.openAPIV3Schema', '~'))
  }

  it('defines each type once, outside of conditions', async () => {
    const cases: readonly (readonly [JSONSchemaProps, readonly string[]])[] = [
      [{}, ['~.type: Required value: must not be empty at the root']],
      [{ type: 'string' }, ['~.type: Invalid value: "string": must be object at the root']],
      [object({ a: {} }), ['~.properties[a].type: Required value: must not be empty for specified object fields']],
      [object({ a: { type: 'array' } }), ['~.properties[a].items: Required value: must be specified']],
      [
        object({ a: { type: 'array', items: {} } }),
        ['~.properties[a].items.type: Required value: must not be empty for specified array items'],
      ],
      [
        { type: 'object', additionalProperties: { type: 'string' } },
        ['~.additionalProperties: Forbidden: must not be used at the root'],
      ],
      [
        object({ metadata: { type: 'object', description: 'x' } }),
        [
          '~.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
        ],
      ],
      [object({ kind: { type: 'integer' } }), ['~.properties[kind].type: Invalid value: "integer": must be string']],
      [
        object({ a: { type: 'string', pattern: '[' } }),
        [
          '~.properties[a].pattern: Invalid value: "[": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ]: `[`',
        ],
      ],
      [object({ a: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] } }), []],
      [
        object(
          { a: { type: 'string' } },
          { allOf: [{ description: 'd', properties: { a: { type: 'string' }, b: {} } }] },
        ),
        [
          '~.allOf[0].description: Forbidden: must be empty to be structural',
          '~.allOf[0].properties[a].type: Forbidden: must be empty to be structural',
          '~.properties[b]: Required value: because it is defined in spec.validation.openAPIV3Schema.allOf[0].properties[b]',
        ],
      ],
      [
        object({ a: { type: 'object', 'x-kubernetes-embedded-resource': true } }),
        [
          '~.properties[a].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
        ],
      ],
    ]
    for (const [given, errors] of cases) assert.deepEqual(await complaints(given), errors, JSON.stringify(given))
  })

  it('contains only supported keywords', async () => {
    const cases: readonly (readonly [JSONSchemaProps, readonly string[]])[] = [
      [object({ a: { type: 'object', $ref: '#/x' } }), ['~.properties[a].$ref: Forbidden: $ref is not supported']],
      [
        object({ a: { type: 'text' } }),
        [
          '~.properties[a].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"',
        ],
      ],
      [
        object({ a: { type: 'string', uniqueItems: true } }),
        [
          '~.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
        ],
      ],
      [
        object({ kind: { type: 'string', default: 'Foo' } }),
        ['~.properties[kind].default: Forbidden: must not be set in top-level kind'],
      ],
      [
        object({ a: object({ b: { type: 'string' } }, { additionalProperties: { type: 'string' } }) }),
        ['~.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive'],
      ],
      [{ type: 'object', nullable: true }, ['~.nullable: Forbidden: nullable cannot be true at the root']],
      [
        object({ a: { type: 'object', $schema: 'x' } }),
        ['~: Invalid value: "": OpenAPIV3Schema \'schema\' is not supported'],
      ],
    ]
    for (const [given, errors] of cases) assert.deepEqual(await complaints(given), errors, JSON.stringify(given))
    const [error = ''] = await complaints({ type: 'object', maxProperties: 3 }, true)
    assert.match(
      error,
      /^~: Invalid value: .*: only \[Description Type Format .* XValidations\] fields are allowed at the root/,
    )
  })

  it('defines the merging of lists and maps', async () => {
    const list = (more: JSONSchemaProps): JSONSchemaProps => object({ a: { type: 'array', ...more } })
    const map: JSONSchemaProps = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'] }
    const cases: readonly (readonly [JSONSchemaProps, readonly string[]])[] = [
      [
        list({ 'x-kubernetes-list-type': 'bag', items: { type: 'string' } }),
        ['~.properties[a].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"'],
      ],
      [
        list({ 'x-kubernetes-list-type': 'set', items: { type: 'object' } }),
        [
          '~.properties[a].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set',
        ],
      ],
      [
        list({ ...map, items: object({ k: { type: 'string' } }) }),
        [
          '~.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
        ],
      ],
      [list({ ...map, items: object({ k: { type: 'string' } }, { required: ['k'] }) }), []],
      [
        list({ ...map, items: object({ x: { type: 'string' } }) }),
        [
          '~.properties[a].x-kubernetes-list-map-keys: Invalid value: ["k"]: entries must all be names of item properties',
        ],
      ],
      [
        object({ a: { type: 'string', 'x-kubernetes-map-type': 'atomic' } }),
        ['~.properties[a].type: Invalid value: "string": must be object if x-kubernetes-map-type is specified'],
      ],
    ]
    for (const [given, errors] of cases) assert.deepEqual(await complaints(given), errors, JSON.stringify(given))
  })

  it('has valid validation rules', async () => {
    const rules = [
      { rule: ' ' },
      { rule: 'true', message: 'a\nb' },
      { rule: 'true\n&& true' },
      { rule: 'true', reason: 'Because' },
      { rule: 'true', fieldPath: '.x' },
      { rule: 'true', fieldPath: ".b['c']" },
    ]
    const at = '~.properties[a].x-kubernetes-validations'
    const a = object({ b: object({ c: { type: 'string' } }) }, { 'x-kubernetes-validations': rules })
    assert.deepEqual(await complaints(object({ a })), [
      `${at}[0].rule: Required value: rule is not specified`,
      `${at}[1].message: Invalid value: "a\\nb": must not contain line breaks`,
      `${at}[2].message: Required value: message must be specified if rule contains line breaks`,
      `${at}[3].reason: Unsupported value: "Because": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"`,
      `${at}[4].fieldPath: Invalid value: ".x": must be a valid path`,
    ])
  })

  it('has valid defaults, unless the old ones were invalid', async () => {
    const loose = object({ a: object({ b: { type: 'string' } }, { default: { zz: 1 } }) })
    assert.deepEqual(await complaints(loose), [
      '~.properties[a].default: Invalid value: {"zz":1}: must not have unknown fields',
    ])
    const path = 'spec.versions.0.schema.openAPIV3Schema.properties.a'
    const stored = changed(established, path, loose.properties?.['a'])
    assert.deepEqual((await update(changed(stored, 'spec.names.shortNames', ['g']), stored)).errors, [])
  })

  it('warns of unknown formats', async () => {
    const odd = changed(
      body,
      'spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.name.format',
      'k8s-odd',
    )
    assert.deepEqual((await create(odd)).warnings, ['unrecognized format "k8s-odd"'])
    assert.deepEqual((await update(odd, odd)).warnings, [])
  })
})

describe('a large definition', () => {
  const rule = { rule: 'self.all(k, k.size() < 9)', message: 'short keys' }
  const field = (at: number): JSONSchemaProps => ({
    type: 'object',
    maxProperties: 3,
    additionalProperties: { type: 'string', maxLength: 8, pattern: `^a{1,${at + 1}}$`, default: 'a' },
    ...(at % 10 === 0 && { 'x-kubernetes-validations': [rule] }),
  })
  const fields = (count: number): object =>
    changed(
      body,
      'spec.versions.0.schema.openAPIV3Schema.properties.spec',
      object({
        name: { type: 'string' },
        ...Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, field(at)])),
      }),
    )
  /** The number of event loop yields during validation. */
  const stepsOf = (count: number): number => {
    const steps = customResourceDefinition.validateInSteps?.(read(fields(count)), undefined, {} as WriteContext)
    let taken = 0
    for (let step = steps?.next(); step?.done === false; step = steps?.next()) taken++
    return taken
  }

  it('is validated in at least as many steps as it has rules and patterns', async () => {
    assert.deepEqual((await create(fields(200))).errors, [])
    const [small, large] = [stepsOf(20), stepsOf(200)]
    assert.ok(large > 240 && large > small * 8, `${small} and ${large} steps`)
  })
})

describe('a definition in use', () => {
  it('keeps its scope, kind, group and plural', async () => {
    const scoped = changed(changed(established, 'spec.scope', 'Cluster'), 'spec.names.kind', 'Bar')
    assert.deepEqual((await update(scoped, established)).errors, [
      'spec.scope: Invalid value: "Cluster": field is immutable',
      'spec.names.kind: Invalid value: "Bar": field is immutable',
    ])
    const fresh = changed(established, 'status.conditions', null)
    assert.deepEqual((await update(changed(scoped, 'status.conditions', null), fresh)).errors, [])
    assert.deepEqual((await update(changed(established, 'spec.group', 'b.io'), established)).errors, [
      'spec.group: Invalid value: "b.io": field is immutable',
    ])
  })

  it('increases its generation when a version gets a status subresource', async () => {
    const without = changed(established, 'spec.versions.0.subresources.status', undefined)
    const stored = changed(without, 'metadata.generation', 1)
    assert.equal((await update(changed(established, 'metadata.generation', 1), stored)).object.metadata.generation, 2)
  })

  it('takes names and conditions from its controllers', async () => {
    const bad = changed(established, 'status.acceptedNames.plural', 'Foos')
    assert.deepEqual((await update(bad, established, 'status')).errors, [
      `status.acceptedNames.plural: Invalid value: "Foos": ${dns1035}`,
    ])
  })

  it('drops new observed generations while CRDObservedGenerationTracking is off', async () => {
    const tracked = changed(changed(established, 'status.observedGeneration', 2), 'status.conditions.0', {
      type: 'Established',
      status: 'True',
      observedGeneration: 2,
    })
    const generations = async (off: string[], old: object): Promise<unknown[]> => {
      const { status } = (await tryRules(customResourceDefinition, { off }).update(tracked, old, 'status')).object
      return [status.observedGeneration, status.conditions?.[0]?.observedGeneration]
    }
    assert.deepEqual(await generations([], established), [2, 2])
    assert.deepEqual(await generations(['CRDObservedGenerationTracking'], established), [undefined, undefined])
    assert.deepEqual(await generations(['CRDObservedGenerationTracking'], tracked), [2, 2])
  })

  it('keeps stored versions until they are removed explicitly', async () => {
    const both = [
      { ...body.spec.versions[0], storage: false },
      { ...body.spec.versions[0], name: 'v2' },
    ]
    const stored = changed(changed(established, 'spec.versions', both), 'status.storedVersions', ['v1', 'v2'])
    const migrated = await update(changed(stored, 'status.storedVersions', ['v2']), stored, 'status')
    assert.deepEqual([migrated.errors, migrated.object.status.storedVersions], [[], ['v2']])
    const emptied = await update(changed(stored, 'status.storedVersions', []), stored, 'status')
    assert.deepEqual([emptied.errors, emptied.object.status.storedVersions], [[], ['v2']])
    const odd = changed(stored, 'status.storedVersions', ['v1'])
    assert.deepEqual((await update(odd, stored, 'status')).errors, [])
    const next = await update(changed(odd, 'spec.names.shortNames', ['g']), odd)
    assert.deepEqual([next.errors, next.object.status.storedVersions], [[], ['v1', 'v2']])
  })

  it('accepts invalid certificates of its webhook until it is established with valid ones', async () => {
    const [junk, good] = [Buffer.from('junk'), Buffer.from('-----BEGIN CERTIFICATE-----')].map((text) =>
      text.toString('base64'),
    )
    const calling = (caBundle: string | undefined): typeof established =>
      changed(established, 'spec.conversion', {
        strategy: 'Webhook',
        webhook: { clientConfig: { url: 'https://h', caBundle }, conversionReviewVersions: ['v1'] },
      })
    assert.deepEqual((await create(calling(junk))).errors, [])
    assert.deepEqual((await update(calling(junk), calling(junk))).errors, [])
    assert.deepEqual((await update(calling(junk), calling(good))).errors, [
      'spec.conversion.webhookClientConfig.caBundle: Invalid value: "anVuaw==": unable to load root certificates: unable to parse bytes as PEM block',
    ])
  })

  it('is deleted after its objects', () => {
    const stored = read(established)
    const context = { clock: createVirtualClock() } as unknown as WriteContext
    customResourceDefinition.deletion?.(stored, {}, context)
    assert.deepEqual(stored.metadata.finalizers, [CLEANUP_FINALIZER])
    assert.deepEqual(
      stored.status.conditions?.map(({ type, reason }) => [type, reason]),
      [
        ['Established', undefined],
        ['Terminating', 'InstanceDeletionPending'],
      ],
    )
  })

  it('prints its creation time', () => {
    assert.deepEqual(cells(body), ['foos.acme.io', null])
    assert.equal(customResourceDefinition.storagePrefix, 'apiextensions.k8s.io/customresourcedefinitions')
    assert.equal(customResourceDefinition.putNeedsVersion, true)
  })
})
