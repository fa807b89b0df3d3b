/**
 * Tests the validation of admission policies and bindings on write, and the permissions to write them. Expected values
 * were captured from v1.36.4.
 */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'

import { startControlPlane } from '#testing/control-plane.ts'

import { GROUP, type Json, type PolicyKind, PolicyPlane } from './policy-plane.ts'

const report = (message: string, source: string, column: number): string =>
  `compilation failed: ERROR: <input>:1:${column}: ${message}\n | ${source}\n | ${'.'.repeat(column - 1)}^`

describe('writes of admission policies and bindings', () => {
  let plane: PolicyPlane
  before(async () => {
    plane = await PolicyPlane.start()
  })
  after(() => plane.stop())
  afterEach(() => plane.reset())

  const causes = async (kind: PolicyKind, spec: Json): Promise<string[]> => {
    const answer = await plane.policy(kind, 'p1', spec)
    assert.equal(answer.status, 422, answer.text)
    const { details } = answer.json() as { details: { causes: { field: string; message: string }[] } }
    return details.causes.map(({ field, message }) => `${field}: ${message}`)
  }
  const validation = (expression: string, more: Json = {}): Json => ({ validations: [{ expression, ...more }] })
  const mutation = (patchType: string, expression: string): Json => {
    const field = patchType === 'JSONPatch' ? 'jsonPatch' : 'applyConfiguration'
    return { mutations: [{ patchType, [field]: { expression } }] }
  }
  const ok = validation('true')

  const wrong: readonly (readonly [what: string, kind: PolicyKind, spec: Json, causes: readonly string[]])[] = [
    [
      'validations of another type',
      'validating',
      validation('1 + 1'),
      ['spec.validations[0].expression: Invalid value: "1 + 1": must evaluate to bool but got int'],
    ],
    [
      'expressions that do not compile',
      'validating',
      validation('object.x == zork'),
      [
        `spec.validations[0].expression: Invalid value: "object.x == zork": ${report("undeclared reference to 'zork' (in container '')", 'object.x == zork', 13)}`,
      ],
    ],
    [
      'parameters in a policy without a param kind',
      'validating',
      validation('params.x == 1'),
      [
        `spec.validations[0].expression: Invalid value: "params.x == 1": ${report("undeclared reference to 'params' (in container '')", 'params.x == 1', 1)}`,
      ],
    ],
    [
      'message expressions that use the authorizer or are not strings',
      'validating',
      {
        validations: [
          { expression: 'true', messageExpression: "authorizer.path('/').check('get').reason()" },
          { expression: 'true', messageExpression: 'object.x' },
        ],
      },
      [
        `spec.validations[0].messageExpression: Invalid value: "authorizer.path('/').check('get').reason()": ${report("undeclared reference to 'authorizer' (in container '')", "authorizer.path('/').check('get').reason()", 1)}`,
        'spec.validations[1].messageExpression: Invalid value: "object.x": must evaluate to string but got dyn',
      ],
    ],
    [
      'numeric audit annotations',
      'validating',
      { auditAnnotations: [{ key: 'k', valueExpression: '1' }] },
      [
        'spec.auditAnnotations[0].valueExpression: Invalid value: "1": must evaluate to one of [string null_type] but got int',
      ],
    ],
    [
      'variables used before their definition or with a wrong type',
      'validating',
      {
        variables: [
          { name: 'a-b', expression: '1' },
          { name: 'x', expression: 'variables.c' },
          { name: 'c', expression: "'text'" },
        ],
        validations: [{ expression: 'variables.c > 1' }],
      },
      [
        'spec.variables[0].name: Invalid value: "a-b": must be a valid CEL identifier',
        `spec.variables[1].expression: Invalid value: "variables.c": ${report("undefined field 'c'", 'variables.c', 10)}`,
        `spec.validations[0].expression: Invalid value: "variables.c > 1": ${report("found no matching overload for '_>_' applied to '(string, int)'", 'variables.c > 1', 13)}`,
      ],
    ],
    [
      'fields of namespaces that policies cannot access',
      'validating',
      validation('size(namespaceObject.metadata.managedFields) == 0'),
      [
        `spec.validations[0].expression: Invalid value: "size(namespaceObject.metadata.managedFields) == 0": ${report("undefined field 'managedFields'", 'size(namespaceObject.metadata.managedFields) == 0', 30)}`,
      ],
    ],
    [
      'match conditions that are not boolean',
      'validating',
      { ...ok, matchConditions: [{ name: 'c', expression: ' 1 ' }] },
      ['spec.matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int'],
    ],
    [
      'invalid constants',
      'validating',
      validation("int('x') == 1"),
      [
        "spec.validations[0].expression: Internal error: program instantiation failed: type conversion error from 'string' to 'int'",
      ],
    ],
    [
      'no validations',
      'validating',
      {},
      [
        'spec.validations: Required value: validations or auditAnnotations must contain at least one item',
        'spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item',
      ],
    ],
    [
      'invalid JSON patches',
      'mutating',
      mutation('JSONPatch', "'x'"),
      [
        'spec.mutations[0].jsonPatch.expression: Invalid value: "\'x\'": must evaluate to list(JSONPatch) but got string',
      ],
    ],
    [
      'empty lists of unknown type',
      'mutating',
      mutation('JSONPatch', '[]'),
      [
        'spec.mutations[0].jsonPatch.expression: Invalid value: "[]": must evaluate to list(JSONPatch) but got list(dyn)',
      ],
    ],
    [
      'invalid apply configurations',
      'mutating',
      mutation('ApplyConfiguration', "'x'"),
      [
        'spec.mutations[0].applyConfiguration.expression: Invalid value: "\'x\'": must evaluate to Object but got string',
      ],
    ],
    [
      'partial objects instead of objects',
      'mutating',
      mutation('ApplyConfiguration', 'Object.spec{a: 1}'),
      [
        'spec.mutations[0].applyConfiguration.expression: Invalid value: "Object.spec{a: 1}": must evaluate to Object but got Object.spec',
      ],
    ],
    [
      'wrong fields of JSON patches',
      'mutating',
      mutation('JSONPatch', '[JSONPatch{op: 1}]'),
      [
        `spec.mutations[0].jsonPatch.expression: Invalid value: "[JSONPatch{op: 1}]": ${report("expected type of field 'op' is 'string' but provided type is 'int'", '[JSONPatch{op: 1}]', 14)}`,
      ],
    ],
    [
      'no reinvocation policy',
      'mutating',
      { ...mutation('ApplyConfiguration', 'Object{}'), reinvocationPolicy: '' },
      ['spec.reinvocationPolicy: Required value'],
    ],
  ]
  for (const [what, kind, spec, expected] of wrong) {
    it(`are rejected with ${what}`, async () => assert.deepEqual(await causes(kind, spec), expected))
  }

  it('leave the status empty until a client writes it, and updates of the spec do not change it', async () => {
    const body = (await plane.policy('validating', 'p1', ok)).json()
    assert.deepEqual(body['status'], {})
    const path = `${GROUP}/validatingadmissionpolicies/p1`
    const status = { observedGeneration: 1, typeChecking: {} }
    const written = await plane.did('PUT', `${path}/status`, { ...body, status, spec: validation('false') })
    assert.deepEqual(written['status'], status)
    const { spec, metadata } = (await plane.did(
      'PATCH',
      path,
      { spec: { failurePolicy: 'Ignore' }, status: {} },
      { 'content-type': 'application/merge-patch+json' },
    )) as { spec: Json; metadata: Json }
    assert.equal((spec['validations'] as Json[])[0]?.['expression'], 'true')
    assert.equal(metadata['generation'], 2)
  })
})

describe('user who writes admission policies', () => {
  let plane: PolicyPlane
  before(async () => {
    const tokens = ['admin,root,root-uid,"system:masters"', 'jane,jane,uid-jane,"devs,ops"'].join('\n')
    plane = new PolicyPlane(await startControlPlane({ files: new Map([['tokens.csv', tokens]]) }))
    const rules = [{ apiGroups: ['admissionregistration.k8s.io'], resources: ['*'], verbs: ['*'] }]
    await plane.did('POST', `${RBAC}/clusterroles`, { metadata: { name: 'policies' }, rules })
    await bind('policies')
  })
  after(() => plane.stop())

  const RBAC = '/apis/rbac.authorization.k8s.io/v1'
  const WHO = '&{jane uid-jane [devs ops system:authenticated] map[]}'
  const bind = (role: string): Promise<Json> =>
    plane.did('POST', `${RBAC}/clusterrolebindings`, {
      metadata: { name: role },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'jane' }],
    })
  const asJane = async (plural: string, body: Json): Promise<string> => {
    const answer = await plane.request('POST', `${GROUP}/${plural}`, body, { authorization: 'Bearer jane' })
    if (answer.status === 201) return 'written'
    assert.equal(answer.status, 422, answer.text)
    const { details } = answer.json() as { details: { causes: { reason: string; field: string; message: string }[] } }
    return details.causes.map(({ reason, field, message }) => `${reason} ${field}: ${message}`).join('; ')
  }
  const policy = (name: string, paramKind: Json = { apiVersion: 'v1', kind: 'ConfigMap' }): Json => ({
    metadata: { name },
    spec: {
      paramKind,
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
      },
      validations: [{ expression: 'true' }],
    },
  })
  const binding = (name: string, paramRef: Json, policyName = 'mine'): Json => ({
    metadata: { name },
    spec: { policyName, validationActions: ['Deny'], paramRef: { parameterNotFoundAction: 'Deny', ...paramRef } },
  })

  it('needs permission to read their parameters', async () => {
    const [policies, bindings] = ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'] as const
    assert.equal(
      await asJane(policies, policy('mine')),
      `FieldValueForbidden spec.paramKind: Forbidden: user ${WHO} must have "get" permission on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)`,
    )
    await plane.did('POST', `${GROUP}/${policies}`, policy('mine'))
    assert.equal(
      await asJane(bindings, binding('b', { name: 'x', namespace: 'default' })),
      `FieldValueForbidden spec.paramRef: Forbidden: user ${WHO} does not have "get" permission on the object referenced by paramRef`,
    )
    assert.equal(
      await asJane(bindings, binding('b', { selector: {} })),
      `FieldValueForbidden spec.paramRef: Forbidden: user ${WHO} does not have "list" permission on the object referenced by paramRef`,
    )
    assert.equal(
      await asJane(bindings, binding('b', { name: 'x' }, 'none')),
      `FieldValueForbidden spec.paramRef: Forbidden: unable to get policy none to determine minimum required permissions and user ${WHO} does not have "get" permission for all groups, versions and resources`,
    )
    assert.match(await asJane(bindings, binding('b', { selector: {}, name: 'x' })), /mutually exclusive/)
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }]
    await plane.did('POST', `${RBAC}/clusterroles`, { metadata: { name: 'readers' }, rules })
    await bind('readers')
    assert.equal(await asJane(policies, policy('hers')), 'written')
    assert.equal(await asJane(bindings, binding('b', { name: 'x' })), 'written')
    assert.match(
      await asJane(policies, policy('odd', { apiVersion: 'zz.io/v1', kind: 'Nope' })),
      /must have "get" permission/,
    )
  })
})
