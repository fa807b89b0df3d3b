import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { FlowSchema, PolicyRulesWithSubjects, Subject } from '#apis/flowcontrol/v1.ts'
import { requestInfoOf } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createServerMeters } from '#model/metrics/families.ts'

import { type Flow, flowsOf } from './flow-schemas.ts'
import { PriorityLevel } from './level.ts'
import { createFlowMeter } from './meters.ts'

const RESOURCES = { verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*'] }
const ALL_USERS: Subject = { kind: 'Group', group: { name: '*' } }
const named = (name: string): Subject => ({ kind: 'User', user: { name } })

function schema(name: string, precedence: number, ...rules: readonly Partial<PolicyRulesWithSubjects>[]): FlowSchema {
  return {
    kind: 'FlowSchema',
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    metadata: { name, uid: `uid-${name}` },
    spec: {
      matchingPrecedence: precedence,
      priorityLevelConfiguration: { name: name === 'orphan' ? 'missing' : 'level' },
      rules: rules.map((rule) => ({ subjects: [ALL_USERS], ...rule })),
    },
    status: {},
  }
}

const meters = createServerMeters()
const level = new PriorityLevel(
  { metadata: { name: 'level', uid: 'uid-level' }, spec: { type: 'Exempt' } },
  { clock: createVirtualClock(), meters },
)

function flowClassesOf(schemas: readonly FlowSchema[]): Flow[] {
  return flowsOf(schemas, {
    levelNamed: (name) => (name === 'level' ? level : undefined),
    meterOf: (...names) => createFlowMeter(meters, ...names),
  })
}

function classOf(
  schemas: readonly FlowSchema[],
  user: Partial<User>,
  method: string,
  path: string,
): string | undefined {
  const who = { name: 'jane', uid: '', groups: ['users'], extra: {}, ...user }
  return flowClassesOf(schemas).find(({ matches }) => matches(who, requestInfoOf(method, path, undefined)))?.name
}

describe('FlowSchema matching', () => {
  it('uses precedence, then name, and skips a FlowSchema without a priority level', () => {
    const all = { resourceRules: [RESOURCES] }
    const schemas = [schema('b', 5, all), schema('orphan', 1, all), schema('a', 5, all), schema('z', 3, all)]
    assert.deepEqual(
      flowClassesOf(schemas).map(({ name }) => name),
      ['z', 'a', 'b'],
    )
    assert.deepEqual(flowClassesOf(schemas)[0]?.headers, [
      'X-Kubernetes-Pf-Flowschema-Uid',
      'uid-z',
      'X-Kubernetes-Pf-Prioritylevel-Uid',
      'uid-level',
    ])
  })

  for (const [what, subject, yes, no] of [
    ['a subject by user name', named('jane'), { name: 'jane' }, { name: 'bob' }],
    ['any user by the name *', named('*'), { name: 'bob' }, undefined],
    ['a subject by group', { kind: 'Group', group: { name: 'g' } }, { groups: ['f', 'g'] }, { groups: ['f'] }],
    [
      'a subject by service account',
      { kind: 'ServiceAccount', serviceAccount: { namespace: 'a', name: 'b' } },
      { name: 'system:serviceaccount:a:b' },
      { name: 'system:serviceaccount:a:bc' },
    ],
    [
      'a subject by all service accounts of a namespace',
      { kind: 'ServiceAccount', serviceAccount: { namespace: 'a', name: '*' } },
      { name: 'system:serviceaccount:a:b' },
      { name: 'system:serviceaccount:ab:c' },
    ],
    ['no request if the rule has no subjects', { kind: 'User' }, undefined, { name: '' }],
  ] as const) {
    it(`matches ${what}`, () => {
      const schemas = [schema('s', 1, { subjects: [subject], resourceRules: [RESOURCES] })]
      if (yes !== undefined) assert.equal(classOf(schemas, yes, 'GET', '/api/v1/pods'), 's')
      if (no !== undefined) assert.equal(classOf(schemas, no, 'GET', '/api/v1/pods'), undefined)
    })
  }

  for (const [rule, request, expected] of [
    [{ verbs: ['list'] }, 'GET /api/v1/pods', true],
    [{ verbs: ['list'] }, 'GET /api/v1/namespaces/a/pods/x', false],
    [{ apiGroups: ['apps'] }, 'GET /apis/apps/v1/deployments', true],
    [{ apiGroups: [''] }, 'GET /apis/apps/v1/deployments', false],
    [{ resources: ['pods'] }, 'GET /api/v1/namespaces/a/pods/x', true],
    [{ resources: ['pods'] }, 'PUT /api/v1/namespaces/a/pods/x/status', false],
    [{ resources: ['pods/status'] }, 'PUT /api/v1/namespaces/a/pods/x/status', true],
    [{ clusterScope: false }, 'GET /api/v1/nodes', false],
    [{ namespaces: null }, 'GET /api/v1/nodes', true],
    [{ namespaces: ['a'] }, 'GET /api/v1/namespaces/a/pods', true],
    [{ namespaces: ['a'] }, 'GET /api/v1/namespaces/b/pods', false],
    [{ namespaces: null }, 'GET /api/v1/namespaces/b/pods', false],
    [{}, 'GET /healthz', false],
  ] as const) {
    it(`${expected ? 'matches' : 'does not match'} ${request} by rule ${JSON.stringify(rule)}`, () => {
      const [method = '', path = ''] = request.split(' ')
      const schemas = [schema('s', 1, { resourceRules: [{ ...RESOURCES, ...rule } as typeof RESOURCES] })]
      assert.equal(classOf(schemas, {}, method, path) === 's', expected)
    })
  }

  it('compares non-resource paths exactly or by prefix', () => {
    const schemas = [
      schema('s', 1, { nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/logs/*'] }] }),
    ]
    for (const [request, expected] of [
      ['GET /healthz', 's'],
      ['POST /healthz', undefined],
      ['GET /healthz/ping', 's'],
      ['GET /healthzz', undefined],
      ['GET /logs/a/b', 's'],
      ['GET /log', undefined],
      ['GET /api/v1/pods', undefined],
    ] as const) {
      const [method = '', path = ''] = request.split(' ')
      assert.equal(classOf(schemas, {}, method, path), expected, request)
    }
  })
})
