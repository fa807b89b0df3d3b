import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { mutatingWebhookConfiguration } from './mutatingwebhookconfiguration.ts'
import { rule, selector } from './requests.fixture.ts'

const { create, cells, read } = tryRules(mutatingWebhookConfiguration, { off: ['ManifestBasedAdmissionControlConfig'] })

const body = {
  metadata: { name: 'x' },
  webhooks: [
    {
      name: 'a.b.example.com',
      clientConfig: { service: { namespace: 'ns', name: 'svc', path: '/a/b', port: 8443 } },
      rules: [rule()],
      failurePolicy: 'Ignore',
      matchPolicy: 'Exact',
      namespaceSelector: selector(),
      objectSelector: selector(),
      sideEffects: 'None',
      timeoutSeconds: 5,
      admissionReviewVersions: ['v1', 'v2'],
      matchConditions: [{ name: 'c', expression: 'true' }],
      reinvocationPolicy: 'IfNeeded',
    },
    {
      name: 'b.b.c',
      clientConfig: { url: 'https://h.io/x' },
      rules: [rule()],
      failurePolicy: 'Ignore',
      matchPolicy: 'Exact',
      namespaceSelector: selector(),
      objectSelector: selector(),
      sideEffects: 'None',
      timeoutSeconds: 5,
      admissionReviewVersions: ['v1', 'v2'],
      matchConditions: [{ name: 'c', expression: 'true' }],
    },
  ],
}

test('a MutatingWebhookConfiguration describes a webhook that mutates requests', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a MutatingWebhookConfiguration is rejected for faults that only mutating webhooks can have', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'webhooks.0.reinvocationPolicy',
      'Always',
      ['webhooks[0].reinvocationPolicy: Unsupported value: "Always": supported values: "IfNeeded", "Never"'],
    ],
    ['webhooks.1.name', 'a.b.example.com', ['webhooks[1].name: Duplicate value: "a.b.example.com"']],
    [
      'webhooks.0.matchPolicy',
      'Some',
      ['webhooks[0].matchPolicy: Unsupported value: "Some": supported values: "Equivalent", "Exact"'],
    ],
    [
      'webhooks.1.clientConfig.url',
      'http://h',
      [
        'webhooks[1].clientConfig.url: Invalid value: "http": \'https\' is the only allowed URL scheme; desired format: https://host[/path]',
      ],
    ],
    [
      'webhooks.0.objectSelector.matchExpressions.0.values',
      [],
      [
        "webhooks[0].objectSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a MutatingWebhookConfiguration has reinvocationPolicy Never by default', () => {
  const { webhooks } = read({
    metadata: { name: 'x' },
    webhooks: [
      { name: 'a.b.c', clientConfig: { url: 'https://h' }, sideEffects: 'None', admissionReviewVersions: ['v1'] },
    ],
  })
  assert.deepEqual(
    { webhooks },
    {
      webhooks: [
        {
          name: 'a.b.c',
          clientConfig: { url: 'https://h' },
          failurePolicy: 'Fail',
          matchPolicy: 'Equivalent',
          namespaceSelector: {},
          objectSelector: {},
          sideEffects: 'None',
          timeoutSeconds: 10,
          admissionReviewVersions: ['v1'],
          reinvocationPolicy: 'Never',
        },
      ],
    },
  )
})

test('a MutatingWebhookConfiguration prints the number of webhooks', () => {
  assert.deepEqual(
    mutatingWebhookConfiguration.columns?.map(({ name }) => name),
    ['Name', 'Webhooks', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 2, '<unknown>'])
  assert.equal(mutatingWebhookConfiguration.storagePrefix, 'mutatingwebhookconfigurations')
  assert.equal(mutatingWebhookConfiguration.putNeedsVersion, true)
})
