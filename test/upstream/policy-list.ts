/** Lists the admission policies that `policies.ts` compares. */

type Json = Record<string, unknown>

export interface PolicyCase {
  readonly name: string
  readonly kind: 'validating' | 'mutating'
  readonly spec: Json
  readonly binding?: Json
  /** The written object; default: a ConfigMap with `a` and `n`. */
  readonly object?: { readonly data?: Json; readonly labels?: Json }
}

/** Expressions about a request. The refusal contains the value as text, or the error. */
const EXPRESSIONS = [
  'request.operation',
  'request.name',
  'request.namespace',
  'request.subResource',
  'request.kind.kind + request.requestKind.version',
  'string(request.dryRun)',
  'request.options.kind + request.options.apiVersion',
  'string(has(request.options.fieldManager))',
  'string(size(request.userInfo.groups))',
  'string(has(request.userInfo.extra))',
  'request.userInfo.uid',
  'object.metadata.name + object.kind + object.apiVersion',
  'object.metadata.creationTimestamp',
  'string(has(object.metadata.managedFields))',
  'string(oldObject == null)',
  'string(has(oldObject.metadata))',
  'oldObject.metadata.name',
  'namespaceObject.metadata.name',
  'namespaceObject.metadata.UID',
  'string(namespaceObject.metadata.creationTimestamp.getFullYear() > 2000)',
  "namespaceObject.metadata.labels['kubernetes.io/metadata.name']",
  'namespaceObject.spec.finalizers[0] + namespaceObject.status.phase',
  'string(has(namespaceObject.metadata.deletionTimestamp))',
  "string('kind' in {'kind': 1})",
  'object.data.a.replace("1", "2")',
  "object.data.map(k, k + '=' + object.data[k]).sort().join(',')",
  "object.data.transformList(k, v, k + v).sort().join(',')",
  'string(quantity("1.5Gi").isGreaterThan(quantity("1Gi")))',
  "object.?data.?zz.orValue('none')",
  'string(int(object.data.n) / 0)',
  "string(object.data.a == '1' || object.data.zz == '1')",
  'dyn(1)',
  'variables.v',
  "'x'.charAt(7)",
  "'a b'.split(' ')[5]",
  'string(type(object))',
  'string(type(request))',
  'object',
  'string(object.data)',
]

/** Of the keys of a hundred entries, three times over: almost all that one expression may cost. */
const COSTLY = "object.data.all(a, object.data.all(b, a + b != '' && a.size() + b.size() > 0 && (a + b).size() > 0))"
const LARGE = { data: Object.fromEntries(Array.from({ length: 240 }, (_, at) => [`k${at}`, 'v'])) }

const BUDGETS: readonly PolicyCase[] = [
  {
    name: 'budget of validations',
    kind: 'validating',
    spec: { validations: Array.from({ length: 30 }, () => ({ expression: COSTLY })) },
    object: LARGE,
  },
  {
    name: 'budget of match conditions',
    kind: 'validating',
    spec: {
      matchConditions: Array.from({ length: 9 }, (_, at) => ({ name: `c${at}`, expression: COSTLY })),
      validations: [{ expression: 'true' }],
    },
    object: LARGE,
  },
  {
    name: 'budget of one expression',
    kind: 'validating',
    spec: { validations: [{ expression: `object.data.all(c, ${COSTLY})` }] },
    object: LARGE,
  },
  {
    name: 'budget of variables',
    kind: 'validating',
    spec: {
      variables: Array.from({ length: 30 }, (_, at) => ({ name: `v${at}`, expression: COSTLY })),
      validations: [{ expression: Array.from({ length: 30 }, (_, at) => `variables.v${at}`).join(' && ') }],
    },
    object: LARGE,
  },
]

const AUTHORIZATIONS = [
  "authorizer.group('').resource('pods').namespace('default').check('create').allowed()",
  "authorizer.path('/healthz').check('get').reason() == 'x'",
  "authorizer.requestResource.check('delete').allowed() && !has(object.data.zz)",
  "authorizer.serviceAccount('default', 'nobody').group('apps').resource('deployments').check('list').allowed()",
  "authorizer.serviceAccount('UP', 'nobody').path('/x').check('get').allowed()",
  "authorizer.group('').resource('').check('get').allowed()",
  "authorizer.group('').resource('pods').fieldSelector('=,=').check('list').errored()",
  "authorizer.group('').resource('pods').check('list').allowed() && authorizer.group('').resource('pods').check('get').allowed() && authorizer.group('').resource('pods').check('watch').allowed()",
]

const APPLIED = [
  "Object{metadata: Object.metadata{annotations: {'x': 'y'}}}",
  "Object{metadata: Object.metadata{labels: {'added': string(object.data.n)}}}",
  "Object{data: {'n': '6', 'new': 'x'}}",
  'Object{data: {}}',
  'Object{}',
  'Object{?data: optional.none(), ?immutable: optional.of(true)}',
  "Object{data: {'n': null}}",
  'Object{data: object.data}',
  "Object{metadata: Object.metadata{labels: Object.metadata.labels{a: 'b'}}}",
  "Object{metadata: Object.metadata{ownerReferences: [Object.metadata.ownerReferences{uid: 'u', name: 'n', kind: 'K', apiVersion: 'v1'}]}}",
  "Object{metadata: Object.metadata{ownerReferences: [Object.metadata.ownerReferences{name: 'n'}]}}",
  "Object{metadata: Object.metadata{finalizers: ['a.io/x', 'a.io/x']}}",
  'Object{metadata: Object.metadata{managedFields: []}}',
  'Object{metadata: Object.metadata{name: 5}}',
  'Object{metadata: Object.spec{}}',
  "Object{immutable: 'yes'}",
  "Object{binaryData: {'x': b'abc'}}",
  'Object{data: {1: 2}}',
  "Object{data: {'t': string(timestamp('2024-01-01T00:00:00Z'))}}",
  "has(object.data.zz) ? Object{data: {'zz': '1'}} : Object{data: {'none': '1'}}",
]

const PATCHES = [
  "[JSONPatch{op: 'add', path: '/data/x', value: 'y'}]",
  "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'a': 'b'}}]",
  "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b~c'), value: 'd'}]",
  "[JSONPatch{op: 'move', from: '/data/a', path: '/data/moved'}]",
  "[JSONPatch{op: 'test', path: '/data/a', value: '2'}, JSONPatch{op: 'remove', path: '/data'}]",
  "[JSONPatch{op: 'replace', path: '/data', value: Object.data{x: 'y'}}]",
  "[JSONPatch{op: 'replace', path: '/data', value: Object{x: 'y'}}]",
  "[JSONPatch{op: 'add', path: '/data/x'}]",
  "[JSONPatch{op: 'add', path: '/data/x', value: null}]",
  "[JSONPatch{op: 'add', path: '/immutable', value: 1}]",
  "[JSONPatch{op: 'add', path: '/metadata/zork', value: 1}]",
  "[JSONPatch{op: 'add', path: '', value: {'kind': 'ConfigMap'}}]",
  "[JSONPatch{op: 'replace', path: '/kind', value: 'Secret'}]",
  "[JSONPatch{op: 'replace', path: '/apiVersion', value: 'zz/v1'}]",
  "[JSONPatch{op: 'copy', from: '/nope', path: '/data/x'}]",
  "[JSONPatch{path: '/data/x'}]",
  "object.data.a == '1' ? [JSONPatch{op: 'add', path: '/data/x', value: '1'}] : []",
  "[JSONPatch{op: 'add', path: '/binaryData', value: {'x': b'abc'}}]",
]

const PARAM_KIND = { apiVersion: 'v1', kind: 'ConfigMap' }

const BINDINGS: readonly PolicyCase[] = [
  { name: 'params by name', binding: { paramRef: { name: 'limits', parameterNotFoundAction: 'Deny' } } },
  { name: 'params missing', binding: { paramRef: { name: 'none', parameterNotFoundAction: 'Deny' } } },
  {
    name: 'params in another namespace',
    binding: { paramRef: { name: 'limits', namespace: 'kube-system', parameterNotFoundAction: 'Deny' } },
  },
  {
    name: 'params by labels',
    binding: { paramRef: { selector: { matchLabels: { limits: 'yes' } }, parameterNotFoundAction: 'Deny' } },
  },
  { name: 'no params', binding: {} },
].map(({ name, binding }) => ({
  name,
  kind: 'validating',
  spec: {
    paramKind: PARAM_KIND,
    validations: [
      {
        expression: 'params.data.max == "1"',
        messageExpression: 'params.kind + params.apiVersion + params.metadata.name',
      },
    ],
  },
  binding,
}))

const OTHERS: readonly PolicyCase[] = [
  {
    name: 'failing conditions',
    kind: 'validating',
    spec: {
      matchConditions: [
        { name: 'a', expression: 'object.data.zz == "1"' },
        { name: 'b', expression: 'request.resource.resource == "configmaps" && namespaceObject == null' },
      ],
      validations: [{ expression: 'false' }],
    },
  },
  {
    name: 'a condition with variables',
    kind: 'validating',
    spec: {
      variables: [{ name: 'v', expression: 'true' }],
      matchConditions: [{ name: 'a', expression: 'variables.v' }],
      validations: [{ expression: 'false' }],
    },
  },
  {
    name: 'variables of many types',
    kind: 'validating',
    spec: {
      variables: [
        { name: 'l', expression: 'object.data.map(k, k)' },
        { name: 'm', expression: "{'a': [1, 2]}" },
        { name: 'o', expression: 'optional.of(1)' },
        { name: 't', expression: 'request.kind' },
      ],
      validations: [
        {
          expression:
            "variables.l.size() == 2 && variables.m['a'][1] == 2 && variables.o.value() == 2 && variables.t.kind == 'x'",
        },
      ],
    },
  },
  {
    name: 'too dear together',
    kind: 'validating',
    spec: {
      validations: Array.from({ length: 30 }, () => ({
        expression:
          "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, a + b + c + d > 0 && object.data.a == '1'))))",
      })),
    },
  },
]

export const POLICY_CASES: readonly PolicyCase[] = [
  ...EXPRESSIONS.map((expression): PolicyCase => ({
    name: `message ${expression}`,
    kind: 'validating',
    spec: {
      variables: [{ name: 'v', expression: "object.data.a + '!'" }],
      validations: [{ expression: 'false', messageExpression: expression, message: 'fell back' }],
    },
  })),
  ...EXPRESSIONS.map((expression): PolicyCase => ({
    name: `validation ${expression}`,
    kind: 'validating',
    spec: {
      variables: [{ name: 'v', expression: "object.data.a + '!'" }],
      validations: [{ expression: `string(${expression}) == 'x'` }],
    },
  })),
  ...AUTHORIZATIONS.map((expression): PolicyCase => ({
    name: expression,
    kind: 'validating',
    spec: { validations: [{ expression }] },
  })),
  ...APPLIED.map((expression): PolicyCase => ({
    name: expression,
    kind: 'mutating',
    spec: { mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }] },
  })),
  ...PATCHES.map((expression): PolicyCase => ({
    name: expression,
    kind: 'mutating',
    spec: { mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }] },
  })),
  ...BINDINGS,
  ...BUDGETS,
  ...OTHERS,
]
