/**
 * Tests validating admission policies over HTTP: refused requests with their codes and messages. Expected values were
 * captured from v1.36.4.
 */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'

import type { ControlPlaneResponse } from '#testing/control-plane.ts'

import { about, CONFIG_MAPS, GROUP, type Json, PolicyPlane } from './policy-plane.ts'

const CORE = '/api/v1/namespaces/default'
const REVIEWED = { user: 'a', resourceAttributes: { namespace: 'default', verb: 'get', resource: 'pods' } }
const SCHEMA = { openAPIV3Schema: { type: 'object' } }
const DEFINITION = {
  metadata: { name: 'fines.ex.io' },
  spec: {
    group: 'ex.io',
    scope: 'Namespaced',
    names: { plural: 'fines', kind: 'Fine' },
    versions: [{ name: 'v1', served: true, storage: true, schema: SCHEMA }],
  },
}
const SERVICE = {
  metadata: { name: 'v1.agg.io' },
  spec: {
    group: 'agg.io',
    version: 'v1',
    groupPriorityMinimum: 100,
    versionPriority: 10,
    service: { name: 'a', namespace: 'default' },
    insecureSkipTLSVerify: true,
  },
}
const DENIED = "ValidatingAdmissionPolicy 'p1' with binding 'b1' denied request: "

describe('ValidatingAdmissionPolicy', () => {
  let plane: PolicyPlane
  before(async () => {
    plane = await PolicyPlane.start()
  })
  after(() => plane.stop())
  afterEach(() => plane.reset())

  const message = (answer: ControlPlaneResponse): string => (answer.json() as { message: string }).message
  /** The part of a refusal after the common beginning. */
  const why = async (data?: Json, metadata?: Json): Promise<string> => {
    const answer = await plane.create(data, metadata)
    assert.notEqual(answer.status, 201, answer.text)
    return message(answer)
      .replace(/^configmaps "[^"]*" is forbidden: /, '')
      .replace(DENIED, '')
  }
  const passes = async (data?: Json, metadata?: Json): Promise<void> => {
    const { status, text } = await plane.create(data, metadata)
    assert.equal(status, 201, text)
  }

  it('rejects with 422, the expression that failed and one cause', async () => {
    await plane.validate("object.data.a == 'x'")
    const answer = await plane.create({ a: '1' }, { name: 't1' })
    const text = `${DENIED}failed expression: object.data.a == 'x'`
    assert.deepEqual(answer.json(), {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: `configmaps "t1" is forbidden: ${text}`,
      reason: 'Invalid',
      details: { name: 't1', kind: 'configmaps', causes: [{ message: text }] },
      code: 422,
    })
    await passes({ a: 'x' })
  })

  it('uses code and reason of the validation, with "forbidden" in the message', async () => {
    for (const [reason, code] of [
      ['Forbidden', 403],
      ['Invalid', 422],
      ['RequestEntityTooLarge', 413],
    ] as const) {
      await plane.validate('false', { validation: { reason, message: ' no ' } })
      const answer = await plane.create({}, { name: 't1' })
      assert.equal(answer.status, code)
      const status = answer.json() as { reason: string; message: string }
      assert.equal(status.reason, reason)
      assert.equal(status.message, `configmaps "t1" is forbidden: ${DENIED}no`)
      await plane.reset()
    }
  })

  it('uses its messageExpression unless that fails or has several lines', async () => {
    const table: readonly (readonly [expression: string, said: string])[] = [
      ["'a is ' + object.data.a", 'a is 1'],
      ['string(object.data.zz)', 'fixed'],
      ["'  '", 'fixed'],
      ["'two\\nlines'", 'fixed'],
    ]
    for (const [messageExpression, said] of table) {
      await plane.validate('false', { validation: { messageExpression, message: 'fixed' } })
      assert.equal(await why({ a: '1' }), said, messageExpression)
      await plane.reset()
    }
    await plane.validate('1 == 2', { validation: { messageExpression: "string(object.data.zz) + 'x'" } })
    assert.equal(await why({ a: '1' }), 'failed expression: 1 == 2')
  })

  it('rejects for the first failure only, by name of policy and then by order', async () => {
    for (const name of ['p2', 'p1']) {
      await plane.policy('validating', name, {
        validations: [
          { expression: 'false', message: `${name} first` },
          { expression: 'false', reason: 'Forbidden' },
        ],
      })
      await plane.binding('validating', name.replace('p', 'b'), name)
    }
    const answer = await plane.create()
    assert.equal(answer.status, 422)
    assert.match(message(answer), /'p1' with binding 'b1' denied request: p1 first$/)
  })

  it('warns about every failure for bindings with action Warn', async () => {
    await plane.use(
      'validating',
      { validations: [{ expression: 'false', message: 'first' }, { expression: 'object.data.zz == "1"' }] },
      { validationActions: ['Warn', 'Audit'] },
    )
    const { status, headers } = await plane.create()
    assert.equal(status, 201)
    const head = "Validation failed for ValidatingAdmissionPolicy 'p1' with binding 'b1': "
    assert.deepEqual(headers.get('warning')?.split(', '), [
      `299 - "${head}first"`,
      `299 - "${head}expression 'object.data.zz == \\"1\\"' resulted in error: no such key: zz"`,
    ])
  })

  it('rejects or admits by failurePolicy if an expression fails to evaluate', async () => {
    const expression = "object.data.zz == 'x'"
    await plane.validate(expression)
    assert.equal(await why(), `expression '${expression}' resulted in error: no such key: zz`)
    await plane.reset()
    await plane.validate(expression, { failurePolicy: 'Ignore' })
    await passes()
  })

  it('evaluates each variable at most once, when it is used', async () => {
    const variables = [
      { name: 'bad', expression: 'object.data.zz' },
      { name: 'n', expression: 'size(object.data)' },
      { name: 'twice', expression: 'variables.n * 2' },
    ]
    await plane.validate('variables.twice == 4', { variables })
    await passes({ a: '1', b: '2' })
    assert.equal(await why({ a: '1' }), 'failed expression: variables.twice == 4')
    await plane.reset()
    await plane.validate("variables.bad == 'x'", { variables })
    assert.equal(
      await why(),
      `expression 'variables.bad == 'x'' resulted in error: composited variable "bad" fails to evaluate: no such key: zz`,
    )
  })

  it('runs only if all match conditions are true', async () => {
    const conditions = (...expressions: readonly string[]): Json => ({
      matchConditions: expressions.map((expression, at) => ({ name: `c${at}`, expression })),
    })
    await plane.validate('false', conditions("request.operation == 'UPDATE'"))
    await passes()
    await plane.reset()
    await plane.validate('false', conditions('object.data.zz == "1"', 'false'))
    await passes()
    await plane.reset()
    await plane.validate('true', conditions("object.data.zz == 'x'", 'true', "object.data.yy == 'x'"))
    assert.equal(
      await why(),
      "[expression 'object.data.zz == 'x'' resulted in error: no such key: zz, expression 'object.data.yy == 'x'' resulted in error: no such key: yy]",
    )
  })

  it('rejects an expression that exceeds its cost limit', async () => {
    await plane.validate('object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != "")))')
    const data = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`k${at}`, 'v']))
    assert.match(await why(data), /resulted in error: operation cancelled: actual cost limit exceeded$/)
  })

  it('rejects validations and match conditions that together exceed their cost limits', async () => {
    const expression = "object.data.all(a, object.data.all(b, a + b != '' && a.size() + b.size() > 0))"
    const data = Object.fromEntries(Array.from({ length: 240 }, (_, at) => [`k${at}`, 'v']))
    const spent = 'validation failed due to running out of cost budget, no further validation rules will be run'
    const validations = Array.from({ length: 30 }, () => ({ expression }))
    await plane.use('validating', { validations })
    assert.equal(await why(data), spent)
    await plane.reset()
    const matchConditions = Array.from({ length: 8 }, (_, at) => ({ name: `c${at}`, expression }))
    await plane.validate('true', { matchConditions })
    assert.equal(await why(data), spent)
    await plane.reset()
    await plane.use('validating', { validations: validations.slice(0, 8) })
    await passes(data)
  })

  it('reads the request, the namespace and the old object', async () => {
    const seen = async (expression: string): Promise<void> => {
      await plane.validate(expression, { matchConstraints: about('configmaps', { operations: ['*'] }) })
      await passes()
      await plane.reset()
    }
    await seen('oldObject == null && object.metadata.namespace == "default"')
    await seen("request.kind == request.requestKind && request.resource.resource == 'configmaps'")
    await seen("request.operation == 'CREATE' && !request.dryRun && request.options.kind == 'CreateOptions'")
    await seen("request.userInfo.username != '' && 'system:masters' in request.userInfo.groups")
    await seen("namespaceObject.metadata.name == 'default' && namespaceObject.status.phase == 'Active'")
    await seen("authorizer.group('').resource('configmaps').namespace('default').check('create').allowed()")
    await seen("authorizer.requestResource.check('create').allowed()")
    await seen("!authorizer.serviceAccount('default', 'default').path('/x').check('get').allowed()")
  })

  it('runs for deletions, and for deletions of collections without a name', async () => {
    await passes({ a: '1' }, { name: 'd1' })
    await plane.validate('object == null && oldObject.data.a != "1"', {
      matchConstraints: about('configmaps', { operations: ['DELETE'] }),
    })
    const one = await plane.request('DELETE', `${CONFIG_MAPS}/d1`)
    assert.match(message(one), /^configmaps "d1" is forbidden: /)
    const many = await plane.request('DELETE', CONFIG_MAPS)
    assert.match(message(many), /^configmaps "Unknown" is forbidden: /)
  })

  it('ignores policies and reviews', async () => {
    await plane.validate('false', {
      matchConstraints: about('*/*', { apiGroups: ['*'], apiVersions: ['*'], operations: ['*'] }),
    })
    const bound = await plane.binding('validating', 'b2', 'p1')
    assert.equal(bound.status, 201, bound.text)
    const review = await plane.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {})
    assert.equal(review.status, 201, review.text)
    for (const [path, spec] of [
      ['authentication.k8s.io/v1/tokenreviews', { token: 'x' }],
      ['authorization.k8s.io/v1/selfsubjectaccessreviews', { nonResourceAttributes: { path: '/', verb: 'get' } }],
      ['authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews', REVIEWED],
      ['authorization.k8s.io/v1/subjectaccessreviews', REVIEWED],
      ['authorization.k8s.io/v1/selfsubjectrulesreviews', { namespace: 'default' }],
    ] as const) {
      const { status, text } = await plane.request('POST', `/apis/${path}`, { spec })
      assert.equal(status, 201, text)
    }
  })

  it('runs for all other resources, and includes the resource of a subresource in its message', async () => {
    const pod = { metadata: { name: 'p1' }, spec: { containers: [{ name: 'c', image: 'c' }] } }
    await plane.did('POST', `${CORE}/pods`, pod)
    const template = { metadata: { labels: { a: 'b' } }, spec: pod.spec }
    const deployment = { metadata: { name: 'd1' }, spec: { selector: { matchLabels: { a: 'b' } }, template } }
    await plane.did('POST', '/apis/apps/v1/namespaces/default/deployments', deployment)
    await plane.validate('false', {
      matchConstraints: about('*/*', { apiGroups: ['*'], apiVersions: ['*'], operations: ['*'] }),
    })
    const asked: readonly (readonly [path: string, body: Json, subject: string])[] = [
      [`${GROUP}/validatingwebhookconfigurations`, {}, 'validatingwebhookconfigurations.admissionregistration.k8s.io'],
      [
        '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
        DEFINITION,
        'customresourcedefinitions.apiextensions.k8s.io',
      ],
      ['/apis/apiregistration.k8s.io/v1/apiservices', SERVICE, 'apiservices.apiregistration.k8s.io'],
      ['/apis/coordination.k8s.io/v1/namespaces/default/leases', {}, 'leases.coordination.k8s.io'],
    ]
    for (const [path, body, subject] of asked) {
      const { name = 'w' } = (body['metadata'] ?? {}) as { name?: string }
      const said = message(await plane.request('POST', path, { ...body, metadata: { name } }))
      assert.ok(said.startsWith(`${subject} "${name}" is forbidden: ${DENIED}`), said)
    }
    const parts: readonly (readonly [path: string, body: Json | undefined, subject: string])[] = [
      [`${CORE}/serviceaccounts/default/token`, { spec: {} }, 'serviceaccounts "default"'],
      [`${CORE}/pods/p1/eviction`, { metadata: { name: 'p1' } }, 'pods "p1"'],
      [`${CORE}/pods/p1/binding`, { metadata: { name: 'p1' }, target: { kind: 'Node', name: 'n' } }, 'pods "p1"'],
      [`${CORE}/pods/p1/exec?command=x&stdout=1`, undefined, 'pods "p1"'],
    ]
    for (const [path, body, subject] of parts) {
      const said = message(await plane.request('POST', path, body))
      assert.ok(said.startsWith(`${subject} is forbidden: ${DENIED}`), said)
    }
    const scale = '/apis/apps/v1/namespaces/default/deployments/d1/scale'
    const merge = { 'content-type': 'application/merge-patch+json' }
    const scaled = await plane.request('PATCH', scale, { spec: { replicas: 2 } }, merge)
    assert.ok(message(scaled).startsWith(`deployments.apps "d1" is forbidden: ${DENIED}`), message(scaled))
  })

  it('has no effect without a binding, nor has a binding without a policy', async () => {
    await plane.binding('validating', 'b1', 'nowhere')
    await plane.policy('validating', 'p1', { validations: [{ expression: 'false' }] })
    await passes()
  })

  it('applies if the selectors of policy and binding both match', async () => {
    const selector = (value: string): Json => ({ objectSelector: { matchLabels: { x: value } } })
    await plane.validate(
      'false',
      { matchConstraints: { ...about(), ...selector('1') } },
      {
        matchResources: {
          ...selector('1'),
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } },
        },
      },
    )
    await passes()
    assert.equal(await why({}, { labels: { x: '1' } }), 'failed expression: false')
  })

  describe('with parameters', () => {
    const paramKind = { apiVersion: 'v1', kind: 'ConfigMap' }
    const ref = (more: Json): Json => ({ paramRef: { parameterNotFoundAction: 'Deny', ...more } })

    it('runs once for each parameter', async () => {
      await passes({ max: '1' }, { name: 'limits', labels: { limits: 'yes' } })
      await passes({ max: '2' }, { name: 'more', labels: { limits: 'yes' } })
      await plane.validate(
        'int(object.data.n) <= int(params.data.max)',
        { paramKind, validation: { messageExpression: "'over ' + params.data.max" } },
        ref({ selector: { matchLabels: { limits: 'yes' } } }),
      )
      await passes({ n: '1' })
      assert.equal(await why({ n: '2' }), 'over 1')
    })

    it('finds a parameter by name in the namespace of the object, or in another one', async () => {
      await passes({ max: '1' }, { name: 'limits' })
      await plane.validate(
        'params.kind == "ConfigMap" && params.data.max == "1"',
        { paramKind },
        ref({ name: 'limits' }),
      )
      await passes()
      await plane.did('DELETE', `${GROUP}/validatingadmissionpolicybindings/b1`)
      await plane.binding('validating', 'b1', 'p1', ref({ name: 'limits', namespace: 'kube-system' }))
      assert.equal(
        await why(),
        'failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction',
      )
    })

    it('ignores missing parameters with parameterNotFoundAction Allow', async () => {
      await plane.validate('false', { paramKind }, ref({ name: 'none', parameterNotFoundAction: 'Allow' }))
      await passes()
      await plane.reset()
      await plane.validate('false', { paramKind, failurePolicy: 'Ignore' }, ref({ name: 'none' }))
      await passes()
    })

    it('requires parameters in both policy and binding', async () => {
      await plane.validate('params.data.a == "1"', { paramKind })
      assert.equal(await why(), `expression 'params.data.a == "1"' resulted in error: no such key: data`)
      await plane.reset()
      await plane.validate('true', {}, ref({ name: 'none' }))
      await passes()
    })

    it('fails if the kind of the parameters is not served', async () => {
      await plane.validate('true', { paramKind: { apiVersion: 'zz.io/v1', kind: 'Nope' } }, ref({ name: 'none' }))
      assert.equal(
        await why(),
        "ValidatingAdmissionPolicy 'p1' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'zz.io/v1, Kind=Nope'",
      )
    })

    it('requires a namespace of the parameters for cluster-scoped objects', async () => {
      await plane.validate('true', { paramKind, matchConstraints: about('nodes') }, ref({ name: 'limits' }))
      const answer = await plane.request('POST', '/api/v1/nodes', { metadata: { name: 'n' } })
      assert.match(
        message(answer),
        /: failed to configure binding: cannot use namespaced paramRef in policy binding that matches cluster-scoped resources$/,
      )
    })
  })
})
