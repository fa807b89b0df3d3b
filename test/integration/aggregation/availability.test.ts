/** Tests the Available condition of an APIService, and the response to clients while it is unavailable. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { createFrontProxy } from '#aggregation/front-proxy.ts'
import { eventually } from '#kits/lib/eventually.ts'
import { realClock } from '#lib/clock.ts'

import {
  addApiService,
  addService,
  addSlice,
  type AggregatedServer,
  API_SERVICES,
  availability,
  type FrontPlane,
  isSaid,
  network,
  SERVICES,
  SLICES,
  startAggregatedServer,
  startFrontPlane,
} from './aggregated-server.ts'

describe('condition Available of an APIService', () => {
  let server: AggregatedServer
  let front: FrontPlane
  before(async () => {
    server = await startAggregatedServer()
    front = await startFrontPlane()
  })
  after(async () => {
    await front[Symbol.asyncDispose]()
    await server.stop()
  })

  it('reports each missing prerequisite in turn', async () => {
    await addApiService(front)
    assert.deepEqual(await isSaid(front, 'ServiceNotFound'), [
      'False',
      'ServiceNotFound',
      'service/agg in "default" is not present',
    ])
    await front.must('POST', SERVICES, { metadata: { name: 'agg' }, spec: { ports: [{ port: 77 }] } })
    assert.deepEqual(await isSaid(front, 'ServicePortError'), [
      'False',
      'ServicePortError',
      'service/agg in "default" is not listening on port 443',
    ])
    await front.must('PATCH', `${SERVICES}/agg`, { spec: { ports: [{ port: 443, targetPort: server.port }] } })
    assert.deepEqual(await isSaid(front, 'EndpointsNotFound'), [
      'False',
      'EndpointsNotFound',
      'cannot find endpointslices for service/agg in "default"',
    ])
    await addSlice(front, server.port)
    await front.must('PATCH', `${SLICES}/agg`, {
      endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: false } }],
    })
    assert.deepEqual(await isSaid(front, 'MissingEndpoints'), [
      'False',
      'MissingEndpoints',
      'endpointslices for service/agg in "default" have no addresses with port name ""',
    ])
    await front.must('PATCH', `${SLICES}/agg`, {
      endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }],
    })
    assert.deepEqual(await isSaid(front, 'Passed'), ['True', 'Passed', 'all checks passed'])
    const [check] = server.to('/apis/agg.io/v1')
    assert.equal(check?.caller, 'front-proxy-client')
    assert.equal(check.headers['x-remote-user'], 'system:kube-aggregator')
    assert.equal(check.headers['x-remote-group'], 'system:masters')
  })

  it('contains the reason of a failed check', async () => {
    const place = `https://10.1.2.3:${server.port}/apis/agg.io/v1`
    server.documents.set('/apis/agg.io/v1', { status: 500, body: 'broken' })
    await front.must('PATCH', `${API_SERVICES}/v1.agg.io`, { spec: { versionPriority: 11 } })
    assert.deepEqual(await isSaid(front, 'FailedDiscoveryCheck'), [
      'False',
      'FailedDiscoveryCheck',
      `failing or missing response from ${place}: bad status from ${place}: 500`,
    ])
    server.documents.set('/apis/agg.io/v1', { status: 302, body: '', headers: ['Location', '/elsewhere'] })
    await eventually(
      () => availability(front),
      ([, , message]) => message?.endsWith(': 302') === true,
    )
    server.documents.set('/apis/agg.io/v1', { body: {} })
    await isSaid(front, 'Passed')
    await front.must('PATCH', `${API_SERVICES}/v1.agg.io`, { spec: { caBundle: null } })
    assert.deepEqual(await isSaid(front, 'FailedDiscoveryCheck'), [
      'False',
      'FailedDiscoveryCheck',
      `failing or missing response from ${place}: Get "${place}": tls: failed to verify certificate: x509: certificate signed by unknown authority`,
    ])
    await front.must('PATCH', `${API_SERVICES}/v1.agg.io`, { spec: { insecureSkipTLSVerify: true } })
    await isSaid(front, 'Passed')
    await front.must('PATCH', `${SLICES}/agg`, { ports: [{ name: '', port: 1 }] })
    const closed = 'https://10.1.2.3:1/apis/agg.io/v1'
    assert.deepEqual(await isSaid(front, 'FailedDiscoveryCheck'), [
      'False',
      'FailedDiscoveryCheck',
      `failing or missing response from ${closed}: Get "${closed}": dial tcp 10.1.2.3:1: connect: connection refused`,
    ])
  })

  it('has metrics, which disappear with the APIService', async () => {
    const metrics = (await front.plane.request('GET', '/metrics')).text
    assert.match(metrics, /^aggregator_unavailable_apiservice\{name="v1\.agg\.io"\} 1$/m)
    assert.match(metrics, /^aggregator_unavailable_apiservice\{name="v1\.apps"\} 0$/m)
    assert.match(
      metrics,
      /^aggregator_unavailable_apiservice_total\{name="v1\.agg\.io",reason="FailedDiscoveryCheck"\} \d+$/m,
    )
    await front.must('DELETE', `${API_SERVICES}/v1.agg.io`)
    await eventually(
      async () => (await front.plane.request('GET', '/metrics')).text,
      (text) => !text.includes('aggregator_unavailable_apiservice{name="v1.agg.io"}'),
    )
  })
})

describe('availability check of an aggregated server that does not respond', () => {
  it('times out, and the next check opens a new connection', async () => {
    await using server = await startAggregatedServer()
    const service = { namespace: 'default', name: 'agg', port: 443 }
    const spec = { groupPriorityMinimum: 1, versionPriority: 1, insecureSkipTLSVerify: true }
    const remote = { name: 'v1.agg.io', group: 'agg.io', version: 'v1', service, spec, isAvailable: true }
    const frontProxy = createFrontProxy({
      clock: realClock,
      network,
      certificate: () => undefined,
      directory: {
        service: () => undefined,
        slices: () => [],
        resolve: () => ({ host: '10.1.2.3', port: server.port }),
      },
    })
    const url = frontProxy.locate(remote)
    const question = { path: '/apis/agg.io/v1', accept: '', user: 'x', timeoutMs: 50, limitBytes: 0 }
    server.answer = () => new Promise(() => undefined)
    await assert.rejects(frontProxy.ask(remote, url, question), {
      message: `Get "${url}/apis/agg.io/v1": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`,
    })
    server.answer = () => undefined
    const { status } = await frontProxy.ask(remote, url, { ...question, timeoutMs: 60_000 })
    assert.equal(status, 200)
    frontProxy.close()
  })
})

describe('availability of an APIService', () => {
  let front: FrontPlane
  before(async () => {
    front = await startFrontPlane()
  })
  after(() => front[Symbol.asyncDispose]())

  it('without a Service is True at once, also after its Service is removed', async () => {
    await front.must('POST', API_SERVICES, {
      metadata: { name: 'v1.local.io' },
      spec: { group: 'local.io', version: 'v1', groupPriorityMinimum: 1, versionPriority: 1 },
    })
    const local = ['True', 'Local', 'Local APIServices are always available']
    assert.deepEqual(await availability(front, 'v1.local.io'), local)
    const service = { namespace: 'default', name: 'none' }
    await front.must('PATCH', `${API_SERVICES}/v1.local.io`, { spec: { service } })
    await isSaid(front, 'ServiceNotFound', 'v1.local.io')
    await front.must('PATCH', `${API_SERVICES}/v1.local.io`, { spec: { service: null } })
    assert.deepEqual(await isSaid(front, 'Local', 'v1.local.io'), local)
  })

  it('with an ExternalName Service depends on that host, regardless of endpoints', async () => {
    await using server = await startAggregatedServer()
    const spec = { type: 'ExternalName', externalName: 'localhost' }
    await front.must('POST', SERVICES, { metadata: { name: 'named' }, spec })
    const service = { namespace: 'default', name: 'named', port: server.port }
    await addApiService(front, { service, caBundle: undefined, insecureSkipTLSVerify: true })
    await isSaid(front, 'Passed')
    assert.equal(server.seen[0]?.headers['host'] ?? server.seen[0]?.headers[':authority'], `localhost:${server.port}`)
    await front.must('DELETE', `${API_SERVICES}/v1.agg.io`)
  })

  it('is False if the server has the wrong certificate', async () => {
    await using server = await startAggregatedServer({ isStranger: true })
    await addService(front, server.port)
    await addApiService(front)
    const [, , message] = await isSaid(front, 'FailedDiscoveryCheck')
    assert.match(message ?? '', /x509: certificate is valid for other\.default\.svc, not agg\.default\.svc$/)
  })

  it('causes 503 in plain text for every request while it is False', async () => {
    for (const path of ['', '/widgets', '/namespaces/default/widgets/w']) {
      const { status, text, headers } = await front.plane.request('GET', `/apis/agg.io/v1${path}`)
      assert.deepEqual([status, text], [503, 'service unavailable\n'])
      assert.equal(headers.get('content-type'), 'text/plain; charset=utf-8')
      assert.equal(headers.get('x-content-type-options'), 'nosniff')
      assert.equal(headers.get('retry-after'), null)
    }
  })
})
