/** Tests metrics.k8s.io over HTTP, as `kubectl top` and autoscalers request it, with fake kubelets. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { defineUsage } from '#resources/metrics/usage.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const API = '/apis/metrics.k8s.io/v1beta1'
const TIME = '2026-01-02T03:04:05Z'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'

const cpu = (usageNanoCores: number): object => ({ time: TIME, usageNanoCores })
const memory = (workingSetBytes: number): object => ({ time: TIME, workingSetBytes })

describe('API metrics.k8s.io', () => {
  let plane: ControlPlane
  const clock = createVirtualClock()
  const asked: string[] = []
  const uids = new Map<string, string>()

  before(async () => {
    plane = await startControlPlane()
    const { registry } = plane.running.server
    const summaryOf = (node: string): Promise<unknown> => {
      asked.push(node)
      const containers = [
        { name: 'c', cpu: cpu(250_000_000), memory: memory(64 << 20) },
        { name: 'side', cpu: cpu(1), memory: memory(1 << 20) },
      ]
      const pods = [{ podRef: { uid: uids.get('web') }, containers }]
      return Promise.resolve(
        node === 'dead' ? undefined : { node: { cpu: cpu(500_000_000), memory: memory(1 << 30) }, pods },
      )
    }
    const source = { objects: registry, clock, summaryOf } as Parameters<typeof defineUsage>[0]
    for (const kind of defineUsage(source)) registry.addVirtual(kind)
    for (const name of ['dead', 'n1', 'n2']) {
      await plane.request('POST', '/api/v1/nodes', { metadata: { name, labels: { zone: name } } })
    }
    for (const name of ['web', 'new']) await makePod(name)
  })
  after(() => plane.stop())

  async function makePod(name: string): Promise<void> {
    const path = '/api/v1/namespaces/default/pods'
    const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }], serviceAccountName: 'default' }
    const made = await plane.request('POST', path, { metadata: { name, labels: { app: name } }, spec })
    assert.equal(made.status, 201, made.text)
    uids.set(name, (made.json().metadata as { uid: string }).uid)
    await plane.request('PATCH', `${path}/${name}/status`, { status: { phase: 'Running' } }, MERGE)
  }
  const MERGE = { 'content-type': 'application/merge-patch+json' }
  const items = async (path: string): Promise<readonly Record<string, unknown>[]> => {
    const answer = await plane.request('GET', `${API}${path}`)
    assert.equal(answer.status, 200, answer.text)
    return answer.json().items as readonly Record<string, unknown>[]
  }

  it('is read-only in discovery', async () => {
    const { resources } = (await plane.request('GET', API)).json() as { resources: Record<string, unknown>[] }
    assert.deepEqual(
      resources.map(({ name, namespaced, kind, verbs }) => [name, namespaced, kind, verbs]),
      [
        ['nodes', false, 'NodeMetrics', ['get', 'list']],
        ['pods', true, 'PodMetrics', ['get', 'list']],
      ],
    )
    assert.equal((await plane.request('POST', `${API}/nodes`, {})).status, 405)
  })

  it('contains nodes whose kubelet responds', async () => {
    const nodes = await items('/nodes')
    assert.deepEqual(
      nodes.map(({ metadata }) => (metadata as { name: string }).name),
      ['n1', 'n2'],
    )
    assert.deepEqual((await plane.request('GET', `${API}/nodes/n1`)).json(), {
      kind: 'NodeMetrics',
      apiVersion: 'metrics.k8s.io/v1beta1',
      metadata: { name: 'n1', creationTimestamp: TIME, labels: { zone: 'n1' } },
      timestamp: TIME,
      window: '15s',
      usage: { cpu: '500m', memory: '1Gi' },
    })
    assert.equal((await items('/nodes?labelSelector=zone%3Dn2')).length, 1)
    assert.equal(
      (await plane.request('GET', `${API}/nodes/dead`)).json().message,
      'nodemetricses.metrics.k8s.io "dead" not found',
    )
  })

  it('contains measured pods, by namespace, name and label', async () => {
    const [web, ...others] = await items('/pods')
    assert.deepEqual(others, [])
    assert.deepEqual(web?.containers, [
      { name: 'c', usage: { cpu: '250m', memory: '64Mi' } },
      { name: 'side', usage: { cpu: '1n', memory: '1Mi' } },
    ])
    assert.equal((await items('/namespaces/default/pods?labelSelector=app%3Dweb')).length, 1)
    assert.equal((await items('/namespaces/default/pods?labelSelector=app%3Dnew')).length, 0)
    assert.equal((await items('/namespaces/kube-system/pods')).length, 0)
    assert.equal((await plane.request('GET', `${API}/namespaces/default/pods/web`)).status, 200)
    assert.equal((await plane.request('GET', `${API}/namespaces/default/pods/new`)).status, 404)
  })

  it('can be read as a table', async () => {
    const answer = await plane.request('GET', `${API}/namespaces/default/pods`, undefined, { accept: TABLE })
    const { columnDefinitions, rows } = answer.json() as Record<string, { name?: string; cells?: unknown }[]>
    assert.deepEqual(
      columnDefinitions?.map(({ name }) => name),
      ['Name', 'cpu', 'memory', 'Window'],
    )
    assert.deepEqual(rows?.[0]?.cells, ['web', '250000001n', '65Mi', '15s'])
  })

  it('has a protobuf form, which kubectl top requests', async () => {
    for (const path of ['/nodes', '/nodes/n1', '/pods', '/namespaces/default/pods/web']) {
      const answer = await plane.request('GET', `${API}${path}`, undefined, { accept: PROTOBUF })
      assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, PROTOBUF], path)
    }
  })

  it('scrapes a node once per period', async () => {
    await clock.advance(15_000)
    asked.length = 0
    await items('/nodes')
    await items('/pods')
    assert.deepEqual(
      asked.filter((node) => node === 'n1'),
      ['n1'],
    )
    await clock.advance(15_000)
    await items('/pods')
    assert.deepEqual(
      asked.filter((node) => node === 'n1'),
      ['n1', 'n1'],
    )
  })

  it('is not part of the OpenAPI documents', async () => {
    for (const path of ['/openapi/v2', '/openapi/v3', '/openapi/v3/apis/metrics.k8s.io/v1beta1']) {
      assert.equal((await plane.request('GET', path)).status, 200, path)
    }
  })
})
