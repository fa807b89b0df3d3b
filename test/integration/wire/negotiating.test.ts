/**
 * Tests content negotiation of writes. An unacceptable format is refused before the write takes effect; clients that
 * accept protobuf get it.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Got, openEnvelope, PATCHES, PROTOBUF, startWire, type Wire } from './server.ts'

let wire: Wire
before(async () => {
  wire = await startWire()
})
after(() => wire.stop())

interface Write {
  readonly method: string
  /** Below the namespace. */
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Undefined for a Status. */
  readonly kind?: string
}

const CORE = '/api/v1/namespaces'
const APPS = '/apis/apps/v1/namespaces'
const map = (value: string): object => ({ metadata: { name: 'a', labels: { a: value } }, data: { value } })
const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { value: 'applied' } }
const scale = { metadata: { name: 'd' }, spec: { replicas: 3 } }
const podSpec = { containers: [{ name: 'c', image: 'i' }] }

/** Every write verb, on objects, collections and subresources. */
const WRITES: Readonly<Record<string, (ns: string) => Write>> = {
  create: (ns) => ({
    method: 'POST',
    path: `${CORE}/${ns}/configmaps`,
    body: { ...map('new'), metadata: { name: 'b' } },
    kind: 'ConfigMap',
  }),
  update: (ns) => ({ method: 'PUT', path: `${CORE}/${ns}/configmaps/a`, body: map('put'), kind: 'ConfigMap' }),
  'json patch': (ns) => ({
    method: 'PATCH',
    path: `${CORE}/${ns}/configmaps/a`,
    body: [{ op: 'replace', path: '/data/value', value: 'json' }],
    headers: PATCHES.json,
    kind: 'ConfigMap',
  }),
  'merge patch': (ns) => ({
    method: 'PATCH',
    path: `${CORE}/${ns}/configmaps/a`,
    body: { data: { value: 'merge' } },
    headers: PATCHES.merge,
    kind: 'ConfigMap',
  }),
  'strategic patch': (ns) => ({
    method: 'PATCH',
    path: `${CORE}/${ns}/configmaps/a`,
    body: { data: { value: 'strategic' } },
    headers: PATCHES.strategic,
    kind: 'ConfigMap',
  }),
  apply: (ns) => ({
    method: 'PATCH',
    path: `${CORE}/${ns}/configmaps/a?fieldManager=test&force=true`,
    body: applied,
    headers: PATCHES.apply,
    kind: 'ConfigMap',
  }),
  delete: (ns) => ({ method: 'DELETE', path: `${CORE}/${ns}/configmaps/a` }),
  'delete of a collection': (ns) => ({
    method: 'DELETE',
    path: `${CORE}/${ns}/configmaps?labelSelector=a`,
    kind: 'ConfigMapList',
  }),
  'update of the status': (ns) => ({
    method: 'PUT',
    path: `${CORE}/${ns}/pods/p/status`,
    body: { metadata: { name: 'p' }, spec: podSpec, status: { reason: 'Put' } },
    kind: 'Pod',
  }),
  'update of the scale': (ns) => ({
    method: 'PUT',
    path: `${APPS}/${ns}/deployments/d/scale`,
    body: { apiVersion: 'autoscaling/v1', kind: 'Scale', ...scale, metadata: { name: 'd', namespace: ns } },
    kind: 'Scale',
  }),
  'patch of the scale': (ns) => ({
    method: 'PATCH',
    path: `${APPS}/${ns}/deployments/d/scale`,
    body: { spec: { replicas: 4 } },
    headers: PATCHES.merge,
    kind: 'Scale',
  }),
  binding: (ns) => ({
    method: 'POST',
    path: `${CORE}/${ns}/pods/p/binding`,
    body: { metadata: { name: 'p' }, target: { kind: 'Node', name: 'n' } },
  }),
  eviction: (ns) => ({
    method: 'POST',
    path: `${CORE}/${ns}/pods/p/eviction`,
    body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } },
  }),
}

/** A namespace with an object of each kind that is written to. */
async function prepare(): Promise<string> {
  const ns = await wire.namespace()
  const template = { metadata: { labels: { a: 'b' } }, spec: podSpec }
  const selector = { matchLabels: { a: 'b' } }
  await wire.must('POST', `${CORE}/${ns}/configmaps`, map('old'))
  await wire.must('POST', `${CORE}/${ns}/pods`, { metadata: { name: 'p' }, spec: podSpec })
  await wire.must('POST', `${APPS}/${ns}/deployments`, { metadata: { name: 'd' }, spec: { selector, template } })
  return ns
}

const send = ({ method, path, body, headers = {} }: Write, more: Readonly<Record<string, string>>): Promise<Got> =>
  wire.request(method, path, { ...(body !== undefined && { body }), headers: { ...headers, ...more } })

/** All objects that are written to, with their versions. */
async function stateOf(ns: string): Promise<string[]> {
  const paths = [`${CORE}/${ns}/configmaps`, `${CORE}/${ns}/pods`, `${APPS}/${ns}/deployments`]
  const lists = await Promise.all(paths.map((path) => wire.must('GET', path)))
  return lists.flatMap(({ items }) =>
    (items as { metadata: { name: string; resourceVersion: string } }[]).map(
      ({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`,
    ),
  )
}

describe('write request without an acceptable response format', () => {
  for (const [name, write] of Object.entries(WRITES)) {
    it(`has no effect: ${name}`, async () => {
      const ns = await prepare()
      const before = await stateOf(ns)
      for (const agent of ['kubectl/v1.36.4', 'curl/8.0.0']) {
        const got = await send(write(ns), { accept: 'text/html', 'user-agent': agent })
        assert.equal(got.status, 406, got.text)
      }
      assert.deepEqual(await stateOf(ns), before)
    })
  }
})

describe('protobuf response', () => {
  const isEnvelope = (got: Got, kind = 'Status'): void => {
    assert.ok(got.status >= 200 && got.status < 300, `${got.status} ${got.text}`)
    assert.equal(got.headers['content-type'], PROTOBUF)
    assert.equal(openEnvelope(got.bytes).kind, kind)
  }

  for (const [name, write] of Object.entries(WRITES)) {
    it(`is sent to curl and browsers that accept protobuf: ${name}`, async () => {
      for (const agent of ['curl/8.0.0', 'Mozilla/5.0 (X11; Linux x86_64)', 'Wget/1.21']) {
        const ns = await prepare()
        const one = write(ns)
        isEnvelope(await send(one, { accept: PROTOBUF, 'user-agent': agent }), one.kind)
      }
    })
  }

  it('is sent for reads and errors to such clients, regardless of pretty', async () => {
    const ns = await prepare()
    const headers = { accept: PROTOBUF, 'user-agent': 'curl/8.0.0' }
    const maps = `${CORE}/${ns}/configmaps`
    for (const query of ['', '?pretty=true']) {
      isEnvelope(await wire.request('GET', `${maps}/a${query}`, { headers }), 'ConfigMap')
      isEnvelope(await wire.request('GET', `${maps}${query}`, { headers }), 'ConfigMapList')
      const missing = await wire.request('GET', `${maps}/missing${query}`, { headers })
      assert.deepEqual([missing.status, openEnvelope(missing.bytes).kind], [404, 'Status'])
    }
  })
})
