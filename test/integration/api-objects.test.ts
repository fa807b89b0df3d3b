/**
 * Tests operations beyond storage on a complete API server: binding, eviction, scale, namespaces, discovery, OpenAPI.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

interface Obj {
  metadata: Record<string, unknown>
  spec: Record<string, unknown>
  status: Record<string, unknown>
  message?: string
}

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane()
  await plane.request('POST', '/api/v1/namespaces', { metadata: { name: 'a' } })
})
after(() => plane.stop())

const PODS = '/api/v1/namespaces/a/pods'
const pod = (name: string): object => ({
  metadata: { name, labels: { app: 'x' } },
  spec: { containers: [{ name: 'c', image: 'i' }] },
})
const get = async (path: string): Promise<Obj> => (await plane.request('GET', path)).json() as unknown as Obj

describe('bindings and evictions of pods', () => {
  it('set the node once, with labels of the binding and the condition PodScheduled', async () => {
    await plane.request('POST', PODS, pod('bound'))
    const binding = { metadata: { name: 'bound', labels: { zone: 'z' } }, target: { kind: 'Node', name: 'n1' } }
    const answer = await plane.request('POST', `${PODS}/bound/binding`, binding)
    assert.deepEqual([answer.status, (answer.json() as unknown as { status: string }).status], [201, 'Success'])
    const { metadata, spec, status } = await get(`${PODS}/bound`)
    assert.equal(spec['nodeName'], 'n1')
    assert.equal((metadata['labels'] as { zone: string }).zone, 'z')
    assert.equal((status['conditions'] as { type: string; status: string }[])[0]?.type, 'PodScheduled')
    const again = await plane.request('POST', `${PODS}/bound/binding`, binding)
    assert.equal(again.status, 409)
    assert.match(again.text, /pods\/binding \\"bound\\": pod bound is already assigned to node \\"n1\\"/)
    assert.equal(
      (await plane.request('POST', `${PODS}/bound/binding`, { metadata: { name: 'bound' }, target: { kind: 'Pod' } }))
        .status,
      422,
    )
  })

  it('succeed while the PodDisruptionBudget allows an eviction', async () => {
    const budgets = '/apis/policy/v1/namespaces/a/poddisruptionbudgets'
    await plane.request('POST', budgets, {
      metadata: { name: 'b' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'x' } } },
    })
    const allow = async (disruptionsAllowed: number): Promise<void> => {
      const status = {
        disruptionsAllowed,
        currentHealthy: 2,
        desiredHealthy: 1,
        expectedPods: 2,
        observedGeneration: 1,
      }
      const body = { status }
      assert.equal(
        (await plane.request('PATCH', `${budgets}/b/status`, body, { 'content-type': 'application/merge-patch+json' }))
          .status,
        200,
      )
    }
    for (const name of ['e1', 'e2']) {
      await plane.request('POST', PODS, pod(name))
      const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }
      await plane.request(
        'PATCH',
        `${PODS}/${name}/status`,
        { status },
        { 'content-type': 'application/merge-patch+json' },
      )
    }
    await allow(0)
    const refused = await plane.request('POST', `${PODS}/e1/eviction`, { metadata: { name: 'e1' } })
    assert.equal(refused.status, 429)
    // There is no Retry-After, because the server cannot predict it; only a budget without a status has one of ten
    // seconds.
    assert.equal(refused.headers.get('retry-after'), null)
    assert.match(refused.text, /Cannot evict pod as it would violate the pod's disruption budget\./)
    await allow(1)
    assert.equal((await plane.request('POST', `${PODS}/e1/eviction`, { metadata: { name: 'e1' } })).status, 201)
    assert.equal((await plane.request('GET', `${PODS}/e1`)).status, 404)
    assert.equal((await get(`${budgets}/b`)).status['disruptionsAllowed'], 0)
  })
})

describe('scale subresource', () => {
  it('shows and sets the replicas of a workload, and rejects a negative number', async () => {
    const path = '/apis/apps/v1/namespaces/a/deployments'
    const template = { metadata: { labels: { app: 'w' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
    await plane.request('POST', path, {
      metadata: { name: 'w' },
      spec: { replicas: 2, selector: { matchLabels: { app: 'w' } }, template },
    })
    const scale = await get(`${path}/w/scale`)
    assert.deepEqual([scale.spec['replicas'], scale.status['selector']], [2, 'app=w'])
    const merge = { 'content-type': 'application/merge-patch+json' }
    assert.equal((await plane.request('PATCH', `${path}/w/scale`, { spec: { replicas: 5 } }, merge)).status, 200)
    assert.equal((await get(`${path}/w`)).spec['replicas'], 5)
    assert.equal(
      (await plane.request('PUT', `${path}/w/scale`, { metadata: { name: 'w' }, spec: { replicas: -1 } })).status,
      422,
    )
  })
})

describe('a terminating namespace', () => {
  it('stays until its finalizers are removed through the finalize subresource', async () => {
    await plane.request('POST', '/api/v1/namespaces', { metadata: { name: 'going' } })
    const marked = (await plane.request('DELETE', '/api/v1/namespaces/going')).json() as unknown as Obj
    assert.equal(marked.status['phase'], 'Terminating')
    assert.equal(marked.metadata['deletionGracePeriodSeconds'], undefined)
    const live = await get('/api/v1/namespaces/going')
    assert.equal((await plane.request('PUT', '/api/v1/namespaces/going/finalize', { ...live, spec: {} })).status, 200)
    assert.equal((await plane.request('GET', '/api/v1/namespaces/going')).status, 404)
  })
})

describe('discovery and OpenAPI', () => {
  it('list API groups, aggregated and one by one', async () => {
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
    const answer = await plane.request('GET', '/apis', undefined, { accept })
    assert.equal(answer.headers.get('content-type'), accept)
    const groups = (answer.json() as { items: { metadata: { name: string } }[] }).items.map(
      ({ metadata }) => metadata.name,
    )
    assert.ok(groups.includes('apps') && groups.includes('policy'))
    const etag = answer.headers.get('etag') ?? ''
    assert.equal((await plane.request('GET', '/apis', undefined, { accept, 'if-none-match': etag })).status, 304)
    const { resources } = (await plane.request('GET', '/apis/apps/v1')).json() as { resources: { name: string }[] }
    assert.ok(resources.some(({ name }) => name === 'deployments/scale'))
  })

  it('describe every kind in v3 and v2, with the extensions that kubectl reads', async () => {
    const { paths } = (await plane.request('GET', '/openapi/v3')).json() as {
      paths: Record<string, { serverRelativeURL: string }>
    }
    const url = paths['apis/apps/v1']?.serverRelativeURL ?? ''
    const document = (await plane.request('GET', url)).json() as {
      paths: Record<string, { patch?: { parameters: { name: string }[] } }>
      components: { schemas: object }
    }
    const patch = document.paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}']?.patch
    assert.deepEqual(
      patch?.parameters.map(({ name }) => name),
      ['dryRun', 'fieldManager', 'fieldValidation', 'force'],
    )
    assert.ok('io.k8s.api.core.v1.PodSpec' in document.components.schemas)
    const v2 = (await plane.request('GET', '/openapi/v2')).json() as { definitions: object }
    assert.ok('io.k8s.api.apps.v1.Deployment' in v2.definitions)
    const accept = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
    const protobuf = await plane.request('GET', '/openapi/v2', undefined, { accept })
    assert.equal(protobuf.headers.get('content-type'), 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf')
    assert.ok(protobuf.text.startsWith('\n\u00032.0'))
  })
})
