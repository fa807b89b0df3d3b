import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { apiService } from './apiservice.ts'

const { create, update, cells } = tryRules(apiService)

const body = {
  metadata: { name: 'v1.g.io' },
  spec: {
    group: 'g.io',
    version: 'v1',
    groupPriorityMinimum: 100,
    versionPriority: 10,
    service: { namespace: 'n', name: 's', port: 44 },
    caBundle: 'YWJj',
  },
  status: { conditions: [{ type: 'Available', status: 'True', lastTransitionTime: '2024-01-01T00:00:00Z' }] },
}

test('an APIService describes the server of a group version', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('an APIService rejects invalid names, priorities and services', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'metadata.name',
      'v1.other.io',
      ['metadata.name: Invalid value: "v1.other.io": must be `spec.version+"."+spec.group`: "v1.g.io"'],
    ],
    [
      'metadata.generateName',
      'v1.',
      ['metadata.generateName: Invalid value: "v1.": must be `spec.version+"."+spec.group`: "v1.g.io"'],
    ],
    ['spec.group', '', ['metadata.name: Invalid value: "v1.g.io": must be `spec.version+"."+spec.group`: "v1."']],
    [
      'spec.version',
      '1',
      [
        'metadata.name: Invalid value: "v1.g.io": must be `spec.version+"."+spec.group`: "1.g.io"',
        "spec.version: Invalid value: \"1\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
      ],
    ],
    [
      'spec.groupPriorityMinimum',
      20001,
      ['spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000'],
    ],
    ['spec.versionPriority', 0, ['spec.versionPriority: Invalid value: 0: must be positive and less than 1000']],
    ['spec.service', {}, ['spec.service.namespace: Required value', 'spec.service.name: Required value']],
    [
      'spec.insecureSkipTLSVerify',
      true,
      ['spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present'],
    ],
    ['spec.service', undefined, ['spec.caBundle: Invalid value: "3 bytes": local APIServices may not have a caBundle']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('an APIService accepts conditions in its status', async () => {
  assert.deepEqual((await update(body, body, 'status')).errors, [])
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'status.conditions.0.status',
      'Maybe',
      ['status.conditions[0].status: Unsupported value: "Maybe": supported values: "True", "False", "Unknown"'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body, 'status')).errors, errors, path)
  }
})

test('an APIService prints the service and its availability', () => {
  assert.deepEqual(
    apiService.columns?.map(({ name }) => name),
    ['Name', 'Service', 'Available', 'Age'],
  )
  assert.deepEqual(cells(body), ['v1.g.io', 'n/s', 'True', '<unknown>'])
  assert.equal(apiService.storagePrefix, 'apiregistration.k8s.io/apiservices')
  assert.equal(apiService.putNeedsVersion, true)
})
