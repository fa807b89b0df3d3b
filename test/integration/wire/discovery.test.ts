/** Tests discovery, OpenAPI and version documents over HTTP. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'

import { type Got, type Json, openEnvelope, PROTOBUF, startWire, type Wire } from './server.ts'

let wire: Wire
before(async () => {
  wire = await startWire()
})
after(() => wire.stop())

const get = (path: string, headers: Record<string, string> = {}): Promise<Got> => wire.request('GET', path, { headers })
const V2 = 'g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
const AGGREGATED = `application/json;${V2}`
const OPENAPI_V2 = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'

describe('discovery of API groups', () => {
  it('is aggregated on request, with ETag and 304', async () => {
    for (const path of ['/api', '/apis']) {
      const got = await get(path, { accept: AGGREGATED })
      assert.equal(got.status, 200)
      assert.equal(got.headers['content-type'], AGGREGATED)
      assert.equal(got.headers['vary'], 'Accept')
      assert.equal(got.headers['cache-control'], 'public')
      assert.match(got.headers['etag'] ?? '', /^"[0-9A-F]{128}"$/)
      assert.deepEqual([got.json().kind, got.json().apiVersion], ['APIGroupDiscoveryList', 'apidiscovery.k8s.io/v2'])
      const same = await get(path, { accept: AGGREGATED, 'if-none-match': got.headers['etag'] ?? '' })
      assert.deepEqual([same.status, same.text], [304, ''])
      const bytes = await get(path, { accept: `${PROTOBUF};${V2}` })
      assert.equal(bytes.headers['content-type'], `${PROTOBUF};${V2}`)
      assert.equal(openEnvelope(bytes.bytes).kind, 'APIGroupDiscoveryList')
    }
  })

  it('contains the response kind of a resource, but group and version only if they differ', async () => {
    const { items } = (await get('/apis', { accept: AGGREGATED })).json()
    const group = (name: string): Json => items.find(({ metadata }: Json) => metadata.name === name)
    const [{ version, resources, freshness }] = group('apps').versions
    assert.deepEqual([version, freshness], ['v1', 'Current'])
    const deployments = resources.find(({ resource }: Json) => resource === 'deployments')
    assert.deepEqual(deployments.responseKind, { group: '', version: '', kind: 'Deployment' })
    const scale = deployments.subresources.find(({ subresource }: Json) => subresource === 'scale')
    assert.deepEqual(scale.responseKind, { group: 'autoscaling', version: 'v1', kind: 'Scale' })
    assert.deepEqual(
      group('autoscaling').versions.map((one: Json) => one.version),
      ['v2', 'v1'],
    )
  })

  it('has no v2beta1, and documents of one version ignore the parameters', async () => {
    const beta = AGGREGATED.replace('v=v2', 'v=v2beta1')
    assert.equal((await get('/apis', { accept: beta })).status, 406)
    assert.equal((await get('/apis', { accept: `${beta},application/json` })).json().kind, 'APIGroupList')
    assert.equal(
      (await get('/apis', { accept: `${beta},${AGGREGATED},application/json` })).json().kind,
      'APIGroupDiscoveryList',
    )
    const one = await get('/apis/apps/v1', { accept: `${AGGREGATED},application/json` })
    assert.deepEqual([one.json().kind, one.headers['content-type']], ['APIResourceList', 'application/json'])
  })

  it('has unaggregated documents', async () => {
    const api = (await get('/api')).json()
    assert.deepEqual([api.kind, api.versions], ['APIVersions', ['v1']])
    assert.equal(api.serverAddressByClientCIDRs[0].clientCIDR, '0.0.0.0/0')
    assert.match(api.serverAddressByClientCIDRs[0].serverAddress, /:\d+$/)
    const list = (await get('/api/v1')).json()
    assert.deepEqual([list.kind, list.groupVersion], ['APIResourceList', 'v1'])
    const byName = (name: string): Json => list.resources.find((resource: Json) => resource.name === name)
    assert.deepEqual(byName('configmaps'), {
      name: 'configmaps',
      singularName: 'configmap',
      namespaced: true,
      kind: 'ConfigMap',
      verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
      shortNames: ['cm'],
      storageVersionHash: 'qFsyl6wFWjQ=',
    })
    assert.deepEqual(byName('pods/eviction'), {
      name: 'pods/eviction',
      singularName: '',
      namespaced: true,
      group: 'policy',
      version: 'v1',
      kind: 'Eviction',
      verbs: ['create'],
    })
    const group = (await get('/apis/apps')).json()
    assert.deepEqual(group, {
      kind: 'APIGroup',
      apiVersion: 'v1',
      name: 'apps',
      versions: [{ groupVersion: 'apps/v1', version: 'v1' }],
      preferredVersion: { groupVersion: 'apps/v1', version: 'v1' },
    })
  })
})

describe('OpenAPI of the API server', () => {
  it('serves v2 as protobuf and JSON, with ETag, 304 and gzip', async () => {
    const got = await get('/openapi/v2', { accept: OPENAPI_V2 })
    assert.equal(got.headers['content-type'], 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf')
    assert.match(got.headers['etag'] ?? '', /^"[0-9A-F]{128}"$/)
    const same = await get('/openapi/v2', { accept: OPENAPI_V2, 'if-none-match': got.headers['etag'] ?? '' })
    assert.equal(same.status, 304)
    for (const accept of ['application/json', '*/*', `${OPENAPI_V2.replace('v2@v1.0', 'v2@v9')},application/json`]) {
      const json = await get('/openapi/v2', { accept })
      assert.equal(json.headers['content-type'], 'application/json', accept)
      assert.equal(json.json().swagger, '2.0')
    }
    const packed = await get('/openapi/v2', { 'accept-encoding': 'gzip' })
    assert.equal(packed.headers['content-encoding'], 'gzip')
    assert.equal(JSON.parse(gunzipSync(packed.bytes).toString()).swagger, '2.0')
  })

  it('serves v3 with a right hash, a wrong hash and none', async () => {
    const index = (await get('/openapi/v3')).json()
    const path = index.paths['apis/apps/v1'].serverRelativeURL as string
    assert.match(path, /^\/openapi\/v3\/apis\/apps\/v1\?hash=[0-9A-F]{128}$/)
    const got = await get(path)
    assert.equal(got.headers['cache-control'], 'public, immutable')
    assert.match(got.headers['etag'] ?? '', /^"[0-9A-F]{128}"$/)
    const expires = Date.parse(got.headers['expires'] ?? '') - Date.parse(got.headers['date'] ?? '')
    assert.ok(Math.abs(expires - 365 * 24 * 3_600_000) < 120_000, String(expires))
    assert.equal((await get(path, { 'if-none-match': got.headers['etag'] ?? '' })).status, 304)
    const wrong = await get(`${path}0`)
    assert.deepEqual([wrong.status, wrong.headers['location']], [301, path])
    assert.equal((await get('/openapi/v3/apis/apps/v1')).status, 200)
    const none = await get('/openapi/v3/apis/nope/v1')
    assert.deepEqual([none.status, none.text], [404, ''])
  })

  it('contains the extensions that kubectl reads', async () => {
    const { paths, components } = (await get('/openapi/v3/apis/apps/v1')).json()
    const { patch } = paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}']
    assert.deepEqual(patch['x-kubernetes-group-version-kind'], { group: 'apps', version: 'v1', kind: 'Deployment' })
    assert.equal(patch['x-kubernetes-action'], 'patch')
    const names: string[] = patch.parameters.map(({ name }: Json) => name)
    for (const name of ['dryRun', 'fieldValidation', 'fieldManager', 'force']) assert.ok(names.includes(name), name)
    assert.ok(components.schemas['io.k8s.api.apps.v1.Deployment'].description.length > 10)
    const v2 = (await get('/openapi/v2')).json()
    const old: string[] = v2.paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}'].patch.parameters.map(
      ({ name, $ref }: Json) => name ?? $ref,
    )
    assert.ok(old.some((name) => name.includes('dryRun')))
  })
})

describe('responses to GET / and GET /version', () => {
  it('list all paths', async () => {
    const got = await get('/')
    assert.match(got.text, /^\{\n {2}"paths": \[\n {4}"\/\.well-known\/openid-configuration",\n {4}"\/api",\n/)
    const paths = got.json().paths as string[]
    assert.deepEqual(paths, paths.toSorted())
    for (const path of [
      '/api/v1',
      '/apis',
      '/apis/apps',
      '/apis/apps/v1',
      '/healthz/etcd',
      '/livez',
      '/readyz',
      '/version',
    ]) {
      assert.ok(paths.includes(path), path)
    }
    assert.equal((await get('/index.html')).text, got.text)
  })

  it('contain the complete version in indented JSON', async () => {
    const got = await get('/version')
    assert.match(got.text, /^\{\n {2}"major": "1",\n {2}"minor": "36",\n/)
    assert.deepEqual(Object.keys(got.json()), [
      'major',
      'minor',
      'emulationMajor',
      'emulationMinor',
      'minCompatibilityMajor',
      'minCompatibilityMinor',
      'gitVersion',
      'gitCommit',
      'gitTreeState',
      'buildDate',
      'goVersion',
      'compiler',
      'platform',
    ])
    const { emulationMajor, emulationMinor, minCompatibilityMajor, minCompatibilityMinor } = got.json()
    assert.deepEqual(
      [emulationMajor, emulationMinor, minCompatibilityMajor, minCompatibilityMinor],
      ['1', '36', '1', '35'],
    )
  })
})
