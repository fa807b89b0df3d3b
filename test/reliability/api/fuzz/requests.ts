/**
 * Generates requests for the fuzzer: user, target, verb, format and body. Each depends only on the seed and its number,
 * so that any one can be repeated.
 */
import { gzipSync } from 'node:zlib'

import { groups, type Kind } from '#apis/kinds.ts'
import { createSeededRandom, type Random } from '#lib/random.ts'

import { credentials, type Person } from '../program.ts'
import type { RawRequest } from '../raw-http.ts'
import { type Body, broken, objectBody, patchBody } from './bodies.ts'
import { bodyKind, NAMESPACES, objectFor } from './objects.ts'
import { nameIn, oneIn, pick } from './values.ts'

export interface FuzzRequest extends RawRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly person: Person
  /** The answer goes on: it is read for a moment and left. */
  readonly isEndless: boolean
  /** Not HTTP as it is written: the server may close the connection without an answer. */
  readonly isMalformed: boolean
}

const KINDS: readonly Kind[] = groups.flatMap(({ versions }) => versions.flatMap(({ kinds }) => kinds))
/** Half of all requests use these kinds, because they have the most code. */
const MAIN_KINDS = KINDS.filter(
  ({ kind, version }) =>
    /^(Pod|Service|ConfigMap|Deployment|Namespace|Node|Job|StatefulSet|Secret|CustomResourceDefinition)$/.test(kind) &&
    version === 'v1',
)

export function requestFor(seed: number, number: number): FuzzRequest {
  const random = createSeededRandom(seed * 1_000_003 + number)
  const person = oneIn(random, 8) ? pick<Person>(random, ['user', 'nobody', 'anonymous']) : 'root'
  return oneIn(random, 25) ? otherRequest(random, person) : resourceRequest(random, person)
}

const METHODS = [
  'GET',
  'GET',
  'GET',
  'POST',
  'POST',
  'POST',
  'PUT',
  'PUT',
  'PATCH',
  'PATCH',
  'PATCH',
  'DELETE',
] as const

function resourceRequest(random: Random, person: Person): FuzzRequest {
  const kind = oneIn(random, 2) ? pick(random, MAIN_KINDS) : pick(random, KINDS)
  const method = oneIn(random, 60) ? pick(random, ['HEAD', 'OPTIONS', 'TRACE', 'ZORK']) : pick(random, METHODS)
  const namespace = kind.namespaced ? pick(random, NAMESPACES) : ''
  const isOfMany = method === 'POST' ? !oneIn(random, 20) : oneIn(random, method === 'GET' ? 3 : 25)
  const name = isOfMany ? '' : nameIn(random)
  const subresource = subresourceIn(random, kind)
  const plain = pathOf({ kind, namespace, name: name === '' && subresource !== '' ? 'a' : name, subresource })
  const path = oneIn(random, 40) ? strangePath(random, plain) : plain
  const query = queryIn(random, method)
  const body = bodyIn(random, method, { kind, namespace, name, subresource })
  const isWatch = /[?&]watch=(?!0|false)/.test(query) || path.includes('/watch/')
  return {
    ...framed(random, method, body),
    person,
    path: path + query,
    headers: headersIn(random, person, body),
    isEndless: method === 'GET' && (isWatch || /\/(log|exec|attach|portforward|proxy)/.test(path)),
    isMalformed: false,
  }
}

function subresourceIn(random: Random, { subresources }: Kind): string {
  if (subresources.length === 0 || !oneIn(random, 4)) return ''
  // Other tests cover subresources that connect to nodes; here they would only wait for timeouts.
  const able = subresources.filter(({ name }) => !/^(proxy|exec|attach|portforward|log)$/.test(name))
  return able.length === 0 ? '' : oneIn(random, 30) ? 'zork' : pick(random, able).name
}

interface Target {
  readonly kind: Kind
  readonly namespace: string
  readonly name: string
  readonly subresource: string
}

function pathOf({ kind, namespace, name, subresource }: Target): string {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
  const scope = namespace === '' ? '' : `/namespaces/${namespace}`
  const own = name === '' ? '' : `/${encodeURIComponent(name.toWellFormed())}`
  return `${root}${scope}/${kind.plural}${own}${subresource === '' ? '' : `/${subresource}`}`
}

function strangePath(random: Random, path: string): string {
  switch (random.int(8)) {
    case 0:
      return path.replace('/', '//')
    case 1:
      return `${path}/..`
    case 2:
      return path.replace(/\/(\w+)$/, '/%2e%2e%2f$1')
    case 3:
      return `${path}%00`
    case 4:
      return `${path}/%zz`
    case 5:
      return path.replace(/^(\/apis?(?:\/[^/]+)?\/v\w+)/, '$1/watch')
    case 6:
      return `${path}/${'a/'.repeat(50)}`
    default:
      return path.replace(/v\d\w*/, 'v0')
  }
}

const QUERIES: readonly (readonly [name: string, values: readonly string[]])[] = [
  ['limit', ['1', '2', '0', '-1', '99999999999999999999', 'x', '500']],
  ['continue', ['', 'x', Buffer.from('{"v":"meta.k8s.io/v1","rv":1,"start":"a"}').toString('base64url'), 'e30', '%00']],
  ['resourceVersion', ['', '0', '1', '50', 'x', '-1', '18446744073709551616', '1.5']],
  ['resourceVersionMatch', ['Exact', 'NotOlderThan', 'zork', '']],
  [
    'labelSelector',
    ['app=web', 'app in (a,b)', '!app', 'app>1', 'a in (', '(', 'app=web,,', 'a%00b', '__proto__=a', 'app%3Dweb'],
  ],
  [
    'fieldSelector',
    [
      'metadata.name=a',
      'metadata.name!=a',
      'spec.nodeName=',
      'status.phase=Running',
      'zork=1',
      'a',
      '=,=',
      '__proto__=a',
    ],
  ],
  ['watch', ['1', 'true', '0', 'x', '']],
  ['timeoutSeconds', ['1', '0', '-1', 'x']],
  ['timeout', ['1s', '10s', 'x', '-1s', '0']],
  ['allowWatchBookmarks', ['true', 'x']],
  ['sendInitialEvents', ['true', 'false', 'x']],
  ['dryRun', ['All', 'zork', '', 'All&dryRun=All']],
  ['fieldManager', ['fuzz', '', 'a'.repeat(129), '%01', '__proto__']],
  ['fieldValidation', ['Strict', 'Warn', 'Ignore', 'zork']],
  ['force', ['true', 'false', 'x']],
  ['pretty', ['true', '1', 'x']],
  ['gracePeriodSeconds', ['0', '1', '-1', 'x', '9223372036854775808']],
  ['propagationPolicy', ['Foreground', 'Background', 'Orphan', 'zork']],
  ['orphanDependents', ['true', 'false', 'x']],
  ['ignoreStoreReadErrorWithClusterBreakingPotential', ['true', 'x']],
  ['includeObject', ['Object', 'None', 'zork']],
  ['__proto__', ['1']],
  ['constructor', ['1']],
  ['%zz', ['%zz']],
]

function queryIn(random: Random, method: string): string {
  const parts: string[] = method === 'PATCH' && !oneIn(random, 5) ? ['fieldManager=fuzz'] : []
  while (parts.length < 6 && oneIn(random, 3)) {
    const [name, values] = pick(random, QUERIES)
    parts.push(`${name}=${encodedOrNot(random, pick(random, values))}`)
  }
  // Without a timeout a watch would not end.
  if (parts.some((part) => part.startsWith('watch='))) parts.push('timeoutSeconds=1')
  return parts.length === 0 ? '' : `?${parts.join('&')}`
}

function encodedOrNot(random: Random, value: string): string {
  return oneIn(random, 10) ? value.replaceAll(' ', '+') : encodeURIComponent(value)
}

function bodyIn(random: Random, method: string, target: Target): Body | undefined {
  const needs = method === 'POST' || method === 'PUT' || method === 'PATCH'
  if (!needs) return oneIn(random, method === 'DELETE' ? 3 : 20) ? deleteOptions(random) : undefined
  const gvk = bodyKind(target.kind, target.subresource)
  const object = objectFor(random, gvk, { ...target, name: target.name === '' ? nameIn(random) : target.name })
  const body = method === 'PATCH' ? patchBody(random, object) : objectBody(random, gvk, object)
  return oneIn(random, 10) ? { ...body, bytes: broken(random, body.bytes) } : body
}

function deleteOptions(random: Random): Body {
  const text = pick(random, [
    '{}',
    '{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}',
    '{"propagationPolicy":"Foreground"}',
    '{"propagationPolicy":"Orphan","orphanDependents":true}',
    '{"preconditions":{"uid":"x"}}',
    '{"preconditions":{"resourceVersion":"1"}}',
    '{"dryRun":["All"]}',
    '{"kind":"Pod","apiVersion":"v1"}',
    '[]',
    'null',
    '{',
  ])
  return { contentType: 'application/json', bytes: Buffer.from(text) }
}

const ACCEPTS = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
  'application/vnd.kubernetes.protobuf, */*',
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io',
  'application/cbor',
  'text/html',
  '*/*;q=0',
  ';;;',
  'application/json;as=Zork;v=v1;g=meta.k8s.io',
] as const

const CONTENT_TYPES = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
  'application/cbor',
  'application/json-patch+json',
  'application/apply-patch+yaml',
  'application/apply-patch+cbor',
  'text/plain',
  '',
  ';',
  'application/json; charset=utf-16',
] as const

function headersIn(random: Random, person: Person, body: Body | undefined): Record<string, string> {
  const headers: Record<string, string> = { 'user-agent': 'fuzz/1', ...credentials(person) }
  if (!oneIn(random, 3)) headers['accept'] = oneIn(random, 6) ? pick(random, ACCEPTS) : 'application/json'
  if (body !== undefined) headers['content-type'] = oneIn(random, 15) ? pick(random, CONTENT_TYPES) : body.contentType
  if (oneIn(random, 15)) headers['accept-encoding'] = pick(random, ['gzip', 'gzip;q=0', 'br, gzip', 'x'])
  if (oneIn(random, 30))
    headers['impersonate-user'] = pick(random, ['a', 'system:anonymous', 'system:node:a', 'x:y', ''])
  if (oneIn(random, 40)) headers['impersonate-group'] = pick(random, ['system:masters', 'a', ''])
  if (oneIn(random, 60)) headers['impersonate-extra-%zz'] = 'x'
  if (oneIn(random, 60))
    headers['authorization'] = pick(random, ['Bearer x', 'Bearer', 'Basic eA==', 'Bearer a.b.c', ''])
  if (oneIn(random, 60)) headers['audit-id'] = pick(random, ['a', 'x'.repeat(5000), '\u00e9'])
  if (oneIn(random, 60)) headers['user-agent'] = pick(random, ['', '/', 'a'.repeat(4000), '\u00e9/1', '__proto__/1'])
  if (oneIn(random, 80)) headers['if-none-match'] = '"x"'
  if (oneIn(random, 80)) headers['origin'] = 'https://a.example.com'
  return headers
}

/** The body as it goes on the wire: plain, compressed (which is not for requests) or in chunks. */
function framed(
  random: Random,
  method: string,
  body: Body | undefined,
): { readonly method: string; readonly body?: Buffer } {
  if (body === undefined) return { method }
  return { method, body: oneIn(random, 100) ? gzipSync(body.bytes) : body.bytes }
}

const OTHER_PATHS = [
  '/',
  '/api',
  '/apis',
  '/apis/apps',
  '/apis/apps/v1',
  '/api/v1',
  '/apis/zork/v1/things',
  '/healthz',
  '/livez?verbose',
  '/readyz?exclude=etcd&exclude=zork&verbose=1',
  '/readyz/ping',
  '/version',
  '/metrics',
  '/openapi/v2',
  '/openapi/v3',
  '/openapi/v3/api/v1',
  '/openapi/v3/apis/apps/v1?hash=x',
  '/.well-known/openid-configuration',
  '/openid/v1/jwks',
  '/logs',
  '/debug/pprof/',
  '/api/v1/watch/pods?timeoutSeconds=1',
  '/api/v1/proxy/namespaces/default/pods/a',
  '/api/v1/namespaces/fuzz',
  '/api/v1/namespaces/fuzz/',
  '/api/v1/namespaces//pods',
  '/api/v1/namespaces/%2e%2e/pods',
  '/api/v1/nodes/..%2f..%2fsecrets',
  '/__proto__',
  '/apis/__proto__/constructor/toString',
  '/api/v1/namespaces/fuzz/pods/a/log',
  '/api/v1/namespaces/fuzz/pods/__proto__',
  '*',
  'https://elsewhere.example.com/api/v1/pods',
] as const

function otherRequest(random: Random, person: Person): FuzzRequest {
  const method = oneIn(random, 5) ? pick(random, METHODS) : 'GET'
  const path = pick(random, OTHER_PATHS)
  const isMalformed = oneIn(random, 10)
  const wrong = isMalformed ? pick(random, WRONG_HEADERS) : {}
  const protobuf = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
  const accept = path.startsWith('/openapi') && oneIn(random, 2) ? { accept: protobuf } : {}
  return {
    method,
    path,
    person,
    headers: { ...headersIn(random, person, undefined), ...accept, ...wrong },
    isEndless: path.includes('/watch/') || path.includes('/log') || path.includes('/proxy/'),
    isMalformed: isMalformed || path === '*' || path.startsWith('https:'),
  }
}

const WRONG_HEADERS: readonly Record<string, string>[] = [
  { 'content-length': 'x' },
  { 'content-length': '-1' },
  { 'transfer-encoding': 'zork' },
  { 'transfer-encoding': 'chunked', 'content-length': '5' },
  { 'bad header': 'x' },
  { 'x-nul': 'a\0b' },
  { 'x-large': 'a'.repeat(70_000) },
  { upgrade: 'websocket', connection: 'Upgrade' },
  { upgrade: 'h2c', connection: 'Upgrade, HTTP2-Settings', 'http2-settings': 'AAA' },
  { expect: '100-continue' },
  { expect: 'zork' },
]
