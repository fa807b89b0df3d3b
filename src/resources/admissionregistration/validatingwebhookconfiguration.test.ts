import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { rule, selector } from './requests.fixture.ts'
import { validatingWebhookConfiguration } from './validatingwebhookconfiguration.ts'

const { create, cells, read } = tryRules(validatingWebhookConfiguration, {
  off: ['ManifestBasedAdmissionControlConfig'],
})

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
    },
  ],
}

test('a ValidatingWebhookConfiguration describes a webhook that validates requests', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a ValidatingWebhookConfiguration rejects webhooks that cannot be called', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'webhooks.0.name',
      'short.name',
      [
        'webhooks[0].name: Invalid value: "short.name": should be a domain with at least three segments separated by dots',
      ],
    ],
    [
      'webhooks.0.clientConfig',
      {},
      ['webhooks[0].clientConfig: Required value: exactly one of url or service is required'],
    ],
    [
      'webhooks.0.clientConfig',
      { url: 'http://u:p@/x?q#f' },
      [
        'webhooks[0].clientConfig.url: Invalid value: "http": \'https\' is the only allowed URL scheme; desired format: https://host[/path]',
        'webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]',
        'webhooks[0].clientConfig.url: Invalid value: "u:p": user information is not permitted in the URL',
        'webhooks[0].clientConfig.url: Invalid value: "f": fragments are not permitted in the URL',
        'webhooks[0].clientConfig.url: Invalid value: "q": query parameters are not permitted in the URL',
      ],
    ],
    [
      'webhooks.0.clientConfig',
      { url: 'https://h:x/' },
      [
        'webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse "https://h:x/": invalid port ":x" after host; desired format: https://host[/path]',
      ],
    ],
    [
      'webhooks.0.clientConfig',
      { url: 'https://a b/' },
      [
        'webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse "https://a b/": invalid character " " in host name; desired format: https://host[/path]',
      ],
    ],
    [
      'webhooks.0.clientConfig',
      { url: 'https://h/%zz' },
      [
        'webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse "https://h/%zz": invalid URL escape "%zz"; desired format: https://host[/path]',
      ],
    ],
    [
      'webhooks.0.clientConfig',
      { url: ':' },
      [
        'webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse ":": missing protocol scheme; desired format: https://host[/path]',
      ],
    ],
    [
      'webhooks.0.clientConfig',
      { url: 'h:8/x' },
      [
        'webhooks[0].clientConfig.url: Invalid value: "h": \'https\' is the only allowed URL scheme; desired format: https://host[/path]',
        'webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]',
      ],
    ],
    [
      'webhooks.0.clientConfig.service',
      { namespace: '', name: 's', port: 0, path: 'a//B/' },
      [
        'webhooks[0].clientConfig.service.name: Required value',
        'webhooks[0].clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive',
        'webhooks[0].clientConfig.service.path: Invalid value: "a//B/": must start with a \'/\'',
        'webhooks[0].clientConfig.service.path: Invalid value: "a//B/": segment[0] may not be empty',
        'webhooks[0].clientConfig.service.path: Invalid value: "a//B/": segment[1] may not be empty',
        "webhooks[0].clientConfig.service.path: Invalid value: \"a//B/\": segment[2]: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    [
      'webhooks.0.clientConfig.service.path',
      '//',
      ['webhooks[0].clientConfig.service.path: Invalid value: "//": segment[0] may not be empty'],
    ],
    [
      'webhooks.0.rules.0.operations',
      ['*', 'CREATE'],
      [
        'webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify other operations',
      ],
    ],
    [
      'webhooks.0.rules.0.operations',
      ['create'],
      [
        'webhooks[0].rules[0].operations[0]: Unsupported value: "create": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
      ],
    ],
    [
      'webhooks.0.rules.0.resources',
      ['*', 'pods'],
      [
        'webhooks[0].rules[0].resources: Invalid value: ["*","pods"]: if \'*\' is present, must not specify other resources without subresources',
      ],
    ],
    [
      'webhooks.0.rules.0.resources',
      ['pods/*', 'pods/status', '*/x', 'a/x', '*/*', ''],
      [
        'webhooks[0].rules[0].resources[1]: Invalid value: "pods/status": if \'pods/*\' is present, must not specify pods/status',
        'webhooks[0].rules[0].resources[3]: Invalid value: "a/x": if \'*/x\' is present, must not specify a/x',
        'webhooks[0].rules[0].resources[5]: Required value',
        'webhooks[0].rules[0].resources: Invalid value: ["pods/*","pods/status","*/x","a/x","*/*",""]: if \'*/*\' is present, must not specify other resources',
      ],
    ],
    ['webhooks.0.rules.0.apiGroups', [], ['webhooks[0].rules[0].apiGroups: Required value']],
    [
      'webhooks.0.rules.0.apiVersions',
      ['*', ''],
      [
        'webhooks[0].rules[0].apiVersions: Invalid value: ["*",""]: if \'*\' is present, must not specify other API versions',
        'webhooks[0].rules[0].apiVersions[1]: Required value',
      ],
    ],
    [
      'webhooks.0.rules.0.scope',
      'Here',
      ['webhooks[0].rules[0].scope: Unsupported value: "Here": supported values: "*", "Cluster", "Namespaced"'],
    ],
    [
      'webhooks.0.failurePolicy',
      'Warn',
      ['webhooks[0].failurePolicy: Unsupported value: "Warn": supported values: "Fail", "Ignore"'],
    ],
    [
      'webhooks.0.sideEffects',
      undefined,
      ['webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun'],
    ],
    [
      'webhooks.0.sideEffects',
      'Some',
      ['webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'],
    ],
    [
      'webhooks.0.timeoutSeconds',
      31,
      ['webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds'],
    ],
    [
      'webhooks.0.admissionReviewVersions',
      ['v9', 'v9', '1'],
      [
        'webhooks[0].admissionReviewVersions[1]: Invalid value: "v9": duplicate version',
        "webhooks[0].admissionReviewVersions[2]: Invalid value: \"1\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        'webhooks[0].admissionReviewVersions: Invalid value: ["v9","v9","1"]: must include at least one of v1, v1beta1',
      ],
    ],
    [
      'webhooks.0.admissionReviewVersions',
      [],
      ['webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1'],
    ],
    [
      'webhooks.0.matchConditions',
      [
        { name: 'a', expression: ' ' },
        { name: 'a', expression: 'true' },
        { name: '', expression: 'true' },
      ],
      [
        'webhooks[0].matchConditions[0].expression: Required value',
        'webhooks[0].matchConditions[1].name: Duplicate value: "a"',
        'webhooks[0].matchConditions[2].name: Required value',
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a ValidatingWebhookConfiguration has failurePolicy Fail, a timeout of ten seconds and port 443 by default', () => {
  const { webhooks } = read({
    metadata: { name: 'x' },
    webhooks: [
      {
        name: 'a.b.c',
        clientConfig: { service: { name: 's', namespace: 'n' } },
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        rules: [{ operations: ['*'] }],
      },
    ],
  })
  assert.deepEqual(
    { webhooks },
    {
      webhooks: [
        {
          name: 'a.b.c',
          clientConfig: { service: { namespace: 'n', name: 's', port: 443 } },
          rules: [{ operations: ['*'], scope: '*' }],
          failurePolicy: 'Fail',
          matchPolicy: 'Equivalent',
          namespaceSelector: {},
          objectSelector: {},
          sideEffects: 'None',
          timeoutSeconds: 10,
          admissionReviewVersions: ['v1'],
        },
      ],
    },
  )
})

test('a ValidatingWebhookConfiguration prints the number of webhooks', () => {
  assert.deepEqual(
    validatingWebhookConfiguration.columns?.map(({ name }) => name),
    ['Name', 'Webhooks', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 1, '<unknown>'])
  assert.equal(validatingWebhookConfiguration.storagePrefix, 'validatingwebhookconfigurations')
  assert.equal(validatingWebhookConfiguration.putNeedsVersion, true)
})

test('a ValidatingWebhookConfiguration keeps values on update that an older release allowed', async () => {
  const { update } = tryRules(validatingWebhookConfiguration, { off: ['ManifestBasedAdmissionControlConfig'] })
  const odd = {
    sideEffects: 'Some',
    admissionReviewVersions: ['v9'],
    objectSelector: { matchExpressions: [{ key: 'k', operator: 'In', values: ['a b'] }] },
    matchConditions: [{ name: '', expression: '' }],
  }
  const old = { ...body, webhooks: [{ ...body.webhooks[0], ...odd }] }
  assert.deepEqual((await update(changed(old, 'webhooks.0.timeoutSeconds', 7), old)).errors, [])
  assert.equal((await update(old, body)).errors.length, 5)
})

test('a ValidatingWebhookConfiguration warns of a name that is reserved for manifest files', async () => {
  const named = changed(body, 'metadata.name', 'x.static.k8s.io')
  assert.deepEqual((await create(named)).warnings, [
    'metadata.name: names ending with ".static.k8s.io" are reserved for static manifest-based configurations and cannot be managed via the API',
  ])
  assert.equal((await tryRules(validatingWebhookConfiguration).create(named)).errors.length, 1)
})
