import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { mutatingAdmissionPolicyBinding } from './mutatingadmissionpolicybinding.ts'
import { rule, selector } from './requests.fixture.ts'

const { create, cells } = tryRules(mutatingAdmissionPolicyBinding, { off: ['ManifestBasedAdmissionControlConfig'] })

const body = {
  metadata: { name: 'x' },
  spec: {
    policyName: 'p',
    paramRef: { name: 'n', parameterNotFoundAction: 'Deny' },
    matchResources: {
      matchPolicy: 'Exact',
      namespaceSelector: selector(),
      objectSelector: selector(),
      resourceRules: [{ resourceNames: ['x', 'y'], ...rule() }],
      excludeResourceRules: [rule()],
    },
  },
}

test('a MutatingAdmissionPolicyBinding refers to a policy', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a MutatingAdmissionPolicyBinding rejects invalid policies and match resources', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.policyName', undefined, ['spec.policyName: Required value']],
    [
      'spec.matchResources.resourceRules.0.operations',
      ['CREATE', 'DELETE'],
      [
        'spec.matchResources.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"',
      ],
    ],
    ['spec.paramRef.parameterNotFoundAction', '', ['spec.paramRef.parameterNotFoundAction: Required value']],
    [
      'spec.paramRef',
      { parameterNotFoundAction: 'Deny' },
      ['spec.paramRef: Required value: one of name or selector must be specified'],
    ],
    [
      'spec.matchResources.matchPolicy',
      'Some',
      ['spec.matchResources.matchPolicy: Unsupported value: "Some": supported values: "Equivalent", "Exact"'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a MutatingAdmissionPolicyBinding prints the policy and its parameters', () => {
  assert.deepEqual(
    mutatingAdmissionPolicyBinding.columns?.map(({ name }) => name),
    ['Name', 'PolicyName', 'ParamRef', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 'p', '*/n', '<unknown>'])
  assert.equal(mutatingAdmissionPolicyBinding.storagePrefix, 'mutatingadmissionpolicybindings')
  assert.equal(mutatingAdmissionPolicyBinding.putNeedsVersion, true)
})
