/** Tests discovery with aggregated servers: the order of groups, documents of other servers, and OpenAPI. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { eventually } from '#kits/lib/eventually.ts'

import {
  addApiService,
  addService,
  type AggregatedServer,
  AGGREGATED_V2,
  API_SERVICES,
  type FrontPlane,
  isSaid,
  type Json,
  LEGACY,
  RESOURCES,
  SLICES,
  startAggregatedServer,
  startFrontPlane,
} from './aggregated-server.ts'

/** After apiregistration.k8s.io, which announces all others. */
const BUILT_IN = `apps events.k8s.io authentication.k8s.io authorization.k8s.io autoscaling batch certificates.k8s.io
  networking.k8s.io policy rbac.authorization.k8s.io storage.k8s.io admissionregistration.k8s.io apiextensions.k8s.io
  scheduling.k8s.io coordination.k8s.io node.k8s.io discovery.k8s.io resource.k8s.io flowcontrol.apiserver.k8s.io`.split(
  /\s+/,
)

let server: AggregatedServer
let front: FrontPlane

const aggregated = async (): Promise<{ groups: Json[]; etag: string | null }> => {
  const answer = await front.plane.request('GET', '/apis', undefined, { accept: AGGREGATED_V2 })
  return { groups: answer.json()['items'] as Json[], etag: answer.headers.get('etag') }
}
const ofAgg = async (): Promise<Json> =>
  (await aggregated()).groups.find(({ metadata }) => metadata.name === 'agg.io')?.versions
const names = (groups: Json[]): string[] => groups.map((group) => group.name ?? group.metadata.name)

before(async () => {
  server = await startAggregatedServer()
  front = await startFrontPlane()
})

after(async () => {
  await front[Symbol.asyncDispose]()
  await server.stop()
})

describe('API groups with aggregation', () => {
  it('are ordered by priority in every list', async () => {
    const wanted = ['apiregistration.k8s.io', ...BUILT_IN]
    assert.deepEqual(names((await front.must('GET', '/apis')).groups), wanted)
    assert.deepEqual(names((await aggregated()).groups), wanted)
  })

  it('of APIServices are listed even if their server does not respond', async () => {
    const before = await aggregated()
    await addApiService(front)
    await isSaid(front, 'ServiceNotFound')
    assert.deepEqual(names((await front.must('GET', '/apis')).groups).at(-1), 'agg.io')
    const { versions, preferredVersion } = await front.must('GET', '/apis/agg.io')
    assert.deepEqual([versions, preferredVersion], [[{ groupVersion: 'agg.io/v1', version: 'v1' }], versions[0]])
    assert.deepEqual(await ofAgg(), [{ version: 'v1', freshness: 'Stale' }])
    assert.notEqual((await aggregated()).etag, before.etag)
    const { paths } = await front.must('GET', '/')
    assert.ok(paths.includes('/apis/agg.io') && paths.includes('/apis/agg.io/v1'))
  })

  it('move in the list if priorities change', async () => {
    await addApiService(front, { versionPriority: 20, groupPriorityMinimum: 17_801 }, 'v1beta1')
    await addApiService(front, { versionPriority: 20, groupPriorityMinimum: 1 }, 'v1alpha1')
    await eventually(ofAgg, (versions) => versions.length === 3)
    const order = ['v1beta1', 'v1alpha1', 'v1']
    const { versions } = await front.must('GET', '/apis/agg.io')
    assert.deepEqual(
      versions.map(({ version }: Json) => version),
      order,
    )
    assert.deepEqual(
      (await ofAgg()).map(({ version }: Json) => version),
      order,
    )
    assert.equal(names((await front.must('GET', '/apis')).groups)[1], 'agg.io')
    assert.equal(names((await aggregated()).groups)[1], 'agg.io')
    for (const version of ['v1beta1', 'v1alpha1']) await front.must('DELETE', `${API_SERVICES}/${version}.agg.io`)
    await eventually(ofAgg, (left) => left.length === 1)
  })

  it('of this server disappear from the list with their APIService, but are still served', async () => {
    await front.must('PATCH', `${API_SERVICES}/v1.batch`, { spec: { groupPriorityMinimum: 5 } })
    assert.deepEqual(names((await front.must('GET', '/apis')).groups).at(-1), 'batch')
    const { metadata } = await front.must('GET', `${API_SERVICES}/v1.batch`)
    assert.equal(metadata.labels['kube-aggregator.kubernetes.io/automanaged'], 'onstart')
    await front.must('DELETE', `${API_SERVICES}/v1.batch`)
    assert.ok(!names((await front.must('GET', '/apis')).groups).includes('batch'))
    assert.equal((await front.must('GET', '/apis/batch')).name, 'batch')
    assert.equal((await front.must('GET', '/apis/batch/v1/jobs')).kind, 'JobList')
    assert.ok(names((await aggregated()).groups).includes('batch'))
  })
})

describe('discovery document of an aggregated server', () => {
  before(async () => {
    await addService(front, server.port)
    await isSaid(front, 'Passed')
  })

  it('is fetched and marked as current', async () => {
    const [version] = await eventually(ofAgg, ([one]) => one.freshness === 'Current')
    assert.deepEqual(version, { version: 'v1', resources: RESOURCES, freshness: 'Current' })
    const [asked] = server.to('/apis')
    assert.equal(
      asked?.headers['accept'],
      `${AGGREGATED_V2},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList`,
    )
    assert.deepEqual(
      [asked.headers['x-remote-user'], asked.headers['x-remote-group'], asked.caller],
      ['system:kube-aggregator', 'system:masters', 'front-proxy-client'],
    )
    const protobuf = AGGREGATED_V2.replace('application/json', 'application/vnd.kubernetes.protobuf')
    const { text } = await front.plane.request('GET', '/apis', undefined, { accept: protobuf })
    assert.match(text, /widgets/)
  })

  it('is fetched again if the APIService changes, and published only if it differs', async () => {
    const before = server.to('/apis').length
    await front.must('PATCH', `${API_SERVICES}/v1.agg.io`, { spec: { versionPriority: 12 } })
    await eventually(
      () => server.to('/apis').length,
      (count) => count > before,
    )
    assert.equal(server.to('/apis').at(-1)?.headers['if-none-match'], '"one"')
    assert.equal((await ofAgg())[0].resources.length, 1)
  })

  it('may have the older discovery formats', async () => {
    const list = server.documents.get('/apis')?.body as Json
    const beta = { ...list, apiVersion: 'apidiscovery.k8s.io/v2beta1', items: structuredClone(list.items) }
    beta.items[0].versions[0].resources[0].resource = 'gadgets'
    delete beta.items[0].versions[0].resources[0].responseKind
    server.documents.set('/apis', { type: AGGREGATED_V2.replace('v=v2', 'v=v2beta1'), body: beta })
    await front.must('PATCH', `${API_SERVICES}/v1.agg.io`, { spec: { versionPriority: 13 } })
    const [version] = await eventually(ofAgg, ([one]) => one.resources?.[0]?.resource === 'gadgets')
    assert.deepEqual(version.resources[0].responseKind, { group: '', version: '', kind: '' })
    server.documents.set('/apis', { body: { kind: 'APIGroupList', groups: [] } })
    await front.must('PATCH', `${API_SERVICES}/v1.agg.io`, { spec: { versionPriority: 14 } })
    const [old] = await eventually(ofAgg, ([one]) => one.resources?.[0]?.resource === 'widgets')
    assert.deepEqual(old.resources[0].subresources, [
      { subresource: 'status', responseKind: { group: '', version: '', kind: 'Widget' }, verbs: ['get'] },
    ])
    assert.deepEqual(old.resources[0].responseKind, { group: '', version: '', kind: 'Widget' })
    assert.equal(old.freshness, 'Current')
  })

  it('is marked stale while it is invalid, without effect on other groups', async () => {
    const nonsense = ['{', '[]', '{"items":7}', `{"items":[{"versions":{"a":1}}]}`, '{"kind":"Pod","apiVersion":"v1"}']
    for (const [at, body] of nonsense.entries()) {
      server.documents.set('/apis', { type: AGGREGATED_V2, body })
      await front.must('PATCH', `${API_SERVICES}/v1.agg.io`, { spec: { versionPriority: 20 + at } })
      assert.deepEqual(await eventually(ofAgg, ([one]) => one.freshness === 'Stale'), [
        { version: 'v1', freshness: 'Stale' },
      ])
      server.documents.set('/apis', { body: {} })
      await front.must('PATCH', `${API_SERVICES}/v1.agg.io`, { spec: { versionPriority: 30 + at } })
      await eventually(ofAgg, ([one]) => one.freshness === 'Current')
    }
    assert.ok(names((await aggregated()).groups).includes('apps'))
    assert.deepEqual(LEGACY, server.documents.get('/apis/agg.io/v1')?.body)
  })

  it('is counted in a metric each time the document is built', async () => {
    const count = async (): Promise<number> => {
      const { text } = await front.plane.request('GET', '/metrics')
      return Number(/^aggregator_discovery_aggregation_count_total (\d+)$/m.exec(text)?.[1])
    }
    await aggregated()
    const before = await count()
    await aggregated()
    assert.equal(await count(), before)
    assert.ok(before > 0)
  })
})

describe('OpenAPI document of an aggregated server', () => {
  const index = async (): Promise<Json> => (await front.must('GET', '/openapi/v3')).paths

  it('in v3 has its own path in the index, and is fetched from the server', async () => {
    const paths = await eventually(index, (one) => one['apis/agg.io/v1'] !== undefined)
    assert.deepEqual(paths['apis/agg.io/v1'], { serverRelativeURL: '/openapi/v3/apis/agg.io/v1?hash=ABC' })
    assert.doesNotMatch(paths['apis/apps/v1'].serverRelativeURL, /STOLEN/)
    assert.equal(paths['evil'], undefined)
    const asked = server.to('/openapi/v3')[0]
    assert.deepEqual(
      [asked?.headers['x-remote-user'], asked?.headers['x-remote-group']],
      ['system:aggregator', undefined],
    )
    const document = await front.must('GET', '/openapi/v3/apis/agg.io/v1?hash=ABC')
    assert.deepEqual(document, { openapi: '3.0.0', info: { title: 'agg' } })
    const passed = server.to('/openapi/v3/apis/agg.io/v1?hash=ABC').at(-1)
    assert.equal(passed?.headers['x-remote-user'], 'admin')
    assert.notEqual((await front.must('GET', '/openapi/v3/apis/apps/v1')).info.title, 'agg')
    const { text } = await front.plane.request('GET', '/readyz?verbose')
    assert.match(
      text,
      /\[\+\]poststarthook\/aggregator-reload-proxy-client-cert ok\n\[\+\]poststarthook\/start-kube-agg/,
    )
  })

  it('in v2 is merged into ours, and conflicting definitions are renamed', async () => {
    const { paths, definitions } = await eventually(
      () => front.must('GET', '/openapi/v2'),
      (one) => one.paths['/apis/agg.io/v1/widgets'] !== undefined,
    )
    assert.notEqual(paths['/apis/apps/v1/deployments'].get.operationId, 'stolen')
    assert.equal(paths['/other/'], undefined)
    assert.equal(definitions['io.agg.v1.Unused'], undefined)
    const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'
    assert.deepEqual(definitions['io.agg.v1.Widget'].properties, { metadata: { $ref: `#/definitions/${meta}_v2` } })
    assert.equal(definitions[`${meta}_v2`].description, 'Of another release.')
    assert.ok(definitions[meta].properties.name)
    const asked = server.to('/openapi/v2')[0]
    assert.deepEqual(
      [asked?.headers['accept'], asked?.headers['x-remote-user']],
      ['application/json', 'system:aggregator'],
    )
    const protobuf = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
    const { text } = await front.plane.request('GET', '/openapi/v2', undefined, { accept: protobuf })
    assert.match(text, /io\.agg\.v1\.Widget/)
  })

  it('keeps its last valid version while the server sends an invalid one', async () => {
    const sane = server.documents.get('/openapi/v2')
    const path = { get: { parameters: [null], responses: 7 } }
    const nonsense: unknown[] = ['{', '[]', { paths: 7 }, { paths: { '/apis/agg.io/v1/widgets': path } }]
    for (const [at, body] of nonsense.entries()) {
      server.documents.set('/openapi/v2', { body })
      const before = server.to('/openapi/v2').length
      await front.must('PATCH', `${API_SERVICES}/v1.agg.io`, { spec: { versionPriority: 50 + at } })
      await eventually(
        () => server.to('/openapi/v2').length,
        (count) => count > before,
      )
      const protobuf = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
      const { status, text } = await front.plane.request('GET', '/openapi/v2', undefined, { accept: protobuf })
      assert.equal(status, 200)
      assert.match(text, /io\.agg\.v1\.Widget/)
    }
    if (sane !== undefined) server.documents.set('/openapi/v2', sane)
  })

  it('in v3 is converted from v2 if the server has only v2', async () => {
    server.documents.delete('/openapi/v3')
    server.documents.set('/openapi/v2', { body: server.documents.get('/openapi/v2')?.body })
    await front.must('PATCH', `${API_SERVICES}/v1.agg.io`, { spec: { versionPriority: 40 } })
    const made = /^\/openapi\/v3\/apis\/agg\.io\/v1\?hash=[0-9A-F]{128}$/
    const paths = await eventually(index, (one) => made.test(one['apis/agg.io/v1']?.serverRelativeURL ?? ''))
    const document = await front.must('GET', paths['apis/agg.io/v1'].serverRelativeURL)
    assert.equal(document.openapi, '3.0.0')
    const { content } = document.paths['/apis/agg.io/v1/widgets'].get.responses['200']
    assert.deepEqual(content, { '*/*': { schema: { $ref: '#/components/schemas/io.agg.v1.Widget' } } })
    assert.deepEqual(Object.keys(document.components.schemas).sort(), [
      'io.agg.v1.Widget',
      'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta',
    ])
  })

  it('stays while the server is unreachable, and disappears with the APIService', async () => {
    await front.must('DELETE', `${SLICES}/agg`)
    await isSaid(front, 'EndpointsNotFound')
    assert.ok((await index())['apis/agg.io/v1'])
    await front.must('DELETE', `${API_SERVICES}/v1.agg.io`)
    assert.equal((await index())['apis/agg.io/v1'], undefined)
    const { paths } = await front.must('GET', '/openapi/v2')
    assert.equal(paths['/apis/agg.io/v1/widgets'], undefined)
    assert.equal(await ofAgg(), undefined)
    for (const path of ['/apis/agg.io', '/apis/agg.io/v1', '/apis/agg.io/v1/widgets']) {
      assert.equal((await front.plane.request('GET', path)).status, 404, path)
    }
  })
})
