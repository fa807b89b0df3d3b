import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { rule, selector } from './requests.fixture.ts'
import { validatingAdmissionPolicy } from './validatingadmissionpolicy.ts'

const { create, update, cells } = tryRules(validatingAdmissionPolicy, { off: ['ManifestBasedAdmissionControlConfig'] })

const body = {
  metadata: { name: 'x' },
  spec: {
    failurePolicy: 'Ignore',
    paramKind: { apiVersion: 'g.io/v1', kind: 'K' },
    matchConstraints: {
      matchPolicy: 'Exact',
      namespaceSelector: selector(),
      objectSelector: selector(),
      resourceRules: [{ resourceNames: ['x', 'y'], ...rule() }],
      excludeResourceRules: [rule()],
    },
    matchConditions: [
      { name: 'c', expression: 'true' },
      { name: 'd', expression: 'true' },
    ],
    variables: [{ name: 'v', expression: '1' }],
    validations: [{ expression: 'true', message: 'm', reason: 'Forbidden', messageExpression: '"x"' }],
    auditAnnotations: [
      { key: 'k', valueExpression: '"x"' },
      { key: 'l', valueExpression: '"x"' },
    ],
  },
  status: {
    observedGeneration: 2,
    typeChecking: { expressionWarnings: [{ fieldRef: 'spec.x', warning: 'w' }] },
    conditions: [
      { type: 'Ready', status: 'True', reason: 'r', message: '', lastTransitionTime: '2024-01-01T00:00:00Z' },
    ],
  },
}

test('a ValidatingAdmissionPolicy describes validations of requests', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a ValidatingAdmissionPolicy is rejected for faults outside of its expressions', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'spec.failurePolicy',
      'Warn',
      ['spec.failurePolicy: Unsupported value: "Warn": supported values: "Fail", "Ignore"'],
    ],
    [
      'spec.paramKind',
      { apiVersion: 'a/b/c', kind: 'K_' },
      [
        'spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
        "spec.paramKind.kind: Invalid value: \"K_\": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
      ],
    ],
    [
      'spec.paramKind',
      { apiVersion: 'G/1' },
      [
        "spec.paramKind.apiVersion: Invalid value: \"G\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        "spec.paramKind.apiVersion: Invalid value: \"1\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        'spec.paramKind.kind: Required value',
      ],
    ],
    ['spec.matchConstraints', undefined, ['spec.matchConstraints: Required value']],
    ['spec.matchConstraints.resourceRules', [], ['spec.matchConstraints.resourceRules: Required value']],
    [
      'spec.matchConstraints.resourceRules.0.resourceNames',
      ['a', 'a', '..'],
      [
        'spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "a"',
        'spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: "..": may not be \'..\'',
      ],
    ],
    [
      'spec.matchConstraints.matchPolicy',
      'Some',
      ['spec.matchConstraints.matchPolicy: Unsupported value: "Some": supported values: "Equivalent", "Exact"'],
    ],
    [
      'spec.variables',
      [
        { name: 'for', expression: '1' },
        { name: ' ', expression: ' ' },
      ],
      [
        'spec.variables[0].name: Invalid value: "for": must be a valid CEL identifier',
        'spec.variables[1].name: Required value: name is not specified',
        'spec.variables[1].expression: Required value: expression is not specified',
      ],
    ],
    [
      'spec.validations',
      [{ expression: '', message: ' ', messageExpression: ' ', reason: 'NotFound' }],
      [
        'spec.validations[0].expression: Required value: expression is not specified',
        'spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified',
        'spec.validations[0].message: Invalid value: " ": must be non-empty if specified',
        'spec.validations[0].reason: Unsupported value: "NotFound": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"',
      ],
    ],
    [
      'spec.validations.0.message',
      'a\nb',
      ['spec.validations[0].message: Invalid value: "a\\nb": must not contain line breaks'],
    ],
    [
      'spec.auditAnnotations',
      [
        { key: 'k', valueExpression: ' ' },
        { key: 'k', valueExpression: '"x"' },
        { key: '!', valueExpression: 'a'.repeat(5121) },
      ],
      [
        'spec.auditAnnotations[0].valueExpression: Required value: valueExpression is not specified',
        'spec.auditAnnotations[1].key: Duplicate value: "k"',
        "spec.auditAnnotations[2].key: Invalid value: \"x/!\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        'spec.auditAnnotations[2].valueExpression: Required value: must not exceed 5120 bytes in length',
      ],
    ],
    [
      'spec.matchConditions',
      Array.from({ length: 65 }, (_, at) => ({ name: `c${at}`, expression: 'true' })),
      ['spec.matchConditions: Too many: 65: must have at most 64 items'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a ValidatingAdmissionPolicy accepts the results of the type checker', async () => {
  assert.deepEqual((await update(body, body, 'status')).errors, [])
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'status.typeChecking.expressionWarnings',
      [{ fieldRef: ' ', warning: '' }],
      [
        'status.typeChecking.expressionWarnings[0].warning: Required value',
        'status.typeChecking.expressionWarnings[0].fieldRef: Required value',
      ],
    ],
    [
      'status.conditions.0.status',
      'Maybe',
      ['status.conditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body, 'status')).errors, errors, path)
  }
})

test('a ValidatingAdmissionPolicy prints the number of validations and the param kind', () => {
  assert.deepEqual(
    validatingAdmissionPolicy.columns?.map(({ name }) => name),
    ['Name', 'Validations', 'ParamKind', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 1, 'g.io/v1/K', '<unknown>'])
  assert.equal(validatingAdmissionPolicy.storagePrefix, 'validatingadmissionpolicies')
  assert.equal(validatingAdmissionPolicy.putNeedsVersion, true)
})
