/** Tests encoding and content negotiation over HTTP: protobuf, JSON, YAML and the Accept header. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import {
  envelope,
  field,
  fieldsOf,
  type Got,
  message,
  openEnvelope,
  PATCHES,
  PROTOBUF,
  refused,
  startWire,
  TABLE,
  type Wire,
} from './server.ts'

let wire: Wire
let ns: string
let maps: string
before(async () => {
  wire = await startWire()
  ns = await wire.namespace()
  maps = `/api/v1/namespaces/${ns}/configmaps`
  await wire.must('POST', maps, { metadata: { name: 'a' }, data: { k: 'v' } })
})
after(() => wire.stop())

const POD_SPEC = { containers: [{ name: 'c', image: 'i' }] }
const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Got> =>
  wire.request('POST', path, { body, headers })
const get = (path: string, accept?: string): Promise<Got> =>
  wire.request('GET', path, accept === undefined ? {} : { headers: { accept } })

/** Metadata as Go clients write it: every field that is no pointer, empty or not. */
const goMetadata = (name: string): Buffer =>
  message(
    field(1, name),
    field(2, ''),
    field(3, ''),
    field(4, ''),
    field(5, ''),
    field(6, ''),
    field(7, 0),
    field(8, ''),
  )
const entry = (key: string, value: string): Buffer => message(field(1, key), field(2, value))

describe('protobuf bodies', () => {
  it('omit zero in value fields, and contain it in pointer fields', async () => {
    const podSpec = message(
      field(2, message(field(1, 'c'), field(2, 'i'), field(5, ''), field(14, ''), field(17, false))),
      field(3, ''),
      field(6, ''),
      field(8, ''),
      field(9, ''),
      field(10, ''),
      field(11, false),
      field(12, false),
      field(21, false),
    )
    const template = message(field(1, message(goMetadata(''), field(11, entry('app', 'x')))), field(2, podSpec))
    const spec = message(
      field(1, 0),
      field(2, message(field(1, entry('app', 'x')))),
      field(3, template),
      field(4, message(field(1, ''))),
      field(5, 0),
      field(7, false),
    )
    const status = message(field(1, 0), field(2, 0), field(3, 0), field(4, 0), field(5, 0), field(7, 0))
    const raw = message(field(1, goMetadata('pb')), field(2, spec), field(3, status))
    const path = `/apis/apps/v1/namespaces/${ns}/deployments`
    const made = await post(path, envelope('apps/v1', 'Deployment', raw), { 'content-type': PROTOBUF })
    assert.equal(made.status, 201, made.text)
    const { metadata, spec: got } = (await get(`${path}/pb`)).json()
    assert.equal(got.replicas, 0)
    assert.equal(got.template.spec.automountServiceAccountToken, false)
    assert.equal(got.template.spec.restartPolicy, 'Always')
    for (const name of ['generateName', 'selfLink']) assert.ok(!(name in metadata), name)
    for (const name of ['minReadySeconds', 'paused']) assert.ok(!(name in got), name)
    for (const name of ['hostNetwork', 'hostPID', 'nodeName']) assert.ok(!(name in got.template.spec), name)
    assert.ok(!('stdin' in got.template.spec.containers[0]))

    const answer = openEnvelope((await get(`${path}/pb`, PROTOBUF)).bytes)
    assert.equal(answer.kind, 'Deployment')
    const answered = fieldsOf(fieldsOf(answer.raw).get(2)?.[0] as Buffer)
    assert.deepEqual(answered.get(1), [0])
  })

  it('contain nested messages for fields that JSON inlines', async () => {
    const reference = (name: string, key: string): Buffer => message(field(1, message(field(1, name))), field(2, key))
    const probe = message(
      field(1, message(field(2, message(field(1, '/ok'), field(2, message(field(1, 0), field(2, 80))))))),
    )
    const env = message(
      field(1, 'E'),
      field(3, message(field(3, reference('cm', 'k')), field(4, reference('sec', 's')))),
    )
    const onlyMap = message(field(1, 'E'), field(3, message(field(3, reference('cm', 'k')))))
    assert.notDeepEqual(env, onlyMap)
    const volume = message(field(1, 'v'), field(2, message(field(2, ''))))
    const container = message(
      field(1, 'c'),
      field(2, 'i'),
      field(7, onlyMap),
      field(10, probe),
      field(19, message(field(2, message(field(1, message(field(1, 'cm'))))))),
    )
    const raw = message(field(1, goMetadata('nested')), field(2, message(field(1, volume), field(2, container))))
    const made = await post(`/api/v1/namespaces/${ns}/pods`, envelope('v1', 'Pod', raw), { 'content-type': PROTOBUF })
    assert.equal(made.status, 201, made.text)
    const { spec } = (await get(`/api/v1/namespaces/${ns}/pods/nested`)).json()
    assert.deepEqual(spec.volumes[0], { name: 'v', emptyDir: {} })
    assert.deepEqual(spec.containers[0].env, [{ name: 'E', valueFrom: { configMapKeyRef: { name: 'cm', key: 'k' } } }])
    assert.deepEqual(spec.containers[0].envFrom, [{ configMapRef: { name: 'cm' } }])
    assert.deepEqual(spec.containers[0].livenessProbe.httpGet, { path: '/ok', port: 80, scheme: 'HTTP' })
  })

  it('have some field names other than in JSON: Webhooks, nested Rule, aPIGroup', async () => {
    const rule = message(field(1, ''), field(2, 'v1'), field(3, 'pods'))
    const webhook = message(
      field(1, 'w.example.com'),
      field(2, message(field(3, 'https://127.0.0.1/x'))),
      field(3, message(field(1, 'CREATE'), field(2, rule))),
      field(4, 'Ignore'),
      field(5, message()),
      field(6, 'None'),
      field(8, 'v1'),
      field(10, message()),
    )
    const name = `${ns}-hook`
    const raw = message(field(1, goMetadata(name)), field(2, webhook))
    const hooks = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
    const made = await post(
      `${hooks}?dryRun=All`,
      envelope('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration', raw),
      { 'content-type': PROTOBUF, accept: 'application/json' },
    )
    assert.equal(made.status, 201, made.text)
    const [got] = made.json().webhooks
    assert.deepEqual(got.rules, [
      { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'], scope: '*' },
    ])

    const binding = message(
      field(1, goMetadata('pb-binding')),
      field(2, message(field(1, 'User'), field(2, 'rbac.authorization.k8s.io'), field(3, 'u'), field(4, ''))),
      field(3, message(field(1, 'rbac.authorization.k8s.io'), field(2, 'ClusterRole'), field(3, 'view'))),
    )
    const bound = await post(
      `/apis/rbac.authorization.k8s.io/v1/namespaces/${ns}/rolebindings`,
      envelope('rbac.authorization.k8s.io/v1', 'RoleBinding', binding),
      { 'content-type': PROTOBUF, accept: 'application/json' },
    )
    assert.equal(bound.status, 201, bound.text)
    assert.deepEqual(bound.json().subjects, [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'u' }])
  })
})

describe('JSON bodies', () => {
  it('contain empty fields without omitempty', async () => {
    const role = await post(`/apis/rbac.authorization.k8s.io/v1/namespaces/${ns}/roles`, { metadata: { name: 'r' } })
    assert.match(role.text, /"rules":null\}\n$/)
    const event = await post(`/api/v1/namespaces/${ns}/events`, {
      metadata: { name: 'e' },
      involvedObject: { namespace: ns, kind: 'Pod', name: 'p' },
      reason: 'r',
    })
    assert.match(
      event.text,
      /"source":\{\},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,"reportingComponent":"","reportingInstance":""\}\n$/,
    )
    const name = `${ns}-node`
    const node = await post('/api/v1/nodes', { metadata: { name } })
    assert.match(node.text, /"daemonEndpoints":\{"kubeletEndpoint":\{"Port":0\}\}/)
    await wire.must('DELETE', `/api/v1/nodes/${name}`)
    const budget = await post(`/apis/policy/v1/namespaces/${ns}/poddisruptionbudgets`, { metadata: { name: 'b' } })
    assert.match(
      budget.text,
      /"status":\{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0\}\}\n$/,
    )
    const pod = await post(`/api/v1/namespaces/${ns}/pods`, { metadata: { name: 'empty-fields' }, spec: POD_SPEC })
    assert.match(pod.text, /"resources":\{\}/)
    const service = await post(`/api/v1/namespaces/${ns}/services`, {
      metadata: { name: 's' },
      spec: { ports: [{ port: 80 }] },
    })
    assert.match(service.text, /"status":\{"loadBalancer":\{\}\}\}\n$/)
  })

  it('omit an empty creationTimestamp', async () => {
    const template = { metadata: { labels: { a: 'b' } }, spec: POD_SPEC }
    const spec = { selector: { matchLabels: { a: 'b' } }, template }
    const made = await post(`/apis/apps/v1/namespaces/${ns}/deployments`, { metadata: { name: 'stamps' }, spec })
    assert.match(made.text, /"template":\{"metadata":\{"labels":\{"a":"b"\}\},"spec":/)
  })

  it('contain a kind for objects but not for list items, and [] for an empty list', async () => {
    assert.match(
      (await get(maps)).text,
      /^\{"kind":"ConfigMapList","apiVersion":"v1","metadata":\{"resourceVersion":"\d+"\},"items":\[\{"metadata":\{"name":"/,
    )
    assert.match((await get(`${maps}/a`)).text, /^\{"kind":"ConfigMap","apiVersion":"v1","metadata":\{"name":"a"/)
    const partial = await get(maps, 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1')
    assert.match(
      partial.text,
      /^\{"kind":"PartialObjectMetadataList","apiVersion":"meta\.k8s\.io\/v1","metadata":\{"resourceVersion":"\d+"\},"items":\[\{"kind":"PartialObjectMetadata","apiVersion":"meta\.k8s\.io\/v1","metadata":\{/,
    )
    assert.match((await get(`${maps}?labelSelector=no%3Done`)).text, /"items":\[\]\}\n$/)
  })

  it('of built-in kinds need no kind and apiVersion on POST, PUT and DELETE', async () => {
    await wire.must('POST', maps, { metadata: { name: 'bare' } })
    await wire.must('PUT', `${maps}/bare`, { metadata: { name: 'bare' }, data: { a: 'b' } })
    await wire.must('DELETE', `${maps}/bare`, { propagationPolicy: 'Background' })
    for (const [body, kind] of [
      ['{"metadata":{"name":"bare"}}', ''],
      ['{"kind":"ConfigMap","metadata":{"name":"bare"}}', 'ConfigMap'],
    ] as const) {
      await refused(wire.request('PATCH', `${maps}/bare?fieldManager=m`, { body, headers: PATCHES.apply }), 400, {
        reason: 'BadRequest',
        message: `invalid object type: /, Kind=${kind}`,
      })
    }
  })

  it('are rejected with another kind or a removed version', async () => {
    await refused(post(maps, { kind: 'Secret', apiVersion: 'v1', metadata: { name: 'x' } }), 400, {
      reason: 'BadRequest',
      message:
        'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion',
    })
    await refused(
      post(`/apis/apps/v1/namespaces/${ns}/deployments`, {
        kind: 'Deployment',
        apiVersion: 'apps/v1beta1',
        metadata: { name: 'x' },
      }),
      400,
      {
        reason: 'BadRequest',
        message: 'the API version in the data (apps/v1beta1) does not match the expected API version (apps/v1)',
      },
    )
  })

  it('contain integers that are validated by their text', async () => {
    const path = `/apis/apps/v1/namespaces/${ns}/deployments?dryRun=All`
    const body = (spec: string): string =>
      `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"n"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}},${spec}}}`
    const wrong = 'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal'
    for (const [spec, text] of [
      ['"replicas":1.0', 'number 1.0 into Go struct field DeploymentSpec.spec.replicas of type int32'],
      ['"replicas":1e2', 'number 1e2 into Go struct field DeploymentSpec.spec.replicas of type int32'],
      ['"replicas":2147483648', 'number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32'],
      ['"replicas":"1"', 'string into Go struct field DeploymentSpec.spec.replicas of type int32'],
      [
        '"strategy":{"type":1}',
        'number into Go struct field DeploymentStrategy.spec.strategy.type of type v1.DeploymentStrategyType',
      ],
      [
        '"template":{"spec":{"containers":{}}}',
        'object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container',
      ],
      [
        '"template":{"spec":{"nodeSelector":[]}}',
        'array into Go struct field PodSpec.spec.template.spec.nodeSelector of type map[string]string',
      ],
      [
        '"template":{"spec":{"containers":[{"name":1}]}}',
        'number into Go struct field Container.spec.template.spec.containers.name of type string',
      ],
    ] as const) {
      await refused(post(path, body(spec)), 400, { reason: 'BadRequest', message: `${wrong} ${text}` })
    }
    await refused(post(path, '{"spec":1}'), 400, {
      message: `${wrong} number into Go struct field Deployment.spec of type v1.DeploymentSpec`,
    })
    const negative = (await post(path, body('"replicas":-0'))).json()
    assert.equal(negative.spec.replicas, 0)
    assert.equal((await post(path, body('"replicas":null'))).json().spec.replicas, 1)
    const nulls = await post(`${maps}?dryRun=All`, '{"metadata":{"name":"n"},"data":{"a":null}}')
    assert.deepEqual(nulls.json().data, { a: '' })
  })

  it('may have field names in any case, and keep surrogates, NUL and escapes in strings', async () => {
    const path = `${maps}?dryRun=All`
    const cased = await post(path, '{"metadata":{"Name":"x","name":"cased"},"Data":{"a":"b"}}')
    assert.equal(cased.json().metadata.name, 'cased')
    assert.ok(!('data' in cased.json()))
    const odd = await post(path, '{"metadata":{"name":"odd"},"data":{"a":"\\ud800x","n":"\\u0000","h":"<>&"}}')
    assert.equal(odd.json().data.a, '\uFFFDx')
    assert.equal(odd.json().data.n, '\u0000')
    assert.match(odd.text, /"h":"\\u003c\\u003e\\u0026"/)
    const invalid = Buffer.concat([
      Buffer.from('{"metadata":{"name":"utf"},"data":{"a":"'),
      Buffer.from([0xff]),
      Buffer.from('"}}'),
    ])
    assert.equal((await post(path, invalid)).json().data.a, '\uFFFD')
  })

  it('are rejected for too deep nesting, trailing text, byte order marks and leading zeros', async () => {
    const path = `${maps}?dryRun=All`
    const deep = `{"metadata":{"name":"deep"},"x":${'['.repeat(10_001)}${']'.repeat(10_001)}}`
    await refused(post(path, deep), 400, { reason: 'BadRequest', message: /exceeded max depth/ })
    for (const text of [
      '{"metadata":{"name":"x"}} x',
      '\uFEFF{"metadata":{"name":"x"}}',
      '{"metadata":{"name":"x","generation":01}}',
    ]) {
      await refused(post(path, text), 400, { reason: 'BadRequest' })
    }
  })

  it('may be YAML, of which only the first document is read and yes is a boolean', async () => {
    const yaml = { 'content-type': 'application/yaml' }
    const path = `${maps}?dryRun=All`
    const first = await post(path, 'metadata: {name: one}\n---\nmetadata: {name: two}\n', yaml)
    assert.equal(first.status, 201, first.text)
    assert.equal(first.json().metadata.name, 'one')
    await refused(post(path, 'metadata: {name: one}\ndata: {a: yes}\n', yaml), 400, {
      message:
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal bool into Go struct field ConfigMap.data of type string',
    })
  })

  it('may contain fields whose feature gate is off, even under Strict, which are dropped', async () => {
    const made = await post(`/apis/coordination.k8s.io/v1/namespaces/${ns}/leases?fieldValidation=Strict`, {
      metadata: { name: 'gated' },
      spec: { holderIdentity: 'h', strategy: 'OldestEmulationVersion', preferredHolder: 'p' },
    })
    assert.equal(made.status, 201, made.text)
    assert.deepEqual(made.json().spec, { holderIdentity: 'h' })
  })

  it('are indented for browsers and curl', async () => {
    for (const [query, agent] of [
      ['?pretty=true', 'x'],
      ['?pretty=1', 'x'],
      ['', 'curl/8'],
      ['', 'Wget/1'],
      ['', 'Mozilla/5.0 (x)'],
    ] as const) {
      const got = await wire.request('GET', `${maps}/a${query}`, { headers: { 'user-agent': agent } })
      assert.match(got.text, /^\{\n {2}"kind": "ConfigMap",\n/, `${query} ${agent}`)
    }
    for (const [query, agent] of [
      ['?pretty=false', 'curl/8'],
      ['?pretty=0', 'curl/8'],
      ['', 'kubectl/1'],
      ['', 'xcurl/1'],
    ] as const) {
      const got = await wire.request('GET', `${maps}/a${query}`, { headers: { 'user-agent': agent } })
      assert.match(got.text, /^\{"kind":"ConfigMap",.*\}\n$/, `${query} ${agent}`)
    }
  })
})

const REPRESENTATIONS = 'application/json, application/yaml, application/vnd.kubernetes.protobuf'

describe('content negotiation', () => {
  it('uses the first acceptable media type', async () => {
    for (const [accept, contentType] of [
      ['', 'application/json'],
      ['*/*', 'application/json'],
      ['text/html, application/yaml', 'application/yaml'],
      ['application/yaml, application/json', 'application/yaml'],
      [`${PROTOBUF}, application/json`, PROTOBUF],
      ['application/json;as=Table;v=v2;g=meta.k8s.io, application/yaml', 'application/yaml'],
      [`${TABLE},application/json`, 'application/json'],
    ] as const) {
      const got = await wire.request('GET', `${maps}/a`, accept === '' ? {} : { headers: { accept } })
      assert.deepEqual([got.status, got.headers['content-type']], [200, contentType], accept)
    }
    assert.match(
      (await get(`${maps}/a`, 'application/yaml')).text,
      /^apiVersion: v1\ndata:\n {2}k: v\nkind: ConfigMap\n/,
    )
  })

  it('responds with 406 in indented JSON if no media type is acceptable', async () => {
    for (const accept of ['text/html', 'application/cbor', 'image/png']) {
      const got = await get(`${maps}/a`, accept)
      assert.equal(got.status, 406, accept)
      assert.match(got.text, /^\{\n {2}"kind": "Status"/)
      assert.deepEqual(
        [got.json().reason, got.json().message, got.json().details],
        ['NotAcceptable', `406: Not Acceptable\n\nAvailable representations: ${REPRESENTATIONS}`, {}],
      )
    }
    // The router takes this for unknown, the encoder of the refusal does not.
    const any = await get(`${maps}/a`, 'application/*')
    assert.equal(any.status, 406)
    assert.match(any.text, /^\{"kind":"Status"/)
    for (const accept of [
      'application/json;as=Nothing;v=v1;g=meta.k8s.io',
      'application/json;as=Table;v=v7;g=meta.k8s.io',
    ]) {
      const got = await get(`${maps}/a`, accept)
      assert.equal(got.status, 406, accept)
      assert.deepEqual(
        [got.json().reason, got.json().message],
        ['NotAcceptable', `only the following media types are accepted: ${REPRESENTATIONS}`],
      )
    }
    const partial = (as: string): string => `application/json;as=${as};g=meta.k8s.io;v=v1`
    await refused(get(maps, partial('PartialObjectMetadata')), 406, {
      reason: 'NotAcceptable',
      message: 'you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)',
    })
    await refused(get(`${maps}/a`, partial('PartialObjectMetadataList')), 406, {
      reason: 'NotAcceptable',
      message: 'you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)',
    })
    const review = { spec: { resourceAttributes: { verb: 'get', resource: 'pods' } } }
    const table = await post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', review, { accept: TABLE })
    assert.equal(table.status, 406, table.text)
  })

  it('responds with 415 to an unknown Content-Type', async () => {
    const map = '{"metadata":{"name":"typed"}}'
    const path = `${maps}?dryRun=All`
    for (const type of ['application/json; charset=utf-8', 'application/json;charset=UTF-8']) {
      assert.equal((await post(path, map, { 'content-type': type })).status, 201, type)
    }
    assert.equal((await post(path, map, { 'content-type': '' })).status, 201)
    for (const [method, where] of [
      ['POST', path],
      ['PUT', `${maps}/a`],
    ] as const) {
      await refused(wire.request(method, where, { body: map, headers: { 'content-type': 'text/plain' } }), 415, {
        reason: 'UnsupportedMediaType',
        message: `the body of the request was in an unknown format - accepted media types include: ${REPRESENTATIONS}`,
      })
    }
    await refused(wire.request('PATCH', `${maps}/a`, { body: '{}', headers: { 'content-type': 'text/plain' } }), 415, {
      message: '415: Unsupported Media Type',
    })
  })

  it('encodes errors in the accepted media type, including those of filters', async () => {
    const missing = await get(`${maps}/none`, 'application/yaml')
    assert.equal(missing.status, 404)
    assert.match(missing.text, /^apiVersion: v1\ncode: 404\n/)
    assert.equal(openEnvelope((await get(`${maps}/none`, PROTOBUF)).bytes).kind, 'Status')
    for (const [ask, code] of [
      [{ as: 'jane', headers: { accept: PROTOBUF } }, 403],
      [{ headers: { accept: PROTOBUF, authorization: 'Bearer wrong' } }, 401],
    ] as const) {
      const got = await wire.request('GET', `${maps}/a`, ask)
      assert.deepEqual([got.status, got.headers['content-type']], [code, PROTOBUF])
      assert.equal(openEnvelope(got.bytes).kind, 'Status')
    }
    const yaml = await wire.request('GET', `${maps}/a`, { as: 'jane', headers: { accept: 'application/yaml' } })
    assert.match(yaml.text, /^apiVersion: v1\ncode: 403\n/)
  })

  it('indents an error for browsers, and for clients that accept only another media type', async () => {
    const curl = await wire.request('GET', `${maps}/none`, { headers: { 'user-agent': 'curl/8' } })
    assert.match(curl.text, /^\{\n {2}"kind": "Status"/)
    assert.match((await get(`${maps}/none?pretty=true`)).text, /^\{\n {2}"kind": "Status"/)
    assert.match((await get(`${maps}/none`, TABLE)).text, /^\{\n {2}"kind": "Status"/)
    assert.match((await get(`${maps}/none`, `${TABLE},application/json`)).text, /^\{"kind":"Status"/)
    assert.match((await get(`${maps}/none`, `${TABLE},application/yaml`)).text, /^apiVersion: v1\n/)
  })

  it('sends 404 in plain text for unknown groups and paths, and as a Status for unknown versions and resources', async () => {
    for (const unknown of ['/apis/nope.io/v1/things', '/foo', '/apis/nope.io', '/apis/nope.io/v1']) {
      const got = await get(unknown)
      assert.deepEqual(
        [got.status, got.text, got.headers['content-type']],
        [404, '404 page not found\n', 'text/plain; charset=utf-8'],
        unknown,
      )
    }
    for (const unknown of [
      '/api/v1/nopes',
      '/api/v2/pods',
      '/apis/apps/v7/deployments',
      '/apis/apps/v1/namespaces/x/nopes/y',
      '/apis/apps/v7',
      '/api/v2',
    ]) {
      await refused(get(unknown), 404, {
        reason: 'NotFound',
        message: 'the server could not find the requested resource',
        details: {},
      })
    }
  })
})
