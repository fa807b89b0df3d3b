/**
 * Tests the spans of requests, sent to a collector by OTLP over gRPC. Names, attributes and nesting were captured from
 * upstream's kube-apiserver v1.36.4 with the same requests.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { createGrpcServer, type GrpcServer, handleUnary } from '#lib/grpc/server.ts'
import { EXPORT, type OtlpKeyValue, type OtlpSpan } from '#lib/otlp/otlp.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import {
  addApiService,
  addService,
  isSaid,
  startAggregatedServer,
  startFrontPlane,
} from './aggregation/aggregated-server.ts'
import { startWebhookServer, type WebhookServer } from './webhooks/webhook-server.ts'

interface Collected {
  readonly name: string
  readonly scope: string
  readonly resource: Record<string, unknown>
  readonly attributes: Record<string, unknown>
  readonly events: string[]
  readonly span: OtlpSpan
}

interface Collector {
  readonly port: number
  readonly spans: Collected[]
  readonly server: GrpcServer
}

function plain(list: readonly OtlpKeyValue[]): Record<string, unknown> {
  return Object.fromEntries(
    list.map(({ key, value }) => [
      key,
      value?.string ?? value?.bool ?? (value?.int && Number(value.int)) ?? value?.double,
    ]),
  )
}

async function startCollector(): Promise<Collector> {
  const spans: Collected[] = []
  const take = handleUnary(EXPORT, ({ resourceSpans }) => {
    for (const { resource, scopeSpans } of resourceSpans) {
      for (const { scope, spans: own } of scopeSpans) {
        for (const span of own) {
          spans.push({
            name: span.name,
            scope: scope?.name ?? '',
            resource: plain(resource?.attributes ?? []),
            attributes: plain(span.attributes),
            events: span.events.map(({ name }) => name),
            span,
          })
        }
      }
    }
    return {}
  })
  const server = createGrpcServer({ handlers: [take], clock: realClock })
  const bound = await server.listen({ host: '127.0.0.1', port: 0 })
  return { port: 'port' in bound ? bound.port : 0, spans, server }
}

const hex = (bytes: Buffer): string => bytes.toString('hex')
const traceId = (digit: string): string => digit.repeat(32)
const CALLER = 'aaaaaaaaaaaaaaaa'
const traced = (digit: string, flags = '01'): Record<string, string> => ({
  traceparent: `00-${traceId(digit)}-${CALLER}-${flags}`,
  tracestate: 'vendor=1',
  baggage: 'user=me',
})

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
const config = (port: number): string =>
  `apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: 127.0.0.1:${port}\n`

/** All spans of what `ask` does, once the server has stopped and nothing is left to send. */
async function collect(ask: (plane: ControlPlane) => Promise<void>, more = ''): Promise<Collected[]> {
  const { port, spans, server } = await startCollector()
  const files = new Map([
    ['tracing.yaml', config(port) + more],
    ['tokens.csv', 'admin,admin,admin,"system:masters"\njane,jane,jane,"devs"\n'],
  ])
  const plane = await startControlPlane({ files, settings: { 'tracing-config-file': 'tracing.yaml' } })
  await ask(plane)
  await plane.stop()
  await server.stop(0)
  return spans
}

/** Names from the outermost span of a trace to the innermost, where each holds one other. */
function nesting(spans: readonly Collected[], trace: string): string[] {
  const own = spans.filter(({ span }) => hex(span.traceId) === trace)
  const names: string[] = []
  let parent = CALLER
  for (;;) {
    const next = own.find(({ span }) => hex(span.parentSpanId) === parent)
    if (next === undefined) return names
    names.push(next.name)
    parent = hex(next.span.spanId)
  }
}

describe('tracing of API requests', () => {
  let hook: WebhookServer
  let spans: Collected[]
  before(async () => {
    hook = await startWebhookServer()
    hook.on('/allow', ({ review }) => {
      const { uid } = review['request'] as { uid: string }
      return { ...review, response: { uid, allowed: true } }
    })
    spans = await collect(async (plane) => {
      await plane.request('GET', '/api/v1/namespaces/default', undefined, traced('1'))
      await plane.request('GET', '/api/v1/namespaces?limit=5', undefined, traced('2'))
      await plane.request('GET', '/apis', undefined, traced('3'))
      await plane.request('GET', `${CONFIG_MAPS}/none`, undefined, traced('4'))
      await plane.request('GET', CONFIG_MAPS, undefined, traced('5', '00'))
      await plane.request('GET', CONFIG_MAPS)
      const jane = { ...traced('6'), authorization: 'Bearer jane' }
      await plane.request('GET', CONFIG_MAPS, undefined, jane)
      const webhook = {
        name: 'allow.ex.io',
        clientConfig: { url: hook.url('/allow'), caBundle: hook.caBundle },
        rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      }
      const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
      await plane.request('POST', path, { metadata: { name: 'allow' }, webhooks: [webhook] })
      await plane.request('POST', CONFIG_MAPS, { metadata: { name: 'a' } }, traced('7'))
    })
  })
  after(() => hook.close())

  const only = (name: string, digit: string): Collected => {
    const found = spans.filter((one) => one.name === name && hex(one.span.traceId) === traceId(digit))
    assert.equal(found.length, 1, `${name}: ${found.length}`)
    return found[0] as Collected
  }

  const FILTERS = ['audit', 'constrainedimpersonation', 'priorityandfairness', 'authorization']

  it('creates nested spans: the request, each filter, the handler', () => {
    assert.deepEqual(nesting(spans, traceId('1')), [
      'GET /api/v1/namespaces/{:namespace}/namespaces/{:name}',
      ...FILTERS,
      'Get',
    ])
    assert.deepEqual(nesting(spans, traceId('2')), ['GET /api/v1/namespaces', ...FILTERS, 'List'])
    assert.deepEqual(nesting(spans, traceId('3')), ['GET', ...FILTERS])
  })

  it('records attributes of request, user and response', () => {
    const whole = only('GET /api/v1/namespaces', '2')
    const { 'audit-id': auditId, 'server.port': port, 'network.peer.port': peer, ...rest } = whole.attributes
    assert.ok(auditId !== '' && Number(port) > 0 && Number(peer) > 0)
    assert.ok(Number(rest['http.response.body.size']) > 100)
    delete rest['http.response.body.size']
    assert.deepEqual(rest, {
      'server.address': '127.0.0.1',
      'http.request.method': 'GET',
      'url.scheme': 'https',
      'network.peer.address': '127.0.0.1',
      'client.address': '127.0.0.1',
      'url.path': '/api/v1/namespaces',
      'network.protocol.version': '2.0',
      'http.target': '/api/v1/namespaces?limit=5',
      'http.response.status_code': 200,
    })
    assert.equal(whole.scope, 'go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp')
    assert.deepEqual([whole.span.kind, whole.span.flags, whole.span.traceState], [2, 0x301, 'vendor=1'])
    assert.ok(BigInt(whole.span.endNanos) > BigInt(whole.span.startNanos))
    const { 'service.instance.id': instance, ...resource } = whole.resource
    assert.deepEqual(resource, { 'service.name': 'apiserver' })
    assert.match(String(instance), /^apiserver-[a-z0-9]{26}$/)
    const work = only('Get', '1')
    assert.deepEqual(work.events, [
      'About to Get from storage',
      'About to write a response',
      'Writing http response done',
    ])
    assert.deepEqual(
      ['api-version', 'resource', 'scope', 'name', 'verb', 'protocol'].map((name) => work.attributes[name]),
      ['v1', 'namespaces', 'resource', 'default', 'GET', 'HTTP/2.0'],
    )
    assert.equal(work.span.flags, 0x101)
    const missing = only('GET /api/v1/namespaces/{:namespace}/configmaps/{:name}', '4')
    assert.deepEqual([missing.attributes['http.response.status_code'], missing.span.status?.code], [404, 0])
    assert.deepEqual(only('Get', '4').events, ['About to Get from storage'])
  })

  it('samples a request if its parent is sampled', () => {
    const traces = new Set(spans.map(({ span }) => hex(span.traceId)))
    assert.deepEqual(traces, new Set(['1', '2', '3', '4', '7'].map(traceId)))
  })

  it('passes the context to webhooks', () => {
    const work = only('Create', '7')
    assert.deepEqual(work.events[0], 'limitedReadBody succeeded')
    const call = only('Call validating webhook', '7')
    const { UID, ...rest } = call.attributes
    assert.match(String(UID), /^[0-9a-f-]{36}$/)
    assert.deepEqual(rest, {
      configuration: 'allow',
      webhook: 'allow.ex.io',
      resource: '/v1, Resource=configmaps',
      subresource: '',
      operation: 'CREATE',
    })
    assert.deepEqual(call.events, ['Request completed'])
    assert.equal(hex(call.span.parentSpanId), hex(work.span.spanId))
    const sent = only('HTTP POST', '7')
    assert.deepEqual([sent.span.kind, hex(sent.span.parentSpanId)], [3, hex(call.span.spanId)])
    assert.equal(sent.attributes['url.full'], `${hook.url('/allow')}?timeout=10s`)
    assert.equal(sent.attributes['http.response.status_code'], 200)
    const { traceparent, tracestate, baggage } = hook.asked[0]?.headers ?? {}
    assert.equal(traceparent, `00-${traceId('7')}-${hex(sent.span.spanId)}-01`)
    assert.deepEqual([tracestate, baggage], ['vendor=1', 'user=me'])
  })
})

it('starts a new trace with a link for unprivileged users', async () => {
  const spans = await collect(async (plane) => {
    const headers = { ...traced('6'), authorization: 'Bearer jane' }
    await plane.request('GET', '/version', undefined, headers)
  }, 'samplingRatePerMillion: 1000000\n')
  const [whole] = spans.filter(({ attributes }) => attributes['url.path'] === '/version')
  assert.ok(whole !== undefined)
  assert.notEqual(hex(whole.span.traceId), traceId('6'))
  assert.equal(whole.span.parentSpanId.length, 0)
  assert.deepEqual(
    whole.span.links.map((link) => [hex(link.traceId), hex(link.spanId), link.flags]),
    [[traceId('6'), CALLER, 0x301]],
  )
})

it('passes the context to aggregated servers', async () => {
  const { port, spans, server } = await startCollector()
  const folder = mkdtempSync(join(tmpdir(), 'hyperkube-tracing-'))
  const file = join(folder, 'tracing.yaml')
  writeFileSync(file, config(port))
  const aggregated = await startAggregatedServer()
  const front = await startFrontPlane({ 'tracing-config-file': file })
  await addService(front, aggregated.port)
  await addApiService(front)
  await isSaid(front, 'Passed')
  await front.plane.request('GET', '/apis/agg.io/v1/widgets', undefined, traced('8'))
  await front.plane.stop()
  await aggregated.stop()
  await server.stop(0)
  rmSync(folder, { recursive: true })
  const [asked] = aggregated.to('/apis/agg.io/v1/widgets')
  const sent = spans.find(({ name, span }) => name === 'HTTP GET' && hex(span.traceId) === traceId('8'))
  assert.ok(asked !== undefined && sent !== undefined)
  assert.equal(asked.headers['traceparent'], `00-${traceId('8')}-${hex(sent.span.spanId)}-01`)
})

it('fails at start with an invalid configuration, and is off by default', async () => {
  const refusal = async (settings: object): Promise<string> => {
    const starting = startControlPlane({ settings: { 'tracing-config-file': 'no/such.yaml', ...settings } })
    const error = await starting.then(
      () => assert.fail('it started'),
      (cause: unknown) => cause as Error,
    )
    return error.message
  }
  assert.equal(
    await refusal({}),
    'failed to read tracing config: unable to read tracing configuration from "no/such.yaml": open no/such.yaml: no such file or directory',
  )
  assert.equal(
    await refusal({ 'feature-gates': new Map([['APIServerTracing', false]]) }),
    'APIServerTracing feature is not enabled, but tracing config file was provided',
  )
})

it('loses only spans if the collector is unreachable', async () => {
  const { port, server } = await startCollector()
  await server.stop(0)
  const lost: unknown[] = []
  const files = new Map([['tracing.yaml', `${config(port)}samplingRatePerMillion: 1000000\n`]])
  const quiet = { info: () => undefined, error: (error: unknown) => void lost.push(error) }
  const plane = await startControlPlane({
    files,
    settings: { 'tracing-config-file': 'tracing.yaml' },
    log: quiet as unknown as NonNullable<Parameters<typeof startControlPlane>[0]>['log'] & object,
  })
  const { status } = await plane.request('POST', CONFIG_MAPS, { metadata: { name: 'a' } })
  assert.equal(status, 201)
  await plane.stop()
  assert.equal(lost.length, 1)
})
