/** Tests DELETE over HTTP: responses, preconditions, finalizers, grace periods and collections. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Got, type Json, openEnvelope, PATCHES, PROTOBUF, refused, startWire, TABLE, type Wire } from './server.ts'

let wire: Wire
let ns: string
let maps: string
let pods: string
let node: string
before(async () => {
  wire = await startWire()
  ns = await wire.namespace()
  maps = `/api/v1/namespaces/${ns}/configmaps`
  pods = `/api/v1/namespaces/${ns}/pods`
  node = `${ns}-node`
  await wire.must('POST', '/api/v1/nodes', { metadata: { name: node } })
})
after(async () => {
  await wire.must('DELETE', `/api/v1/nodes/${node}`)
  await wire.stop()
})

const make = (name: string, more: object = {}): Promise<Json> =>
  wire.must('POST', maps, { metadata: { name, ...more } })
const merge = (path: string, body: unknown): Promise<Got> =>
  wire.request('PATCH', path, { body, headers: PATCHES.merge })
const remove = (path: string, body?: unknown): Promise<Got> => wire.request('DELETE', path, { body })
async function makePod(name: string, more: object = {}): Promise<Json> {
  const spec = { containers: [{ name: 'c', image: 'i' }], nodeName: node, ...more }
  return wire.must('POST', pods, { metadata: { name }, spec })
}
const DELETED = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' }

describe('deletion of an object', () => {
  it('responds with a Status without a code, or with the object', async () => {
    const { metadata } = await make('gone')
    const got = await remove(`${maps}/gone`)
    assert.equal(got.status, 200)
    assert.deepEqual(got.json(), { ...DELETED, details: { name: 'gone', kind: 'configmaps', uid: metadata.uid } })
    await refused(remove(`${maps}/gone`), 404, { reason: 'NotFound', message: 'configmaps "gone" not found' })
    const deployments = `/apis/apps/v1/namespaces/${ns}/deployments`
    const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
    const made = await wire.must('POST', deployments, {
      metadata: { name: 'd' },
      spec: { selector: { matchLabels: { a: 'b' } }, template },
    })
    assert.deepEqual((await remove(`${deployments}/d`)).json(), {
      ...DELETED,
      details: { name: 'd', group: 'apps', kind: 'deployments', uid: made.metadata.uid },
    })
    await wire.must('POST', `/api/v1/namespaces/${ns}/podtemplates`, { metadata: { name: 't' }, template })
    assert.equal((await remove(`/api/v1/namespaces/${ns}/podtemplates/t`)).json().kind, 'PodTemplate')
  })

  it('has separate error texts for preconditions of namespaces and definitions', async () => {
    const { metadata } = await wire.must('GET', `/api/v1/namespaces/${ns}`)
    await refused(remove(`/api/v1/namespaces/${ns}`, { preconditions: { uid: 'other' } }), 409, {
      message: `Operation cannot be fulfilled on namespaces "${ns}": Precondition failed: UID in precondition: other, UID in object meta: ${metadata.uid}`,
      details: { name: ns, kind: 'namespaces' },
    })
  })

  it('checks the selector of a collection before it sends warnings', async () => {
    const jobs = `/apis/batch/v1/namespaces/${ns}/jobs`
    const got = await remove(`${jobs}?fieldSelector=spec.none%3Dx`)
    assert.deepEqual([got.status, got.all('warning')], [400, []])
    assert.equal((await remove(`${jobs}?dryRun=All`)).all('warning').length, 1)
  })

  it('responds with 202 only for orphanDependents=false while the object remains', async () => {
    await make('stays', { finalizers: ['x.io/f'] })
    const got = await remove(`${maps}/stays`, { orphanDependents: false })
    assert.deepEqual([got.status, got.json().kind], [202, 'ConfigMap'])
    await merge(`${maps}/stays`, { metadata: { finalizers: null } })
  })

  it('is delayed until the last finalizer is removed', async () => {
    await make('held', { finalizers: ['x.io/f'] })
    const marked = (await remove(`${maps}/held`)).json()
    assert.equal(marked.metadata.deletionGracePeriodSeconds, 0)
    assert.match(marked.metadata.deletionTimestamp, /Z$/)
    const again = (await remove(`${maps}/held`)).json()
    assert.equal(again.metadata.resourceVersion, marked.metadata.resourceVersion)
    await refused(merge(`${maps}/held`, { metadata: { finalizers: ['x.io/f', 'y.io/f'] } }), 422, {
      reason: 'Invalid',
      message:
        'ConfigMap "held" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"y.io/f"}',
    })
    const last = await merge(`${maps}/held`, { metadata: { finalizers: null } })
    assert.equal(last.status, 200)
    assert.equal(last.json().metadata.resourceVersion, marked.metadata.resourceVersion)
    assert.equal((await wire.request('GET', `${maps}/held`)).status, 404)
  })

  it('adds finalizers for propagation policies', async () => {
    for (const [policy, finalizer] of [
      ['Foreground', 'foregroundDeletion'],
      ['Orphan', 'orphan'],
    ] as const) {
      await make(finalizer.toLowerCase())
      const path = `${maps}/${finalizer.toLowerCase()}`
      const { metadata } = (await remove(path, { propagationPolicy: policy })).json()
      assert.deepEqual(metadata.finalizers, [finalizer])
      assert.ok(metadata.deletionTimestamp)
      await merge(path, { metadata: { finalizers: null } })
    }
  })

  it('gives a bound pod its grace period', async () => {
    const made = await makePod('bound')
    const first = (await remove(`${pods}/bound`)).json()
    assert.equal(first.metadata.deletionGracePeriodSeconds, 30)
    assert.equal(first.metadata.generation, made.metadata.generation + 1)
    const ends = Date.parse(first.metadata.deletionTimestamp)
    const longer = (await remove(`${pods}/bound`, { gracePeriodSeconds: 600 })).json()
    assert.equal(longer.metadata.deletionGracePeriodSeconds, 30)
    const shorter = (await remove(`${pods}/bound`, { gracePeriodSeconds: 5 })).json()
    assert.equal(shorter.metadata.deletionGracePeriodSeconds, 5)
    assert.ok(Date.parse(shorter.metadata.deletionTimestamp) < ends)
    const negative = (await remove(`${pods}/bound`, { gracePeriodSeconds: -3 })).json()
    assert.equal(negative.metadata.deletionGracePeriodSeconds, 1)
    const gone = await remove(`${pods}/bound`, { gracePeriodSeconds: 0 })
    assert.deepEqual([gone.status, gone.json().kind], [200, 'Pod'])
    assert.equal((await wire.request('GET', `${pods}/bound`)).status, 404)
  })

  it('removes an unbound or terminated pod at once', async () => {
    await makePod('free', { nodeName: undefined })
    assert.equal((await remove(`${pods}/free`)).json().kind, 'Pod')
    assert.equal((await wire.request('GET', `${pods}/free`)).status, 404)
    for (const phase of ['Succeeded', 'Failed']) {
      const name = phase.toLowerCase()
      await makePod(name)
      await merge(`${pods}/${name}/status`, { status: { phase } })
      assert.equal((await remove(`${pods}/${name}`)).json().kind, 'Pod')
      assert.equal((await wire.request('GET', `${pods}/${name}`)).status, 404)
    }
  })

  it('removes a pod that ended while terminating by its kubelet or with grace period 0', async () => {
    await makePod('ended')
    await remove(`${pods}/ended`)
    await merge(`${pods}/ended/status`, { status: { phase: 'Failed' } })
    const again = await remove(`${pods}/ended`)
    assert.deepEqual([again.status, again.json().metadata.deletionGracePeriodSeconds], [200, 30])
    assert.equal((await wire.request('GET', `${pods}/ended`)).status, 200)
    await remove(`${pods}/ended`, { gracePeriodSeconds: 0 })
    assert.equal((await wire.request('GET', `${pods}/ended`)).status, 404)
  })

  it('sets deletionTimestamp of a pod that is removed at once', async () => {
    const { metadata } = await makePod('seen', { nodeName: undefined })
    const query = `fieldSelector=metadata.name%3Dseen&watch=true&resourceVersion=${metadata.resourceVersion}`
    const watched = wire.watch(`${pods}?${query}`, 2)
    const { metadata: last } = (await remove(`${pods}/seen`)).json()
    assert.deepEqual([last.deletionGracePeriodSeconds, last.generation], [0, metadata.generation + 1])
    const events = await watched
    assert.deepEqual(
      events.map(({ type, object }) => [type, object.metadata.deletionTimestamp]),
      [
        ['MODIFIED', last.deletionTimestamp],
        ['DELETED', last.deletionTimestamp],
      ],
    )
  })

  it('counts a shorter grace period from the first DELETE', async () => {
    await makePod('hurry')
    const { metadata } = (await remove(`${pods}/hurry`)).json()
    const began = Date.parse(metadata.deletionTimestamp) - 30_000
    const hurried = (await remove(`${pods}/hurry`, { gracePeriodSeconds: 10 })).json()
    assert.equal(Date.parse(hurried.metadata.deletionTimestamp), began + 10_000)
    await remove(`${pods}/hurry`, { gracePeriodSeconds: 0 })
  })

  it('deletes the Endpoints of a Service', async () => {
    const core = `/api/v1/namespaces/${ns}`
    await wire.must('POST', `${core}/services`, { metadata: { name: 'svc' }, spec: { ports: [{ port: 80 }] } })
    await wire.must('POST', `${core}/endpoints`, { metadata: { name: 'svc' } })
    await wire.must('DELETE', `${core}/services/svc?dryRun=All`)
    assert.equal((await wire.request('GET', `${core}/endpoints/svc`)).status, 200)
    await wire.must('DELETE', `${core}/services/svc`)
    assert.equal((await wire.request('GET', `${core}/endpoints/svc`)).status, 404)
  })

  it('validates preconditions and options', async () => {
    const { metadata } = await make('pre')
    await refused(remove(`${maps}/pre`, { preconditions: { uid: 'zz' } }), 409, {
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on ConfigMap "pre": the UID in the precondition (zz) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
      details: { name: 'pre', kind: 'ConfigMap' },
    })
    await refused(remove(`${maps}/pre`, { preconditions: { resourceVersion: '1' } }), 409, {
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on ConfigMap "pre": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    })
    await refused(remove(`${maps}/pre`, { propagationPolicy: 'Nope' }), 422, {
      reason: 'Invalid',
      message: /^DeleteOptions\.meta\.k8s\.io "" is invalid: propagationPolicy: /,
    })
  })
})

describe('deletion of collections and namespaces', () => {
  it('allows either a policy or orphanDependents, from body or query', async () => {
    await make('options')
    await refused(remove(`${maps}/options`, { propagationPolicy: 'Orphan', orphanDependents: true }), 422, {
      reason: 'Invalid',
      message:
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
    })
    const { metadata } = (await remove(`${maps}/options?propagationPolicy=Foreground`)).json()
    assert.deepEqual(metadata.finalizers, ['foregroundDeletion'])
    await merge(`${maps}/options`, { metadata: { finalizers: null } })
  })

  it('responds with 400 to options that cannot be decoded', async () => {
    await make('unread')
    await refused(remove(`${maps}/unread`, '{'), 400, {
      reason: 'BadRequest',
      message: "couldn't get version/kind; json parse error: unexpected end of JSON input",
    })
    await refused(remove(`${maps}/unread`, { gracePeriodSeconds: 'x' }), 400, {
      message: 'json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64',
    })
  })

  it('removes the selected objects, and returns them', async () => {
    for (const name of ['m1', 'm2', 'm3']) await make(name, { labels: { l: name === 'm3' ? 'keep' : 'drop' } })
    const gone = (await remove(`${maps}?labelSelector=l%3Ddrop`)).json()
    assert.equal(gone.kind, 'ConfigMapList')
    assert.deepEqual(
      gone.items.map(({ metadata }: Json) => metadata.name),
      ['m1', 'm2'],
    )
    const left = (await wire.must('GET', `${maps}?labelSelector=l`)).items
    assert.deepEqual(
      left.map(({ metadata }: Json) => metadata.name),
      ['m3'],
    )
    await refused(remove('/api/v1/namespaces'), 405, {
      reason: 'MethodNotAllowed',
      message: 'the server does not allow this method on the requested resource',
      details: {},
    })
  })

  it('responds with the list of deleted objects, in the requested format', async () => {
    const kindOf = (got: Got): string => {
      if (got.headers['content-type'] === PROTOBUF) return `protobuf ${openEnvelope(got.bytes).kind}`
      if (got.headers['content-type'] === 'application/yaml') return `yaml ${/^kind: (\w+)$/m.exec(got.text)?.[1]}`
      return `json ${got.json().kind} ${(got.json().items ?? got.json().rows).length}`
    }
    const partial = ';as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
    for (const [accept, expected] of [
      ['application/json', 'json ConfigMapList 1'],
      ['application/json;pretty=1', 'json ConfigMapList 1'],
      ['application/yaml', 'yaml ConfigMapList'],
      // As client-go asks.
      [`${PROTOBUF},application/json`, 'protobuf ConfigMapList'],
      [TABLE, 'json Table 1'],
      [`application/json${partial}`, 'json PartialObjectMetadataList 1'],
      [`${PROTOBUF}${partial},application/json${partial},application/json`, 'protobuf PartialObjectMetadataList'],
    ] as const) {
      await make('many', { labels: { deleted: 'together' } })
      const got = await wire.request('DELETE', `${maps}?labelSelector=deleted%3Dtogether`, { headers: { accept } })
      assert.deepEqual([got.status, kindOf(got)], [200, expected], accept)
      assert.equal((await wire.request('GET', `${maps}/many`)).status, 404, accept)
    }
  })

  it('responds with 406 after the deletion if the media type is unacceptable', async () => {
    await make('many', { labels: { deleted: 'together' } })
    const headers = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' }
    const message = 'you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)'
    await refused(wire.request('DELETE', `${maps}?labelSelector=deleted%3Dtogether`, { headers }), 406, { message })
    assert.equal((await wire.request('GET', `${maps}/many`)).status, 404)
  })

  it('delays a namespace until its finalizer is removed, and refuses some namespaces', async () => {
    const name = await wire.namespace()
    const path = `/api/v1/namespaces/${name}`
    const ending = (await remove(path)).json()
    assert.deepEqual(
      [ending.kind, ending.status.phase, ending.spec.finalizers],
      ['Namespace', 'Terminating', ['kubernetes']],
    )
    assert.ok(ending.metadata.deletionTimestamp && !('deletionGracePeriodSeconds' in ending.metadata))
    await wire.must('PUT', `${path}/finalize`, { ...ending, spec: { finalizers: [] } })
    assert.equal((await wire.request('GET', path)).status, 404)
    for (const kept of ['default', 'kube-system', 'kube-public']) {
      await refused(remove(`/api/v1/namespaces/${kept}`), 403, {
        reason: 'Forbidden',
        message: `namespaces "${kept}" is forbidden: this namespace may not be deleted`,
      })
    }
  })
})
