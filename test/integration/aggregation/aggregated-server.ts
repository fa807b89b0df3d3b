/**
 * An aggregated API server for tests: HTTPS with the name of a Service, trust in the front-proxy CA, and scripted
 * responses. The file also starts a control plane in front of it, with the APIService.
 */
import assert from 'node:assert/strict'

import type { Network } from '#apiserver/connect/address-rule.ts'
import type { Settings } from '#control-plane/flags/flags.ts'
import { eventually } from '#kits/lib/eventually.ts'
import { realClock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { createHttpServer, type HttpServer } from '#lib/http/server.ts'
import { secureRandom } from '#lib/random.ts'
import { type Authority, createAuthority } from '#lib/x509/authority.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const tools = { clock: realClock, random: secureRandom }

/** Of the front proxy and of the aggregated server: one for all tests, because making keys is slow. */
export const frontProxy: Authority = createAuthority({ commonName: 'front-proxy-ca' }, tools)
export const authority: Authority = createAuthority({ commonName: 'aggregated' }, tools)
const serving = authority.issue({ commonName: 'agg', names: { dns: ['agg.default.svc'] }, purpose: 'server' })
const stranger = authority.issue({ commonName: 'x', names: { dns: ['other.default.svc'] }, purpose: 'server' })
const proxyClient = frontProxy.issue({ commonName: 'front-proxy-client', purpose: 'client' })

export const CA_BUNDLE: string = Buffer.from(authority.certificatePem).toString('base64')

/** One request as the server saw it. */
export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, unknown>>
  /** Names and values in turn, as they came. */
  readonly raw: readonly string[]
  /** Common name of the certificate that was shown; empty for none that is believed. */
  readonly caller: string
}

export interface AggregatedServer extends AsyncDisposable {
  readonly port: number
  readonly seen: Seen[]
  /** Requests to a path, as far as they have come. */
  to(path: string): Seen[]
  /** Answers from now on; `undefined` for what `documents` should answer. */
  answer: (exchange: Exchange) => void | Promise<void> | undefined
  /** By path: what is answered where `answer` does not. */
  readonly documents: Map<string, Document>
  readonly connections: number
  stop(): Promise<void>
}

export interface Document {
  readonly status?: number
  readonly type?: string
  readonly body: unknown
  readonly headers?: readonly string[]
}

export const AGGREGATED_V2 = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

const VERBS = ['create', 'delete', 'get', 'list', 'watch']
export const RESOURCES: readonly object[] = [
  {
    resource: 'widgets',
    responseKind: { group: 'agg.io', version: 'v1', kind: 'Widget' },
    scope: 'Namespaced',
    singularResource: 'widget',
    verbs: VERBS,
    shortNames: ['wd'],
    subresources: [{ subresource: 'status', responseKind: { group: '', version: '', kind: 'Widget' }, verbs: ['get'] }],
  },
]
export const LEGACY: object = {
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion: 'agg.io/v1',
  resources: [
    { name: 'widgets', singularName: 'widget', namespaced: true, kind: 'Widget', verbs: VERBS, shortNames: ['wd'] },
    { name: 'widgets/status', singularName: '', namespaced: true, kind: 'Widget', verbs: ['get'] },
  ],
}
const SWAGGER = {
  swagger: '2.0',
  info: { title: 'agg', version: '1' },
  paths: {
    '/apis/agg.io/v1/widgets': {
      get: {
        operationId: 'listWidgets',
        responses: { '200': { description: 'OK', schema: { $ref: '#/definitions/io.agg.v1.Widget' } } },
      },
    },
    '/apis/apps/v1/deployments': { get: { operationId: 'stolen', responses: {} } },
    '/other/': {},
  },
  definitions: {
    'io.agg.v1.Widget': {
      type: 'object',
      description: 'A thing.',
      properties: { metadata: { $ref: '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' } },
      'x-kubernetes-group-version-kind': [{ group: 'agg.io', version: 'v1', kind: 'Widget' }],
    },
    'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta': { type: 'object', description: 'Of another release.' },
    'io.agg.v1.Unused': { type: 'object' },
  },
}
const V3_INDEX = {
  paths: {
    'apis/agg.io/v1': { serverRelativeURL: '/openapi/v3/apis/agg.io/v1?hash=ABC' },
    'apis/apps/v1': { serverRelativeURL: '/openapi/v3/apis/apps/v1?hash=STOLEN' },
    evil: { serverRelativeURL: 'https://evil.example' },
  },
}

function initialDocuments(): Map<string, Document> {
  const groups = [
    { metadata: { name: 'agg.io' }, versions: [{ version: 'v1', resources: RESOURCES, freshness: 'Current' }] },
  ]
  const list = { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {}, items: groups }
  return new Map<string, Document>([
    ['/apis', { type: AGGREGATED_V2, body: list, headers: ['Etag', '"one"'] }],
    ['/apis/agg.io/v1', { body: LEGACY }],
    ['/apis/agg.io/v2', { body: { ...LEGACY, groupVersion: 'agg.io/v2' } }],
    ['/openapi/v2', { body: SWAGGER, headers: ['Etag', '"v2"'] }],
    ['/openapi/v3', { body: V3_INDEX }],
    ['/openapi/v3/apis/agg.io/v1', { body: { openapi: '3.0.0', info: { title: 'agg' } } }],
  ])
}

export interface ServerPlan {
  /** Shows a certificate for another name. */
  readonly isStranger?: boolean
  readonly port?: number
}

export async function startAggregatedServer({
  isStranger = false,
  port = 0,
}: ServerPlan = {}): Promise<AggregatedServer> {
  const seen: Seen[] = []
  const documents = initialDocuments()
  const shown = isStranger ? stranger : serving
  const http: HttpServer = createHttpServer({
    clock: realClock,
    upgrades: ['websocket', 'spdy/3.1'],
    tls: {
      certificate: shown.certificatePem,
      key: shown.keyPem,
      clientAuthorities: [frontProxy.certificatePem],
    },
    serve(exchange) {
      const { method, path, headers, rawHeaders, peer } = exchange
      const caller = peer.isTrusted ? (/CN=(.*)/.exec(peer.certificate?.subject ?? '')?.[1] ?? '') : ''
      seen.push({ method, path, headers: { ...headers }, raw: [...rawHeaders], caller })
      return server.answer(exchange) ?? respondDocument(exchange, documents)
    },
  })
  const bound = await http.listen({ host: '127.0.0.1', port })
  const stop = (): Promise<void> => http.drain(0)
  const server: AggregatedServer = {
    port: 'port' in bound ? bound.port : 0,
    seen,
    to: (path) => seen.filter((one) => one.path === path),
    answer: () => undefined,
    documents,
    get connections() {
      return http.connections
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
  return server
}

function respondDocument(exchange: Exchange, documents: ReadonlyMap<string, Document>): void {
  const [path = ''] = exchange.path.split('?')
  const document = documents.get(path)
  if (document === undefined) return exchange.respond(404, [], 'nothing here')
  const { status = 200, type = 'application/json', body, headers = [] } = document
  const etag = headers[headers.indexOf('Etag') + 1]
  if (etag !== undefined && exchange.headers['if-none-match'] === etag) return exchange.respond(304, headers)
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  exchange.respond(status, ['Content-Type', type, ...headers], Buffer.from(text))
}

/** Addresses of pods lead to this machine, and `localhost` is a name. */
export const network: Network = {
  lookup: (host) => (host === 'localhost' ? Promise.resolve(['127.0.0.1']) : Promise.reject(new Error('no such host'))),
  routeTo: () => '127.0.0.1',
}

const TOKENS = `admin,admin,admin,"system:masters"\njane,jane,jane-uid,"devs,ops"\n`

export interface FrontPlane extends AsyncDisposable {
  readonly plane: ControlPlane
  readonly files: Map<string, string>
  /** A request that must succeed. */
  readonly must: (method: string, path: string, body?: object) => Promise<Json>
}

// oxlint-disable-next-line typescript/no-explicit-any -- answers are looked into, not relied upon
export type Json = any

/** A control plane that shows other servers the certificate of the front proxy and calls them at their endpoints. */
export async function startFrontPlane(settings: Partial<Settings> = {}): Promise<FrontPlane> {
  const files = new Map([
    ['front-proxy-ca.crt', frontProxy.certificatePem],
    ['front-proxy-client.crt', proxyClient.certificatePem],
    ['front-proxy-client.key', proxyClient.keyPem],
    ['tokens.csv', TOKENS],
  ])
  const plane = await startControlPlane({
    network,
    files,
    settings: {
      'requestheader-client-ca-file': 'front-proxy-ca.crt',
      'requestheader-allowed-names': ['front-proxy-client'],
      'requestheader-username-headers': ['X-Remote-User'],
      'requestheader-group-headers': ['X-Remote-Group'],
      'requestheader-extra-headers-prefix': ['X-Remote-Extra-'],
      'proxy-client-cert-file': 'front-proxy-client.crt',
      'proxy-client-key-file': 'front-proxy-client.key',
      ...settings,
    },
  })
  return {
    plane,
    files,
    async must(method, path, body) {
      const type = method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : undefined
      const answer = await plane.request(method, path, body, type)
      assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`)
      return answer.json()
    },
    [Symbol.asyncDispose]: () => plane.stop(),
  }
}

export const SERVICES = '/api/v1/namespaces/default/services'
export const SLICES = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
export const API_SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices'

/** The Service `agg` with one endpoint at that port. */
export async function addService({ must }: FrontPlane, port: number, name = 'agg'): Promise<void> {
  await must('POST', SERVICES, { metadata: { name }, spec: { ports: [{ port: 443, targetPort: port }] } })
  await addSlice({ must }, port, name)
}

export async function addSlice({ must }: Pick<FrontPlane, 'must'>, port: number, name = 'agg'): Promise<void> {
  await must('POST', SLICES, {
    metadata: { name, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }],
    ports: [{ name: '', port, protocol: 'TCP' }],
  })
}

export async function addApiService({ must }: FrontPlane, spec: object = {}, version = 'v1'): Promise<void> {
  await must('POST', API_SERVICES, {
    metadata: { name: `${version}.agg.io` },
    spec: {
      group: 'agg.io',
      version,
      groupPriorityMinimum: 2000,
      versionPriority: 10,
      service: { namespace: 'default', name: 'agg' },
      caBundle: CA_BUNDLE,
      ...spec,
    },
  })
}

/** The condition Available: status, reason and message. */
export async function availability({ must }: FrontPlane, name = 'v1.agg.io'): Promise<string[]> {
  const { status } = await must('GET', `${API_SERVICES}/${name}`)
  const [condition] = status.conditions ?? [{}]
  return [condition.status, condition.reason, condition.message]
}

export async function isSaid(front: FrontPlane, reason: string, name?: string): Promise<string[]> {
  return eventually(
    () => availability(front, name),
    ([, said]) => said === reason,
  )
}
