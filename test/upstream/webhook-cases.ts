/** The cases of `webhooks.ts`: webhooks with their responses, and requests that call them. Data only. */
import type { ServerResponse } from 'node:http'

import type { Script, WebhookServer } from '../integration/webhooks/webhook-server.ts'

export type Json = Record<string, unknown>

export interface Ask {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: unknown
  readonly type?: 'merge' | 'apply' | 'json'
  /** The answer is not compared: it only prepares what follows. */
  readonly prepares?: boolean
}

export interface WebhookCase {
  readonly name: string
  readonly kind: 'mutating' | 'validating'
  readonly script?: Script
  /** Instead of a webhook for ConfigMaps with the label `case`. */
  readonly spec?: (hooks: WebhookServer) => Json
  /** It is about more than objects with its label, and has the servers for itself. */
  readonly isAlone?: boolean
  readonly asks: readonly Ask[]
}

const MAPS = '/api/v1/namespaces/default/configmaps'

function create(name: string): Ask {
  return { method: 'POST', path: MAPS, body: { metadata: { name, labels: { case: name } }, data: { a: '1' } } }
}

const REVIEW = { kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1' }

function responding(response: Json): Script {
  return ({ review }) => ({ ...REVIEW, response: { uid: (review['request'] as Json)['uid'], ...response } })
}

const validating = (name: string, script: Script, more: Partial<WebhookCase> = {}): WebhookCase => ({
  name,
  kind: 'validating',
  script,
  asks: [create(name)],
  ...more,
})

const base64 = (text: string): string => Buffer.from(text).toString('base64')

function patching(name: string, patch: unknown, more: Partial<WebhookCase> = {}): WebhookCase {
  const text = typeof patch === 'string' ? patch : JSON.stringify(patch)
  const script = responding({ allowed: true, patchType: 'JSONPatch', patch: base64(text) })
  const get: Ask = { method: 'GET', path: `${MAPS}/${name}` }
  return { name, kind: 'mutating', script, asks: [create(name), get], ...more }
}

const DENIALS: Readonly<Record<string, Json>> = {
  plain: {},
  message: { status: { message: 'no way' } },
  lines: { status: { message: 'a\nb "c" <d>' } },
  reason: { status: { reason: 'BecauseReason' } },
  known: { status: { reason: 'NotFound' } },
  whole: {
    status: {
      code: 409,
      reason: 'Conflict',
      message: 'm',
      metadata: { resourceVersion: '5' },
      details: { name: 'n', kind: 'k', causes: [{ reason: 'r', message: 'c', field: 'f' }] },
    },
  },
  low: { status: { code: 200, status: 'Success', message: 'm' } },
  retry: { status: { code: 429, details: { retryAfterSeconds: 7 } } },
  odd: { status: { status: 'Odd', message: 'm' } },
}

const BODIES: Readonly<Record<string, string>> = {
  text: 'not json',
  brace: '{not json',
  cut: '{"kind":"AdmissionReview"',
  list: '[]',
  null: 'null',
  empty: '{}',
  spaces: '  ',
  bare: '{"response":{}}',
  'kind-only': '{"kind":"AdmissionReview","response":{}}',
  'version-only': '{"apiVersion":"admission.k8s.io/v1","response":{}}',
  'odd-version': '{"kind":"AdmissionReview","apiVersion":"a/b/c"}',
  'other-kind': '{"kind":"Foo","apiVersion":"admission.k8s.io/v1"}',
  'other-version': '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2"}',
  beta: '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"}',
  pod: '{"kind":"Pod","apiVersion":"v1"}',
  status: '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m","code":403}',
  'wrong-type': '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":"yes"}}',
  'wrong-list': '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":[]}',
  'wrong-patch': '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","patch":"%%%"}}',
  html: '<html><body>hello</body></html>',
  yaml: 'kind: AdmissionReview\napiVersion: admission.k8s.io/v1\nresponse: {uid: u, allowed: true}\n',
}

const CODES: readonly (readonly [code: number, type: string, body: string])[] = [
  [201, 'application/json', '{}'],
  [204, '', ''],
  [304, 'text/plain', ''],
  [400, 'text/plain', 'bad'],
  [401, 'text/plain', 'who'],
  [403, 'text/plain', 'not you'],
  [403, 'application/json', '{"a":1}'],
  [404, 'text/plain; charset=utf-8', '404 page not found\n'],
  [405, 'text/plain', 'x'],
  [406, 'text/plain', 'x'],
  [408, 'text/plain', 'x'],
  [409, 'text/plain', 'x'],
  [413, 'text/plain', 'x'],
  [415, 'text/plain', 'x'],
  [418, '', 'x'],
  [422, 'text/plain', 'x'],
  [429, 'text/plain', 'x'],
  [500, 'text/plain', 'boom "text"\n'],
  [500, 'application/json', '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"so there","code":500}'],
  [500, 'application/json', '{"kind":"Status","apiVersion":"v1","message":"no status"}'],
  [500, '', 'x'],
  [502, 'text/html', '<html>'],
  [503, 'text/plain', 'x'],
  [504, 'text/plain', 'x'],
  [599, 'application/octet-stream', 'x'],
]

const PATCHES: Readonly<Record<string, unknown>> = {
  none: [],
  'null-patch': null,
  add: [{ op: 'add', path: '/data/b', value: '2' }],
  'add-deep': [{ op: 'add', path: '/metadata/annotations/x', value: 'y' }],
  'add-escaped': [{ op: 'add', path: '/metadata/labels/ex.io~1l', value: 'y' }],
  'replace-new': [{ op: 'replace', path: '/data/zz', value: '2' }],
  'replace-missing': [{ op: 'replace', path: '/foo/bar', value: '2' }],
  'remove-missing': [{ op: 'remove', path: '/data/zz' }],
  'remove-deep': [{ op: 'remove', path: '/foo/zz' }],
  'test-fails': [{ op: 'test', path: '/metadata/name', value: 'zzz' }],
  'odd-op': [{ op: 'foo', path: '/data' }],
  'no-op': [{ path: '/data' }],
  'no-path': [{ op: 'add', value: 1 }],
  object: { op: 'add' },
  'patch-text': '"text"',
  'patch-junk': 'not',
  'patch-numbers': '[1,2]',
  'type-text': [{ op: 'replace', path: '/data', value: 'text' }],
  'type-number': [{ op: 'add', path: '/data/n', value: 5 }],
  'type-deep': [{ op: 'add', path: '/metadata/ownerReferences', value: [{ uid: 5 }] }],
  unknown: [{ op: 'add', path: '/zork', value: 1 }],
  rename: [{ op: 'replace', path: '/metadata/name', value: 'renamed' }],
  'bad-name': [{ op: 'replace', path: '/metadata/name', value: 'Bad_Name' }],
  'no-name': [{ op: 'remove', path: '/metadata/name' }],
  namespace: [{ op: 'replace', path: '/metadata/namespace', value: 'kube-system' }],
  uid: [{ op: 'replace', path: '/metadata/uid', value: 'u' }],
  version: [{ op: 'add', path: '/metadata/resourceVersion', value: '5' }],
  created: [{ op: 'replace', path: '/metadata/creationTimestamp', value: '2001-01-01T00:00:00Z' }],
  generation: [{ op: 'add', path: '/metadata/generation', value: 7 }],
  deletion: [{ op: 'add', path: '/metadata/deletionTimestamp', value: '2001-01-01T00:00:00Z' }],
  'bad-label': [{ op: 'add', path: '/metadata/labels/x', value: 'a b' }],
  owners: [
    {
      op: 'add',
      path: '/metadata/ownerReferences',
      value: [1, 2].map(() => ({ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' })),
    },
  ],
  managed: [{ op: 'add', path: '/metadata/managedFields/0/fieldsV1', value: { 'x:y': {} } }],
  'managed-op': [{ op: 'replace', path: '/metadata/managedFields/0/operation', value: 'Foo' }],
  'managed-gone': [{ op: 'remove', path: '/metadata/managedFields' }],
  kind: [{ op: 'replace', path: '/kind', value: 'Secret' }],
  'kind-odd': [{ op: 'replace', path: '/kind', value: 'Odd' }],
  'kind-gone': [{ op: 'remove', path: '/kind' }],
  'api-version': [{ op: 'replace', path: '/apiVersion', value: 'apps/v1' }],
  'metadata-gone': [{ op: 'remove', path: '/metadata' }],
  root: [{ op: 'replace', path: '', value: { a: 1 } }],
  'root-list': [{ op: 'replace', path: '', value: [] }],
  move: [{ op: 'move', from: '/data/a', path: '/data/b' }],
  copy: [{ op: 'copy', from: '/data/a', path: '/data/b' }],
  index: [{ op: 'add', path: '/metadata/finalizers/-', value: 'ex.io/f' }],
  finalizers: [{ op: 'add', path: '/metadata/finalizers', value: ['a b'] }],
}

/** Answers that have to be made by hand. */
function end(make: (response: ServerResponse) => void): Script {
  return (_, response) => make(response)
}

function answers(): WebhookCase[] {
  return [
    ...Object.entries(DENIALS).flatMap(([name, response]) => [
      validating(`deny-${name}`, responding({ allowed: false, ...response })),
      validating(`deny-m-${name}`, responding({ allowed: false, ...response }), { kind: 'mutating' }),
    ]),
    ...Object.entries(BODIES).map(([name, body]) =>
      validating(
        `body-${name}`,
        end((response) => void response.setHeader('content-type', 'application/json').end(body)),
      ),
    ),
    ...CODES.map(([code, type, body], at) =>
      validating(
        `code-${at}-${code}`,
        end((response) => void response.writeHead(code, type === '' ? {} : { 'content-type': type }).end(body)),
      ),
    ),
    validating(
      'type-html',
      end((response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>')),
    ),
    ...Object.entries(PATCHES).map(([name, patch]) => patching(`patch-${name}`, patch)),
    validating(
      'warns',
      responding({ allowed: true, warnings: ['one', 'two "q"', 'one', '', 'a\nb', 'ü', 'x'.repeat(300)] }),
    ),
    validating('warns-much', responding({ allowed: true, warnings: ['1', '2', '3'].map((one) => one.repeat(2000)) })),
    validating('validating-patch', responding({ allowed: true, patch: 'W10=' })),
    validating('validating-type', responding({ allowed: true, patchType: 'JSONPatch' })),
    validating('half-patch', responding({ allowed: true, patch: 'W10=' }), { kind: 'mutating' }),
    validating('half-type', responding({ allowed: true, patchType: 'JSONPatch' }), { kind: 'mutating' }),
    validating('empty-type', responding({ allowed: true, patchType: '', patch: 'W10=' }), { kind: 'mutating' }),
    validating('odd-type', responding({ allowed: true, patchType: 'Foo', patch: base64('[{"op":"add"}]') }), {
      kind: 'mutating',
    }),
    validating('odd-type-empty', responding({ allowed: true, patchType: 'Foo', patch: 'W10=' }), { kind: 'mutating' }),
    validating('other-uid', responding({ uid: 'zzz', allowed: true })),
  ]
}

const CLOSES = end((response) => void response.socket?.end())
const CUTS = end((response) => {
  response.writeHead(200, { 'content-length': '100' }).write('{"kind":')
  setImmediate(() => response.socket?.end())
})
const CUTS_A_CHUNK = end((response) => {
  response.writeHead(200).write('{"kind":')
  setImmediate(() => response.socket?.end())
})

function faults(): WebhookCase[] {
  const at =
    (config: (hooks: WebhookServer) => Json): WebhookCase['spec'] =>
    (hooks) => ({ clientConfig: config(hooks) })
  const service = (name: string, port?: number): WebhookCase['spec'] =>
    at(({ caBundle }) => ({ caBundle, service: { namespace: 'default', name, path: '/x/', ...(port && { port }) } }))
  const named = (name: string, spec: WebhookCase['spec'], more: Partial<WebhookCase> = {}): WebhookCase => ({
    name,
    kind: 'validating',
    ...(spec !== undefined && { spec }),
    asks: [create(name)],
    ...more,
  })
  return [
    validating('fault-close', CLOSES),
    validating('fault-cut', CUTS),
    validating('fault-chunked', CUTS_A_CHUNK),
    validating('fault-hang', () => undefined),
    named(
      'fault-ca',
      at(({ port }) => ({ url: `https://127.0.0.1:${port}/x` })),
    ),
    named(
      'fault-bundle',
      at(({ port }) => ({ url: `https://127.0.0.1:${port}/x`, caBundle: 'bm9uZQ==' })),
    ),
    named(
      'fault-name',
      at(({ port, caBundle }) => ({ url: `https://127.0.0.2:${port}/x`, caBundle })),
    ),
    named(
      'fault-refused',
      at(({ caBundle }) => ({ url: 'https://127.0.0.1:1/x//y/?', caBundle })),
    ),
    named(
      'fault-lookup',
      at(({ caBundle }) => ({ url: 'https://nowhere.invalid/x', caBundle })),
    ),
    named('fault-nosvc', service('nosvc')),
    named('fault-port', service('kubernetes', 99)),
    named(
      'fault-open',
      at(() => ({ url: 'https://127.0.0.1:1/' })),
      {
        spec: () => ({ failurePolicy: 'Ignore', clientConfig: { url: 'https://127.0.0.1:1/' } }),
      },
    ),
  ]
}

const EVERYTHING = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }
const POD_SPEC = { automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }] }

const post = (path: string, body: unknown): Ask => ({ method: 'POST', path, body })
const SPACE = '/api/v1/namespaces/default'
const DEPLOYMENT = {
  metadata: { name: 'web' },
  spec: { selector: { matchLabels: { a: 'b' } }, template: { metadata: { labels: { a: 'b' } }, spec: POD_SPEC } },
}
const WEB = '/apis/apps/v1/namespaces/default/deployments/web'
const SCALER = {
  metadata: { name: 'h' },
  spec: {
    maxReplicas: 3,
    scaleTargetRef: { kind: 'Deployment', name: 'web', apiVersion: 'apps/v1' },
    metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } } }],
  },
}

/** One request of each kind that calls webhooks, and some that do not. */
const EVERY_REQUEST: readonly Ask[] = [
  post(`${SPACE}/pods`, { metadata: { name: 'p' }, spec: POD_SPEC }),
  post(`${SPACE}/pods/p/binding`, { target: { kind: 'Node', name: 'n' } }),
  { method: 'PATCH', path: `${SPACE}/pods/p/status`, body: { status: { phase: 'Running' } }, type: 'merge' },
  post(`${SPACE}/pods/p/exec?command=ls&container=c&stdout=true`, undefined),
  { method: 'GET', path: `${SPACE}/pods/p/proxy/a/b?c=d` },
  post(`${SPACE}/pods/p/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } }),
  post('/apis/apps/v1/namespaces/default/deployments?fieldManager=fm', DEPLOYMENT),
  { method: 'PATCH', path: `${WEB}/scale`, body: { spec: { replicas: 3 } }, type: 'merge' },
  { method: 'PATCH', path: `${WEB}/status`, body: { status: { replicas: 1 } }, type: 'merge' },
  {
    method: 'PATCH',
    path: `${WEB}?fieldManager=a&force=true`,
    body: { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { labels: { x: 'y' } } },
    type: 'apply',
  },
  { method: 'DELETE', path: `${WEB}?propagationPolicy=Background`, body: { gracePeriodSeconds: 5 } },
  post(`${SPACE}/serviceaccounts`, { metadata: { name: 'robot' } }),
  { ...post(`${SPACE}/serviceaccounts/robot/token`, { spec: { expirationSeconds: 3600 } }), prepares: true },
  post('/api/v1/namespaces', { metadata: { name: 'space' } }),
  { method: 'PUT', path: '/api/v1/namespaces/space/finalize', body: { metadata: { name: 'space' }, spec: {} } },
  { method: 'DELETE', path: '/api/v1/namespaces/space', prepares: true },
  post('/api/v1/nodes', { metadata: { name: 'n' } }),
  { method: 'PATCH', path: '/api/v1/nodes/n/status', body: { status: { phase: 'Running' } }, type: 'merge' },
  post('/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers', SCALER),
  post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', { spec: { resourceAttributes: { verb: 'get' } } }),
  post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}),
  post('/apis/events.k8s.io/v1/namespaces/default/events', {
    metadata: { name: 'e' },
    eventTime: '2001-01-01T00:00:00.000000Z',
    action: 'a',
    reason: 'r',
    type: 'Normal',
    reportingController: 'ex.io/c',
    reportingInstance: 'i',
    regarding: { kind: 'Pod', namespace: 'default', name: 'p' },
  }),
  post(MAPS, { metadata: { name: 'one', labels: { many: 'yes' } } }),
  post(MAPS, { metadata: { name: 'two', labels: { many: 'yes' } } }),
  { method: 'DELETE', path: `${MAPS}?labelSelector=many%3Dyes` },
  post(`${MAPS}?dryRun=All&fieldValidation=Strict`, { metadata: { generateName: 'g-', name: 'given' } }),
  { method: 'DELETE', path: `${MAPS}/missing` },
  { method: 'PUT', path: `${MAPS}/missing`, body: { metadata: { name: 'missing' } } },
]

function reviews(): WebhookCase[] {
  const spec = (): Json => ({ rules: [EVERYTHING], objectSelector: {}, namespaceSelector: {} })
  const allow = responding({ allowed: true })
  const old = { ...EVERYTHING, apiGroups: ['autoscaling'], apiVersions: ['v1'] }
  return [
    { name: 'reviews', kind: 'validating', script: allow, spec, isAlone: true, asks: EVERY_REQUEST },
    {
      name: 'equivalent',
      kind: 'mutating',
      script: responding({
        allowed: true,
        patchType: 'JSONPatch',
        patch: base64('[{"op":"replace","path":"/spec/maxReplicas","value":9}]'),
      }),
      spec: () => ({ rules: [old], objectSelector: {} }),
      isAlone: true,
      asks: [
        post('/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers', {
          ...SCALER,
          metadata: { name: 'eq' },
        }),
      ],
    },
    {
      name: 'delete-patch',
      kind: 'mutating',
      script: responding({
        allowed: true,
        patchType: 'JSONPatch',
        patch: base64('[{"op":"add","path":"/a","value":9}]'),
      }),
      spec: () => ({ rules: [{ ...EVERYTHING, operations: ['DELETE', 'CONNECT'] }], objectSelector: {} }),
      isAlone: true,
      asks: [
        { ...post(MAPS, { metadata: { name: 'doomed' } }), prepares: true },
        { method: 'DELETE', path: `${MAPS}/doomed` },
      ],
    },
  ]
}

/** Cases about the object that webhooks receive before the server has generated its name. */
function drawn(): WebhookCase[] {
  const metadata = { generateName: 'g-', uid: 'u', creationTimestamp: '2001-01-01T00:00:00Z', selfLink: 's' }
  const body = (name: string): Json => ({ metadata: { ...metadata, labels: { case: name } } })
  return (['mutating', 'validating'] as const).map((kind) => ({
    name: `drawn-${kind}`,
    kind,
    script: responding({ allowed: false }),
    asks: [{ method: 'POST', path: MAPS, body: body(`drawn-${kind}`) }],
  }))
}

const CONDITIONS: Readonly<Record<string, readonly string[]>> = {
  met: ["object.data.a == '1'", "request.operation == 'CREATE'", 'oldObject == null && namespaceObject == null'],
  unmet: ['true', 'false'],
  failing: ["object.data.zz == 'x'"],
  'failing-twice': ["object.data.zz == 'x'", 'object.data.yy == 1', 'true'],
  'failing-unmet': ["object.data.zz == 'x'", 'false'],
  asking: [
    "authorizer.group('').resource('pods').check('create').allowed()",
    "authorizer.requestResource.check('get').allowed()",
  ],
}

function conditions(): WebhookCase[] {
  return Object.entries(CONDITIONS).flatMap(([name, expressions]) => {
    const matchConditions = expressions.map((expression, at) => ({ name: `c${at}`, expression }))
    const spec = (hooks: WebhookServer): Json => ({
      clientConfig: { url: hooks.url(`/if-${name}`), caBundle: hooks.caBundle },
      matchConditions,
    })
    return [validating(`if-${name}`, responding({ allowed: true }), { spec })]
  })
}

export function everyWebhookCase(): WebhookCase[] {
  return [...answers(), ...drawn(), ...conditions(), ...faults(), ...reviews()]
}
