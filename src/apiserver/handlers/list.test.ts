import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'

import { ConfigMaps } from '#apis/core/v1.ts'
import { requestInfoOf } from '#auth/request-info.ts'
import type { Call, WholeAnswer } from '#component/requests/call.ts'
import { OrderedTree } from '#storage/ordered-tree.ts'

import type { Registry } from '../registry/registry.ts'
import { createServers } from '../registry/servers.fixture.ts'
import { listObjects } from './list.ts'

const PATH = '/api/v1/namespaces/default/configmaps'

function callOf(query: string, path = PATH): Call {
  const parameters = new URLSearchParams(query)
  return {
    method: 'GET',
    info: requestInfoOf('GET', path, parameters),
    query: parameters,
    header: (name: string) => (name === 'accept' ? 'application/json' : ''),
    user: { name: 'jane', uid: '', groups: [], extra: {} },
    signal: new AbortController().signal,
  } as unknown as Call
}

async function fill(registry: Registry, count: number, bytes: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const metadata = { name: `m-${at}`, namespace: 'default', labels: { parity: at % 2 === 0 ? 'even' : 'odd' } }
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata, data: { text: 'x'.repeat(bytes) } }
    await registry.writer.create(ConfigMaps, object)
  }
}

/** Lists with a memory budget that only records reservations and releases. */
async function listing(
  registry: Registry,
  query: string,
): Promise<{ readonly reservations: string[]; readonly releases: () => number; readonly answer: WholeAnswer }> {
  const found = registry.find({ group: '', version: 'v1', resource: 'configmaps' })!
  const reservations: string[] = []
  let releases = 0
  const answers = {
    reserve(user: string, bytes: number): Promise<() => void> {
      reservations.push(`${user} ${Math.floor(bytes / (1 << 20))}`)
      return Promise.resolve(() => void releases++)
    },
  }
  const view = { ...found, services: { ...found.services, answers } }
  const answer = (await listObjects(callOf(query), view)) as WholeAnswer
  return { reservations, releases: () => releases, answer }
}

/** Puts `count` small objects into the store without the API. */
async function fillBackend({ services }: Registry, count: number): Promise<void> {
  const text = (name: string, at: number): string =>
    `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"${name}","namespace":"default","uid":"uid-${at}"}}`
  const key = (name: string): string => `/registry/configmaps/default/${name}`
  const names = Array.from({ length: count }, (_, at) => `m-${String(at).padStart(6, '0')}`)
  for (let at = 0; at < count; at += 1000) {
    const part = names.slice(at, at + 1000)
    await services.backend.commit(part.map((name) => ({ key: key(name), value: Buffer.from(text(name, at)) })))
  }
  await services.cache.fresh()
}

/** Counts the entries that readers of the tree visit. */
function countVisits(t: TestContext): { take(): number } {
  let visits = 0
  const runs = Reflect.get(OrderedTree.prototype, 'runs') as OrderedTree<unknown>['runs']
  t.mock.method(
    OrderedTree.prototype,
    'runs',
    function* counted(this: OrderedTree<unknown>, start: string, end: string) {
      for (const run of runs.call(this, start, end)) {
        visits += run.values.length
        yield run
      }
    },
  )
  return {
    take() {
      const taken = visits
      visits = 0
      return taken
    },
  }
}

interface ShownList {
  readonly metadata: { readonly continue?: string; readonly remainingItemCount?: number; resourceVersion: string }
  readonly items: readonly { readonly metadata: { readonly name: string } }[]
}

async function shown(registry: Registry, query: string, path = PATH): Promise<ShownList> {
  const view = registry.find({ group: '', version: 'v1', resource: 'configmaps' })!
  const { body } = (await listObjects(callOf(query, path), view)) as WholeAnswer
  return JSON.parse(typeof body === 'string' ? body : Buffer.concat([...(body as Iterable<Buffer>)]).toString())
}

describe('metrics of list requests', () => {
  it('count consistent reads from the watch cache, but not lists with a resourceVersion', async () => {
    await using servers = createServers()
    const registry = await servers.open([ConfigMaps])
    const { metrics, cache } = registry.services
    const consistent = metrics.family('apiserver_watch_cache_consistent_read_total')
    const count = (): number => consistent.labels('', 'configmaps', 'true', 'false').value
    await fill(registry, 1, 1)
    const before = count()
    await shown(registry, '')
    assert.equal(count(), before + 1)
    await shown(registry, 'resourceVersion=0')
    await shown(registry, `resourceVersion=${cache.revision}`)
    assert.equal(count(), before + 1)
  })
})

describe('a page of a list', () => {
  it('visits a number of entries that depends only on the page size', async (t) => {
    const visits = countVisits(t)
    const visited: number[][] = []
    for (const size of [2000, 20_000]) {
      await using servers = createServers()
      const registry = await servers.open([ConfigMaps])
      await fillBackend(registry, size)
      const taken: number[] = []
      for (const path of [PATH, '/api/v1/configmaps']) {
        visits.take()
        const { metadata, items } = await shown(registry, 'limit=500', path)
        assert.deepEqual([items.length, metadata.remainingItemCount], [500, size - 500])
        taken.push(visits.take())
        const rest = `limit=500&continue=${metadata.continue}`
        assert.equal((await shown(registry, rest, path)).metadata.remainingItemCount, size - 1000)
        taken.push(visits.take())
        await registry.services.backend.commit([{ key: '/registry/configmaps/default/m-001000', value: null }])
        await registry.services.cache.fresh()
        const later = await shown(registry, rest, path)
        assert.deepEqual([later.items.length, later.metadata.remainingItemCount], [500, size - 1000])
        taken.push(visits.take())
        await shown(registry, `limit=500&resourceVersion=${metadata.resourceVersion}`, path)
        taken.push(visits.take())
        await fillBackend(registry, 1001)
      }
      visited.push(taken)
    }
    assert.deepEqual(visited[0], visited[1])
    assert.ok(Math.max(...visited.flat()) <= 500 + 2 * 256, visited.join(' '))
  })

  it('is read from the backend if the watch cache no longer has its revision', async (t) => {
    await using servers = createServers()
    const registry = await servers.open([ConfigMaps])
    await fillBackend(registry, 2000)
    const { collection } = registry.storeOf(ConfigMaps)!
    const names: string[] = []
    t.mock.method(collection, 'stateAt', () => undefined)
    const ranges = t.mock.method(registry.services.backend, 'range')
    let { metadata, items } = await shown(registry, 'limit=600')
    await registry.services.backend.commit([{ key: '/registry/configmaps/default/m-001999', value: null }])
    for (;;) {
      names.push(...items.map(({ metadata: { name } }) => name))
      if (metadata.continue === undefined) break
      assert.equal(metadata.remainingItemCount, 2000 - names.length)
      ;({ metadata, items } = await shown(registry, `limit=600&continue=${metadata.continue}`))
    }
    assert.deepEqual([names.length, new Set(names).size, names.at(-1)], [2000, 2000, 'm-001999'])
    assert.deepEqual(
      ranges.mock.calls.map(({ arguments: [{ limit }] }) => limit),
      [600, 600, 600, 600],
    )
    const some = await shown(registry, 'limit=600&fieldSelector=metadata.name%21%3Dm-000000')
    assert.deepEqual([some.items.length, some.items[0]?.metadata.name], [600, 'm-000001'])
  })
})

describe('a table response', () => {
  it('is sent in chunks if it has many rows, compressed on request', async () => {
    await using servers = createServers()
    const registry = await servers.open([ConfigMaps])
    await fillBackend(registry, 3000)
    const view = registry.find({ group: '', version: 'v1', resource: 'configmaps' })!
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
    const ask = async (encoding: string): Promise<Buffer[]> => {
      const header = (name: string): string => (name === 'accept' ? accept : name === 'accept-encoding' ? encoding : '')
      const { body } = (await listObjects({ ...callOf(''), header }, view)) as WholeAnswer
      return typeof body === 'string' ? [Buffer.from(body, 'latin1')] : [...(body as Iterable<Buffer>)]
    }
    const pieces = await ask('')
    assert.ok(pieces.length > 1 && pieces.every((piece) => piece.length < 512 << 10))
    const whole = Buffer.concat(pieces)
    const { rows } = JSON.parse(whole.toString()) as { rows: { cells: string[] }[] }
    assert.deepEqual([rows.length, rows[0]?.cells[0], rows.at(-1)?.cells[0]], [3000, 'm-000000', 'm-002999'])
    assert.deepEqual(gunzipSync(Buffer.concat(await ask('gzip'))), whole)
  })
})

describe('a list request', () => {
  it('reserves memory for a large response, and releases it after sending', async () => {
    await using servers = createServers()
    const registry = await servers.open([ConfigMaps])
    await fill(registry, 20, 1 << 20)
    const whole = await listing(registry, '')
    assert.deepEqual(whole.reservations, ['jane 20'])
    assert.equal(whole.releases(), 0)
    whole.answer.sent?.()
    assert.equal(whole.releases(), 1)
    assert.deepEqual((await listing(registry, 'labelSelector=parity%3Dodd')).reservations, ['jane 10'])
    assert.deepEqual((await listing(registry, 'labelSelector=parity%3Dnone')).reservations, [])
    assert.deepEqual((await listing(registry, 'limit=500')).reservations, [], 'pages are small')
  })

  it('reserves no memory for a small response', async () => {
    await using servers = createServers()
    const registry = await servers.open([ConfigMaps])
    await fill(registry, 20, 1000)
    assert.deepEqual((await listing(registry, '')).reservations, [])
  })
})
