import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { flowSchema } from './flowschema.ts'

const { create, update, cells, read } = tryRules(flowSchema)

const body = {
  metadata: { name: 'x' },
  spec: {
    priorityLevelConfiguration: { name: 'p' },
    matchingPrecedence: 500,
    distinguisherMethod: { type: 'ByUser' },
    rules: [
      {
        subjects: [
          { kind: 'User', user: { name: 'u' } },
          { kind: 'Group', group: { name: 'g' } },
          { kind: 'ServiceAccount', serviceAccount: { name: 's', namespace: 'n' } },
        ],
        resourceRules: [
          {
            verbs: ['get', 'list'],
            apiGroups: ['a', 'b'],
            resources: ['r', 's'],
            clusterScope: true,
            namespaces: ['n', 'm'],
          },
        ],
        nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['/healthz', '/a/*'] }],
      },
    ],
  },
  status: { conditions: [{ type: 'Dangling', status: 'True' }] },
}

test('a FlowSchema assigns requests to a priority level', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a FlowSchema rejects invalid precedences, subjects and rules', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'spec.matchingPrecedence',
      1,
      ["spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1"],
    ],
    [
      'spec.matchingPrecedence',
      10001,
      ['spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000'],
    ],
    ['spec.matchingPrecedence', -1, ['spec.matchingPrecedence: Invalid value: -1: must be a positive value']],
    [
      'spec.distinguisherMethod.type',
      'ByGroup',
      [
        'spec.distinguisherMethod.type: Unsupported value: {"type":"ByGroup"}: supported values: "ByNamespace", "ByUser"',
      ],
    ],
    [
      'spec.priorityLevelConfiguration.name',
      '',
      ['spec.priorityLevelConfiguration.name: Required value: must reference a priority level'],
    ],
    [
      'spec.rules.0',
      { subjects: [] },
      [
        'spec.rules[0].subjects: Required value: subjects must contain at least one value',
        'spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty',
      ],
    ],
    [
      'spec.rules.0.subjects',
      [
        { kind: 'User' },
        { kind: 'Node' },
        { kind: 'Group', group: { name: '' }, user: { name: 'u' } },
        { kind: 'ServiceAccount', serviceAccount: { name: '', namespace: '' } },
      ],
      [
        "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
        'spec.rules[0].subjects[1].kind: Unsupported value: "Node": supported values: "Group", "ServiceAccount", "User"',
        'spec.rules[0].subjects[2].group.name: Required value',
        "spec.rules[0].subjects[2].user: Forbidden: user is forbidden when subject kind is not 'User'",
        'spec.rules[0].subjects[3].serviceAccount.name: Required value',
        'spec.rules[0].subjects[3].serviceAccount.namespace: Required value: must specify namespace for service account',
      ],
    ],
    [
      'spec.rules.0.resourceRules',
      [{ verbs: ['*', 'get'], apiGroups: [], resources: ['*', 'r'] }],
      [
        'spec.rules[0].resourceRules[0].verbs: Invalid value: ["*","get"]: if \'*\' is present, must not specify other verbs',
        'spec.rules[0].resourceRules[0].apiGroups: Required value: resource rules must supply at least one api group',
        'spec.rules[0].resourceRules[0].resources: Invalid value: ["*","r"]: if \'*\' is present, must not specify other resources',
        'spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace',
      ],
    ],
    [
      'spec.rules.0.resourceRules',
      [{ verbs: ['fetch'], apiGroups: ['*'], resources: ['*'], namespaces: ['A'] }],
      [
        'spec.rules[0].resourceRules[0].verbs: Unsupported value: ["fetch"]: supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"',
        "spec.rules[0].resourceRules[0].namespaces[0]: Invalid value: \"A\": each member of this list must be '*' or a DNS-1123 label; a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      ],
    ],
    [
      'spec.rules.0.nonResourceRules',
      [{ verbs: [], nonResourceURLs: ['', 'a', '/a b', '/a//b', '/a*', '/a/*'] }],
      [
        'spec.rules[0].nonResourceRules[0].verbs: Required value: verbs must contain at least one value',
        'spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "": must not be empty',
        'spec.rules[0].nonResourceRules[0].nonResourceURLs[1]: Invalid value: "a": must start with slash',
        'spec.rules[0].nonResourceRules[0].nonResourceURLs[2]: Invalid value: "/a b": must not contain white-space',
        'spec.rules[0].nonResourceRules[0].nonResourceURLs[3]: Invalid value: "/a//b": must not contain double slash',
        'spec.rules[0].nonResourceRules[0].nonResourceURLs[4]: Invalid value: "/a*": wildcard can only do suffix matching',
      ],
    ],
    [
      'metadata.name',
      'catch-all',
      [
        'spec: Invalid value: {"priorityLevelConfiguration":{"name":"p"},"matchingPrecedence":500,"distinguisherMethod":{"type":"ByUser"},"rules":[{"subjects":[{"kind":"User","user":{"name":"u"}},{"kind":"Group","group":{"name":"g"}},{"kind":"ServiceAccount","serviceAccount":{"namespace":"n","name":"s"}}],"resourceRules":[{"verbs":["get","list"],"apiGroups":["a","b"],"resources":["r","s"],"clusterScope":true,"namespaces":["n","m"]}],"nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["/healthz","/a/*"]}]}]}: spec of \'catch-all\' must equal the fixed value',
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a FlowSchema rejects two conditions of one type in its status', async () => {
  assert.deepEqual((await update(body, body, 'status')).errors, [])
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'status.conditions',
      [{ type: '' }, { type: 'Dangling' }, { type: 'Dangling' }],
      ['status.conditions[0].type: Required value', 'status.conditions[2].type: Duplicate value: "Dangling"'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body, 'status')).errors, errors, path)
  }
})

test('a FlowSchema has matchingPrecedence 1000 by default', () => {
  const { spec } = read({ metadata: { name: 'x' }, spec: { priorityLevelConfiguration: { name: 'p' } } })
  assert.deepEqual({ spec }, { spec: { priorityLevelConfiguration: { name: 'p' }, matchingPrecedence: 1000 } })
})

test('a FlowSchema prints its priority level and whether that is missing', () => {
  assert.deepEqual(
    flowSchema.columns?.map(({ name }) => name),
    ['Name', 'PriorityLevel', 'MatchingPrecedence', 'DistinguisherMethod', 'Age', 'MissingPL'],
  )
  assert.deepEqual(cells(body), ['x', 'p', 500, 'ByUser', '<unknown>', 'True'])
  assert.equal(flowSchema.storagePrefix, 'flowschemas')
})
