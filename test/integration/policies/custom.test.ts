/** Tests admission policies about custom resources, and with custom resources as parameters. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'

import { about, type Json, PolicyPlane } from './policy-plane.ts'

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const WIDGETS = '/apis/ex.io/v1/namespaces/default/widgets'
const RULE = about('widgets', { apiGroups: ['ex.io'] })

describe('admission policies for custom resources', () => {
  let plane: PolicyPlane
  before(async () => {
    plane = await PolicyPlane.start()
    const spec = {
      type: 'object',
      properties: {
        size: { type: 'integer' },
        parts: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: {
            type: 'object',
            required: ['name'],
            properties: { name: { type: 'string' }, n: { type: 'integer' } },
          },
        },
      },
    }
    await plane.did('POST', DEFINITIONS, {
      metadata: { name: 'widgets.ex.io' },
      spec: {
        group: 'ex.io',
        scope: 'Namespaced',
        names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
          },
        ],
      },
    })
    for (let tries = 50; (await plane.request('GET', WIDGETS)).status !== 200; tries--) assert.ok(tries > 0)
  })
  after(() => plane.stop())
  afterEach(() => plane.reset())

  const widget = (name: string, spec: Json): Json => ({
    apiVersion: 'ex.io/v1',
    kind: 'Widget',
    metadata: { name },
    spec,
  })

  it('validate them with parameters of a custom kind', async () => {
    await plane.did('POST', WIDGETS, widget('limit', { size: 3 }))
    await plane.validate(
      'object.spec.size <= params.spec.size',
      { paramKind: { apiVersion: 'ex.io/v1', kind: 'Widget' }, matchConstraints: RULE },
      { paramRef: { name: 'limit', parameterNotFoundAction: 'Deny' } },
    )
    await plane.did('POST', WIDGETS, widget('small', { size: 3 }))
    const refused = await plane.request('POST', WIDGETS, widget('large', { size: 4 }))
    assert.equal(refused.status, 422)
    assert.match(
      (refused.json() as { message: string }).message,
      /^widgets.ex.io "large" is forbidden: .* failed expression: object.spec.size <= params.spec.size$/,
    )
  })

  it('mutate them with apply configurations and JSON patches', async () => {
    const parts = "[Object.spec.parts{name: 'b', n: 2}]"
    await plane.use('mutating', {
      matchConstraints: RULE,
      mutations: [
        {
          patchType: 'ApplyConfiguration',
          applyConfiguration: { expression: `Object{spec: Object.spec{parts: ${parts}}}` },
        },
        {
          patchType: 'JSONPatch',
          jsonPatch: { expression: "[JSONPatch{op: 'replace', path: '/spec/size', value: 7}]" },
        },
      ],
    })
    const made = await plane.did(
      'POST',
      WIDGETS,
      widget('made', { size: 1, parts: [{ name: 'a' }, { name: 'b', n: 1 }] }),
    )
    assert.deepEqual(made['spec'], { size: 7, parts: [{ name: 'a' }, { name: 'b', n: 2 }] })
  })
})
