/** Tests behaviour over HTTP that only single kinds have. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Got, type Json, PATCHES, refused, startWire, type Wire } from './server.ts'

let wire: Wire
let ns: string
before(async () => {
  wire = await startWire()
  ns = await wire.namespace()
})
after(() => wire.stop())

describe('query parameter export', () => {
  it('is refused with 400 if it is true', async () => {
    const path = `/api/v1/namespaces/${ns}`
    await refused(wire.request('GET', `${path}?export=true`), 400, {
      reason: 'BadRequest',
      message: 'the export parameter, deprecated since v1.14, is no longer supported',
    })
    for (const value of ['false', '0']) {
      assert.equal((await wire.request('GET', `${path}?export=${value}`)).status, 200)
    }
  })
})

describe('a Service of type ExternalName', () => {
  it('drops internalTrafficPolicy', async () => {
    const path = `/api/v1/namespaces/${ns}/services`
    const spec = { type: 'ExternalName', externalName: 'example.com', internalTrafficPolicy: 'Cluster' }
    const created = await wire.must('POST', path, { metadata: { name: 'elsewhere' }, spec })
    assert.equal(created.spec.internalTrafficPolicy, undefined)
    const ordinary = await wire.must('POST', path, { metadata: { name: 'turned' }, spec: { ports: [{ port: 80 }] } })
    assert.equal(ordinary.spec.internalTrafficPolicy, 'Cluster')
    const turn = { spec: { type: 'ExternalName', externalName: 'example.com', clusterIP: null, clusterIPs: null } }
    const turned = await wire.must('PATCH', `${path}/turned`, turn, { headers: PATCHES.merge })
    assert.equal(turned.spec.internalTrafficPolicy, undefined)
    await refused(
      wire.request('POST', path, {
        body: { metadata: { name: 'bad' }, spec: { ...spec, internalTrafficPolicy: 'Bad' } },
      }),
      422,
      {
        message:
          'Service "bad" is invalid: spec.internalTrafficPolicy: Unsupported value: "Bad": supported values: "Cluster", "Local"',
      },
    )
  })
})

describe('an IPAddress', () => {
  it('uses generateName as its name', async () => {
    const path = '/apis/networking.k8s.io/v1/ipaddresses'
    const spec = { parentRef: { resource: 'services', name: 'none', namespace: ns } }
    const { metadata } = await wire.must('POST', path, { metadata: { generateName: '203.0.113.7' }, spec })
    assert.equal(metadata.name, '203.0.113.7')
    await wire.must('DELETE', `${path}/203.0.113.7`)
  })
})

describe('reviews such as SubjectAccessReview', () => {
  it('have managedFields if they return the request object', async () => {
    const access = { verb: 'get', resource: 'pods' }
    const ask = async (kind: string, spec: object): Promise<Json> =>
      wire.must('POST', `/apis/authorization.k8s.io/v1/${kind}?fieldManager=me`, { spec })
    const attributes = { 'f:resourceAttributes': { '.': {}, 'f:resource': {}, 'f:verb': {} } }
    for (const [kind, spec, fields] of [
      ['selfsubjectaccessreviews', { resourceAttributes: access }, attributes],
      ['subjectaccessreviews', { resourceAttributes: access, user: 'u' }, { ...attributes, 'f:user': {} }],
    ] as const) {
      const [entry] = (await ask(kind, spec)).metadata.managedFields
      assert.deepEqual(
        [entry.manager, entry.operation, entry.apiVersion, entry.fieldsV1],
        ['me', 'Update', 'authorization.k8s.io/v1', { 'f:spec': fields }],
      )
    }
    const rules = await ask('selfsubjectrulesreviews', { namespace: ns })
    assert.equal(rules.metadata.managedFields, undefined)
  })
})

describe('empty list in a field', () => {
  const dry = (path: string, body: Json): Promise<Got> =>
    wire.request('POST', `${path}?dryRun=All&fieldManager=me`, { body })
  const container = { name: 'c', image: 'i' }

  it('is rejected where only an absent list is valid', async () => {
    const slice = { driver: 'd.example.com', pool: { name: 'p', resourceSliceCount: 1 }, allNodes: true }
    const target = { kind: 'Deployment', name: 'd', apiVersion: 'apps/v1' }
    for (const [path, spec, why] of [
      [
        `/apis/autoscaling/v2/namespaces/${ns}/horizontalpodautoscalers`,
        { maxReplicas: 2, scaleTargetRef: target, behavior: { scaleUp: { policies: [] } } },
        'spec.behavior.scaleUp.policies: Required value: must specify at least one Policy',
      ],
      [
        `/api/v1/namespaces/${ns}/pods`,
        { containers: [container], resources: { claims: [] } },
        'spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level',
      ],
      [
        '/apis/resource.k8s.io/v1/resourceslices',
        { ...slice, devices: [], sharedCounters: [] },
        'spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed',
      ],
    ] as const) {
      const body = (await dry(path, { metadata: { name: 'x' }, spec })).json()
      assert.equal(body.code, 422)
      assert.ok(body.message.includes(why), body.message)
    }
    const taken = (
      await dry('/apis/resource.k8s.io/v1/resourceslices', { metadata: { name: 'x' }, spec: { ...slice, devices: [] } })
    ).json()
    assert.ok(!('devices' in taken.spec))
    assert.ok(!('f:devices' in taken.metadata.managedFields[0].fieldsV1['f:spec']))
  })

  it('counts as an absent list elsewhere, without an entry in managedFields', async () => {
    const spec = { containers: [{ ...container, resources: { claims: [] }, args: [] }], tolerations: [] }
    const created = (await dry(`/api/v1/namespaces/${ns}/pods`, { metadata: { name: 'x' }, spec })).json()
    assert.deepEqual(created.spec.containers[0].resources, {})
    const owned = created.metadata.managedFields[0].fieldsV1['f:spec']['f:containers']['k:{"name":"c"}']
    assert.deepEqual(owned['f:resources'], {})
  })
})
