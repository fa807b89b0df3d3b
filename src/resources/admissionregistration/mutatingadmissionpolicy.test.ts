import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { mutatingAdmissionPolicy } from './mutatingadmissionpolicy.ts'
import { rule, selector } from './requests.fixture.ts'

const { create, cells } = tryRules(mutatingAdmissionPolicy, { off: ['ManifestBasedAdmissionControlConfig'] })

const body = {
  metadata: { name: 'x' },
  spec: {
    failurePolicy: 'Ignore',
    paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
    matchConstraints: {
      matchPolicy: 'Exact',
      namespaceSelector: selector(),
      objectSelector: selector(),
      resourceRules: [{ resourceNames: ['x', 'y'], ...rule() }],
      excludeResourceRules: [rule()],
    },
    matchConditions: [{ name: 'c', expression: 'true' }],
    variables: [{ name: 'v', expression: '1' }],
    mutations: [
      { patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object{}' } },
      { patchType: 'JSONPatch', jsonPatch: { expression: '[JSONPatch{op: "add", path: "/a", value: 1}]' } },
    ],
    reinvocationPolicy: 'Never',
  },
}

test('a MutatingAdmissionPolicy describes mutations of requests', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a MutatingAdmissionPolicy rejects invalid mutations', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.mutations', [], ['spec.mutations: Required value: mutations must contain at least one item']],
    ['spec.mutations.0', { patchType: '' }, ['spec.mutations[0].patchType: Required value']],
    [
      'spec.mutations.0',
      { patchType: 'Merge' },
      ['spec.mutations[0].patchType: Unsupported value: "Merge": supported values: "ApplyConfiguration", "JSONPatch"'],
    ],
    [
      'spec.mutations.0',
      { patchType: 'JSONPatch', applyConfiguration: { expression: 'Object{}' } },
      [
        'spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch',
        'spec.mutations[0].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch',
      ],
    ],
    [
      'spec.mutations.0',
      { patchType: 'ApplyConfiguration', jsonPatch: { expression: '[]' } },
      [
        'spec.mutations[0].applyConfiguration: Required value: must be specified when patchType is ApplyConfiguration',
        'spec.mutations[0].jsonPatch: Invalid value: "{jsonPatch}": must not be specified when patchType is ApplyConfiguration',
      ],
    ],
    ['spec.mutations.1.jsonPatch.expression', ' ', ['spec.mutations[1].jsonPatch.expression: Required value']],
    ['spec.reinvocationPolicy', '', ['spec.reinvocationPolicy: Required value']],
    [
      'spec.reinvocationPolicy',
      'Always',
      ['spec.reinvocationPolicy: Unsupported value: "Always": supported values: "IfNeeded", "Never"'],
    ],
    [
      'spec.matchConstraints.resourceRules.0.operations',
      ['DELETE'],
      [
        'spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"',
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a MutatingAdmissionPolicy prints the number of mutations and the param kind', () => {
  assert.deepEqual(
    mutatingAdmissionPolicy.columns?.map(({ name }) => name),
    ['Name', 'Mutations', 'ParamKind', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 2, 'v1/ConfigMap', '<unknown>'])
  assert.equal(mutatingAdmissionPolicy.storagePrefix, 'mutatingadmissionpolicies')
  assert.equal(mutatingAdmissionPolicy.putNeedsVersion, true)
})
