/** Tests unusual patches: repeated and unknown fields, wrong types, versions, uids and owners. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Got, type Json, PATCHES, refused, startWire, type Wire } from './server.ts'

let wire: Wire
let ns: string
let deployments: string
let maps: string
before(async () => {
  wire = await startWire()
  ns = await wire.namespace()
  deployments = `/apis/apps/v1/namespaces/${ns}/deployments`
  maps = `/api/v1/namespaces/${ns}/configmaps`
})
after(() => wire.stop())

const patch = (type: keyof typeof PATCHES, path: string, body: unknown): Promise<Got> =>
  wire.request('PATCH', path, { body, headers: PATCHES[type] })
const warningsOf = (got: Got): string[] =>
  got.all('warning').map((text) => text.slice('299 - "'.length, -1).replaceAll('\\', ''))
const deployment = (name: string): Json => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: {
    selector: { matchLabels: { a: 'b' } },
    template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
})

const MERGE = `{"spec": {"unknown1": "1", "twice": "1", "twice": "2", "paused": true, "paused": false,
  "template": {"spec": {"containers": [{"name": "c", "image": "i", "nested": "1",
    "imagePullPolicy": "Always", "imagePullPolicy": "Never"}]}}}}`
const OFFENCES = [
  'duplicate field "spec.twice"',
  'duplicate field "spec.paused"',
  'duplicate field "spec.template.spec.containers[0].imagePullPolicy"',
  'unknown field "spec.template.spec.containers[0].nested"',
  'unknown field "spec.twice"',
  'unknown field "spec.unknown1"',
]
const OPERATIONS = `[
  {"op": "add", "path": "/spec/unknown1", "value": "1", "foo": "bar"},
  {"op": "add", "path": "/spec/unknown2", "path": "/spec/unknown3", "value": "1"},
  {"op": "add", "path": "/spec/template/spec/containers/0/nested", "value": "1"},
  {"op": "replace", "path": "/spec/paused", "value": true, "value": false}]`
const OF_OPERATIONS = [
  'json patch unknown field "[0].foo"',
  'json patch duplicate field "[1].path"',
  'json patch duplicate field "[3].value"',
  'unknown field "spec.template.spec.containers[0].nested"',
  'unknown field "spec.unknown1"',
  'unknown field "spec.unknown3"',
]

describe('repeated and unknown fields in a patch', () => {
  for (const [type, body, offences] of [
    ['merge', MERGE, OFFENCES],
    ['strategic', MERGE, OFFENCES],
    ['json', OPERATIONS, OF_OPERATIONS],
  ] as const) {
    it(`cause warnings with Warn, errors with Strict and nothing with Ignore: ${type}`, async () => {
      const name = `odd-${type}`
      await wire.must('POST', deployments, deployment(name))
      const strict = (await patch(type, `${deployments}/${name}?fieldValidation=Strict`, body)).json()
      assert.equal(strict.code, 422)
      const { message }: { message: string } = strict
      assert.ok(message.endsWith(`: strict decoding error: ${offences.join(', ')}`), message)
      for (const query of ['', '?fieldValidation=Warn']) {
        assert.deepEqual(warningsOf(await patch(type, `${deployments}/${name}${query}`, body)), offences)
      }
      assert.deepEqual(warningsOf(await patch(type, `${deployments}/${name}?fieldValidation=Ignore`, body)), [])
    })
  }

  it('are reported with their line in an apply', async () => {
    const body = `{\n\t"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "doubled"},\n\t"data": {"a": "1",\n\t\t"a": "2"}\n}`
    const path = `${maps}/doubled?fieldManager=m`
    await refused(patch('apply', `${path}&fieldValidation=Strict`, body), 400, {
      reason: 'BadRequest',
      message:
        'error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 4: key "a" already set in map',
    })
    const warned = await patch('apply', path, body)
    assert.deepEqual(warningsOf(warned), ['line 4: key "a" already set in map'])
    assert.deepEqual(warned.json().data, { a: '2' })
    assert.deepEqual(warningsOf(await patch('apply', `${path}&fieldValidation=Ignore`, body)), [])
  })

  it('cause errors that name the expected type of a JSON patch operation', async () => {
    await wire.must('POST', maps, { metadata: { name: 'operations' } })
    const why = (text: string): string => `error decoding patch: json: cannot unmarshal ${text}`
    for (const [body, message] of [
      ['[5]', why('number into Go value of type handlers.jsonPatchOp')],
      ['[{"op": 1}]', why('number into Go struct field jsonPatchOp.op of type string')],
      ['{}', why('object into Go value of type []handlers.jsonPatchOp')],
    ] as const) {
      await refused(patch('json', `${maps}/operations`, body), 400, { message })
    }
    assert.equal((await patch('json', `${maps}/operations`, 'null')).status, 200)
    const ignoring = `${maps}/operations?fieldValidation=Ignore`
    for (const [type, body, message] of [
      ['json', '[5]', 'json: cannot unmarshal number into Go value of type jsonpatch.Operation'],
      ['json', '{}', 'json: cannot unmarshal object into Go value of type jsonpatch.Patch'],
      ['merge', '{', 'Invalid JSON Patch'],
      ['strategic', '{', 'unexpected end of JSON input'],
    ] as const) {
      await refused(patch(type, ignoring, body), 400, { message })
    }
    await refused(patch('merge', `${maps}/nobody`, '{'), 404, { message: 'configmaps "nobody" not found' })
  })
})

describe('a strategic merge patch of the wrong type', () => {
  it("is rejected with upstream's conversion error, or wraps around", async () => {
    await wire.must('POST', deployments, deployment('typed'))
    const tooMany = '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":99999999999999999999}}}}'
    for (const [body, shown, why] of [
      [
        { spec: { selector: { matchLabels: 'x' } } },
        'map[spec:map[selector:map[matchLabels:x]]]',
        'cannot restore map from string',
      ],
      [{ metadata: { finalizers: {} } }, 'map[metadata:map[finalizers:map[]]]', 'cannot restore slice from map'],
      [{ spec: 'x' }, 'map[spec:x]', 'cannot restore struct from: string'],
      [{ spec: [] }, 'map[spec:[]]', 'cannot restore struct from: slice'],
      [{ metadata: { labels: { a: 1 } } }, 'map[metadata:map[labels:map[a:1]]]', 'cannot convert int64 to string'],
      [{ spec: { replicas: 1.5 } }, 'map[spec:map[replicas:1.5]]', 'cannot convert float64 to int32'],
      [{ spec: { replicas: 'x' } }, 'map[spec:map[replicas:x]]', 'unrecognized type: int32'],
      [{ metadata: { generation: true } }, 'map[metadata:map[generation:true]]', 'unrecognized type: int64'],
      [{ spec: { paused: 1 } }, 'map[spec:map[paused:1]]', 'unrecognized type: bool'],
      [{ metadata: { name: true } }, 'map[metadata:map[name:true]]', 'unrecognized type: string'],
      [
        tooMany,
        'map[spec:map[strategy:map[rollingUpdate:map[maxSurge:1e+20]]]]',
        'json: cannot unmarshal number 100000000000000000000 into Go value of type int32',
      ],
    ] as const) {
      await refused(patch('strategic', `${deployments}/typed`, body), 422, {
        message: ` "" is invalid: patch: Invalid value: "${shown}": ${why}`,
      })
    }
    const wrapped = await patch('strategic', `${deployments}/typed`, { spec: { replicas: 4294967299 } })
    assert.equal(wrapped.json().spec.replicas, 3, wrapped.text)
    const fraction = await patch('strategic', `${deployments}/typed`, '{"spec":{"replicas":2.0}}')
    assert.equal(fraction.json().spec.replicas, 2, fraction.text)
  })
})

describe('resourceVersion "0" in a write', () => {
  it('counts as absent', async () => {
    await wire.must('POST', deployments, deployment('zero'))
    const zero = { ...deployment('zero'), metadata: { name: 'zero', resourceVersion: '0' } }
    for (const path of [`${deployments}/zero`, `${deployments}/zero/status`]) await wire.must('PUT', path, zero)
    for (const type of ['merge', 'strategic'] as const) {
      const got = await patch(type, `${deployments}/zero`, { metadata: { resourceVersion: '0' } })
      assert.equal(got.status, 200, got.text)
    }
    const applied = await patch('apply', `${deployments}/zero?fieldManager=m&force=true`, zero)
    assert.equal(applied.status, 200, applied.text)
  })

  it('is rejected if a version is required', async () => {
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${ns}/leases`
    await wire.must('POST', leases, { metadata: { name: 'zero' } })
    const message =
      'leases.coordination.k8s.io "zero" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update'
    const body = { metadata: { name: 'zero', resourceVersion: '0' } }
    await refused(wire.request('PUT', `${leases}/zero`, { body }), 422, { message })
    for (const resourceVersion of ['0', null]) {
      await refused(patch('merge', `${leases}/zero`, { metadata: { resourceVersion } }), 422, { message })
    }
  })
})

describe('server-side apply that creates an object', () => {
  const config = (name: string, metadata: object): Json => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, ...metadata },
  })

  it('responds with 409 if it has a UID, because no object has that UID', async () => {
    await refused(patch('apply', `${maps}/ghost?fieldManager=m`, config('ghost', { uid: 'abc' })), 409, {
      reason: 'Conflict',
      message:
        'Operation cannot be fulfilled on configmaps "ghost": uid mismatch: the provided object specified uid abc, and no existing object was found',
    })
  })

  it('ignores a resourceVersion', async () => {
    const created = await patch('apply', `${maps}/fresh?fieldManager=m`, config('fresh', { resourceVersion: '5' }))
    assert.equal(created.status, 201, created.text)
  })
})

describe('owner references repeated in a patch', () => {
  it('are stored once, with a warning', async () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: 'u1' }
    await wire.must('POST', maps, { metadata: { name: 'owned', ownerReferences: [owner] } })
    const got = await patch('json', `${maps}/owned`, [{ op: 'add', path: '/metadata/ownerReferences/-', value: owner }])
    assert.deepEqual(got.json().metadata.ownerReferences, [owner])
    assert.deepEqual(warningsOf(got), [
      '.metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u1',
    ])
  })
})
