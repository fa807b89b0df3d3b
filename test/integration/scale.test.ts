/**
 * Tests the scale subresource over HTTP: all ways to write it, field ownership of replicas, and refusals. Expected
 * values are v1.36.4's.
 */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'

import { type ControlPlane, type ControlPlaneResponse, startControlPlane } from '#testing/control-plane.ts'

const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments'
const MERGE = 'application/merge-patch+json'
const STRATEGIC = 'application/strategic-merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'
const APPLY = 'application/apply-patch+yaml'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'

interface ScaleBody {
  readonly metadata: { readonly resourceVersion: string; readonly uid: string; readonly managedFields?: unknown }
  readonly spec: { readonly replicas?: number }
  readonly status: { readonly replicas: number; readonly selector?: string }
}

function scale(replicas: number, metadata: object = {}): object {
  return {
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name: 'web', namespace: 'default', ...metadata },
    spec: { replicas },
  }
}

describe('scale subresource', () => {
  let plane: ControlPlane
  before(async () => {
    plane = await startControlPlane()
  })
  after(() => plane.stop())

  /** The path of the Scale. */
  let path = ''
  let count = 0
  beforeEach(async () => {
    const labels = { app: 'x', z: '1' }
    const selector = { matchLabels: { app: 'x' }, matchExpressions: [{ key: 'z', operator: 'Exists' }] }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } }
    const namespace = `n${count++}`
    path = `/apis/apps/v1/namespaces/${namespace}/deployments/web/scale`
    await plane.request('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
    const body = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: { replicas: 3, selector, template },
    }
    const made = await plane.request('POST', `${DEPLOYMENTS.replace('default', namespace)}?fieldManager=maker`, body)
    assert.equal(made.status, 201, made.text)
  })

  const here = (body: object): object => {
    const { metadata } = body as { metadata: object }
    return { ...body, metadata: { ...metadata, namespace: path.split('/')[5] } }
  }
  const put = (body: object, query = ''): Promise<ControlPlaneResponse> =>
    plane.request('PUT', path + query, here(body))
  const patch = (type: string, body: unknown, query = '?fieldManager=p'): Promise<ControlPlaneResponse> =>
    plane.request('PATCH', path + query, body, { 'content-type': type })
  const apply = (body: object, query: string): Promise<ControlPlaneResponse> => patch(APPLY, here(body), query)
  const get = async (): Promise<ScaleBody> => (await plane.request('GET', path)).json() as unknown as ScaleBody
  /** The owners of the replicas: manager, operation and subresource. */
  const owners = async (): Promise<string[]> => {
    const { metadata } = (await plane.request('GET', path.replace(/\/scale$/, ''))).json() as {
      metadata: { managedFields?: { manager: string; operation: string; subresource?: string; fieldsV1: object }[] }
    }
    return (metadata.managedFields ?? [])
      .filter(({ fieldsV1 }) => Object.hasOwn((fieldsV1 as Record<string, object>)['f:spec'] ?? {}, 'f:replicas'))
      .map(({ manager, operation, subresource }) => [manager, operation, subresource ?? ''].join(' ').trim())
  }

  it('shows the replicas of the workload', async () => {
    const { spec, status, metadata } = await get()
    assert.deepEqual([spec, status], [{ replicas: 3 }, { replicas: 0, selector: 'app=x,z' }])
    assert.deepEqual(Object.keys(metadata).sort(), ['creationTimestamp', 'name', 'namespace', 'resourceVersion', 'uid'])
    const table = (await plane.request('GET', path, undefined, { accept: TABLE })).json() as {
      columnDefinitions: { name: string }[]
      rows: { cells: unknown[] }[]
    }
    assert.deepEqual(
      table.columnDefinitions.map(({ name }) => name),
      ['Name', 'Desired', 'Available', 'Age'],
    )
    assert.deepEqual(table.rows[0]?.cells.slice(0, 3), ['web', 3, 0])
  })

  it('can be written by PUT, which becomes the owner of the replicas', async () => {
    assert.deepEqual(await owners(), ['maker Update'])
    const answer = await put(scale(5), '?fieldManager=hpa')
    assert.deepEqual([answer.status, (answer.json() as unknown as ScaleBody).spec], [200, { replicas: 5 }])
    assert.deepEqual(await owners(), ['hpa Update scale'])
    await put(scale(5), '?fieldManager=other')
    assert.deepEqual(await owners(), ['hpa Update scale'])
  })

  it('can be written by every kind of patch', async () => {
    for (const [type, body, manager, replicas] of [
      [MERGE, { spec: { replicas: 5 } }, 'm', 5],
      [STRATEGIC, { spec: { replicas: 6 } }, 's', 6],
      [JSON_PATCH, [{ op: 'replace', path: '/spec/replicas', value: 7 }], 'j', 7],
    ] as const) {
      const answer = await patch(type, body, `?fieldManager=${manager}`)
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual([(await get()).spec, await owners()], [{ replicas }, [`${manager} Update scale`]])
    }
    await patch(MERGE, { spec: { replicas: 0 } })
    assert.deepEqual((await get()).spec, {})
  })

  it('can be applied, with a conflict if another manager owns the replicas', async () => {
    const refused = await apply(scale(5), '?fieldManager=app')
    assert.equal(refused.status, 409)
    const { message, details } = refused.json() as { message: string; details: { causes: object[] } }
    assert.equal(message, 'Apply failed with 1 conflict: conflict with "maker" using autoscaling/v1: .spec.replicas')
    assert.deepEqual(details.causes, [
      {
        reason: 'FieldManagerConflict',
        message: 'conflict with "maker" using autoscaling/v1',
        field: '.spec.replicas',
      },
    ])
    assert.equal((await apply(scale(5), '?fieldManager=app&force=true')).status, 200)
    assert.deepEqual(await owners(), ['app Apply scale'])
    assert.equal((await apply(scale(6), '?fieldManager=app')).status, 200)
    assert.equal((await apply(scale(6), '?fieldManager=other')).status, 200)
    assert.deepEqual((await owners()).toSorted(), ['app Apply scale', 'other Apply scale'])
    assert.equal((await apply(scale(7), '?fieldManager=other')).status, 409)
    assert.deepEqual((await get()).spec, { replicas: 6 })
  })

  it('respects the resourceVersion and UID of the request', async () => {
    const { metadata } = await get()
    const { resourceVersion, uid } = metadata
    assert.equal((await put(scale(4, { resourceVersion, uid }))).status, 200)
    const stale = await put(scale(5, { resourceVersion }))
    assert.equal(stale.status, 409)
    assert.match(
      stale.text,
      /Operation cannot be fulfilled on deployments\.apps \\"web\\": the object has been modified/,
    )
    assert.equal((await patch(MERGE, { metadata: { resourceVersion }, spec: { replicas: 5 } })).status, 409)
    assert.equal((await apply(scale(4, { resourceVersion }), '?fieldManager=a')).status, 409)
    assert.equal((await put(scale(5, { uid: 'other' }))).status, 409)
    const other = await patch(MERGE, { metadata: { uid: 'other' }, spec: { replicas: 5 } })
    assert.match(other.text, /on deployments\/scale\.apps \\"web\\": Precondition failed: UID in precondition: other/)
    assert.match((await put(scale(5, { resourceVersion: 'x' }))).text, /strconv\.ParseUint: parsing/)
    assert.deepEqual((await get()).spec, { replicas: 4 })
  })

  it('stays unchanged on a dry run', async () => {
    const answer = await put(scale(9), '?dryRun=All')
    assert.deepEqual((answer.json() as unknown as ScaleBody).spec, { replicas: 9 })
    assert.equal((await apply(scale(9), '?dryRun=All&force=true&fieldManager=app')).status, 200)
    assert.equal((await patch(MERGE, { spec: { replicas: 9 } }, '?dryRun=All')).status, 200)
    assert.deepEqual([(await get()).spec, await owners()], [{ replicas: 3 }, ['maker Update']])
  })

  it('increases the generation of the workload, but only if something changed', async () => {
    const generation = async (): Promise<unknown> =>
      ((await plane.request('GET', path.replace(/\/scale$/, ''))).json()['metadata'] as { generation: number })
        .generation
    await put(scale(4))
    assert.equal(await generation(), 2)
    await put(scale(4))
    assert.equal(await generation(), 2)
  })

  const refusals: readonly [string, () => Promise<ControlPlaneResponse>, number, RegExp][] = [
    [
      'negative replicas',
      () => put(scale(-1)),
      422,
      /spec\.replicas: Invalid value: -1: must be greater than or equal to 0/,
    ],
    [
      'a body with another name',
      () => put(scale(1, { name: 'x' })),
      400,
      /the name of the object \(x\) does not match the name on the URL \(web\)/,
    ],
    [
      'a body without a name',
      () => put(scale(1, { name: '' })),
      400,
      /\(web based on URL\) was undeterminable: name must be provided/,
    ],
    ['a patch that removes the name', () => patch(MERGE, { metadata: { name: null } }), 400, /was undeterminable/],
    [
      'a body with another namespace',
      () => plane.request('PUT', path, scale(1)),
      400,
      /the namespace of the provided object does not match/,
    ],
    ['invalid labels', () => put(scale(1, { labels: { 'a b': '' } })), 422, /metadata\.labels: Invalid value/],
    [
      'a workload as the body',
      () => put({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } }),
      400,
      /cannot be handled as a Scale/,
    ],
    [
      'unknown fields with strict validation',
      () => put({ ...scale(1), foo: 1 }, '?fieldValidation=Strict'),
      400,
      /unknown field \\"foo\\"/,
    ],
    [
      'unknown fields by patch',
      () => patch(MERGE, { spec: { foo: 1 } }, '?fieldValidation=Strict'),
      422,
      /unknown field \\"spec\.foo\\"/,
    ],
    [
      'a string instead of a number',
      () => patch(MERGE, { spec: { replicas: 'x' } }),
      422,
      /ScaleSpec\.spec\.replicas of type int32/,
    ],
    ['an invalid patch', () => patch(MERGE, '[1]'), 400, /cannot unmarshal array into Go value/],
    [
      'a failed test operation of a JSON patch',
      () => patch(JSON_PATCH, [{ op: 'test', path: '/spec/replicas', value: 9 }]),
      422,
      /the server rejected our request due to an error in our request/,
    ],
    [
      'apply without a manager',
      () => apply(scale(1), ''),
      422,
      /fieldManager: Required value: is required for apply patch/,
    ],
    [
      'apply of another kind',
      () => apply({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } }, '?fieldManager=a'),
      400,
      /invalid object type: apps\/v1, Kind=Deployment/,
    ],
    [
      'apply of unknown fields',
      () => apply({ ...scale(1), foo: 1 }, '?fieldManager=a'),
      500,
      /\.foo: field not declared in schema/,
    ],
    [
      'a missing workload',
      () => plane.request('PATCH', path.replace('web', 'none'), scale(1), { 'content-type': MERGE }),
      404,
      /deployments\.apps \\"none\\" not found/,
    ],
  ]
  for (const [name, request, status, text] of refusals) {
    it(`rejects ${name}`, async () => {
      const answer = await request()
      assert.match(answer.text, text)
      assert.equal(answer.status, status)
      assert.deepEqual((await get()).spec, { replicas: 3 })
    })
  }

  it('warns of unknown fields', async () => {
    const answer = await put({ ...scale(3), foo: 1 })
    assert.equal(answer.headers.get('warning'), '299 - "unknown field \\"foo\\""')
  })
})

describe('deletion of a Job', () => {
  it('warns that its pods stay, unless the request has a propagation policy', async () => {
    await using plane = await startControlPlane()
    const path = '/apis/batch/v1/namespaces/default/jobs'
    const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } }
    await plane.request('POST', path, {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'j' },
      spec: { template },
    })
    const warning = async (query: string, name = '/j'): Promise<string | null> =>
      (await plane.request('DELETE', `${path}${name}?dryRun=All${query}`)).headers.get('warning')
    const expected =
      '299 - "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"'
    assert.equal(await warning(''), expected)
    assert.equal(await warning('', ''), expected)
    for (const query of ['&propagationPolicy=Background', '&propagationPolicy=Orphan', '&orphanDependents=true']) {
      assert.equal(await warning(query), null)
    }
  })
})
