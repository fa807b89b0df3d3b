import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { rule, selector } from './requests.fixture.ts'
import { validatingAdmissionPolicyBinding } from './validatingadmissionpolicybinding.ts'

const { create, cells } = tryRules(validatingAdmissionPolicyBinding, { off: ['ManifestBasedAdmissionControlConfig'] })

const body = {
  metadata: { name: 'x' },
  spec: {
    policyName: 'p',
    paramRef: { name: 'n', namespace: 'ns', parameterNotFoundAction: 'Deny' },
    matchResources: {
      matchPolicy: 'Exact',
      namespaceSelector: selector(),
      objectSelector: selector(),
      resourceRules: [{ resourceNames: ['x', 'y'], ...rule() }],
      excludeResourceRules: [rule()],
    },
    validationActions: ['Deny', 'Audit'],
  },
}

test('a ValidatingAdmissionPolicyBinding refers to a policy', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a ValidatingAdmissionPolicyBinding rejects invalid policies, parameters and actions', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.policyName', '', ['spec.policyName: Required value']],
    [
      'spec.policyName',
      'A',
      [
        "spec.policyName: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    [
      'spec.paramRef',
      {},
      [
        'spec.paramRef: Required value: one of name or selector must be specified',
        'spec.paramRef.parameterNotFoundAction: Required value',
      ],
    ],
    [
      'spec.paramRef',
      { name: 'a/b', selector: {}, parameterNotFoundAction: 'Ask' },
      [
        'spec.paramRef.name: Invalid value: "a/b": may not contain \'/\'',
        'spec.paramRef.name: Forbidden: name and selector are mutually exclusive',
        'spec.paramRef.selector: Forbidden: name and selector are mutually exclusive',
        'spec.paramRef.parameterNotFoundAction: Unsupported value: "Ask": supported values: "Deny", "Allow"',
      ],
    ],
    [
      'spec.validationActions',
      [],
      ['spec.validationActions: Required value: at least one validation action is required'],
    ],
    [
      'spec.validationActions',
      ['Deny', 'Warn', 'Deny', 'Shout'],
      [
        'spec.validationActions[2]: Duplicate value: "Deny"',
        'spec.validationActions[3]: Unsupported value: "Shout": supported values: "Audit", "Deny", "Warn"',
        'spec.validationActions: Invalid value: ["Deny","Warn","Deny","Shout"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)',
      ],
    ],
    [
      'spec.matchResources.resourceRules.0.operations',
      [],
      ['spec.matchResources.resourceRules[0].operations: Required value'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a ValidatingAdmissionPolicyBinding prints the policy and its parameters', () => {
  assert.deepEqual(
    validatingAdmissionPolicyBinding.columns?.map(({ name }) => name),
    ['Name', 'PolicyName', 'ParamRef', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 'p', 'ns/n', '<unknown>'])
  assert.equal(validatingAdmissionPolicyBinding.storagePrefix, 'validatingadmissionpolicybindings')
  assert.equal(validatingAdmissionPolicyBinding.putNeedsVersion, true)
})
