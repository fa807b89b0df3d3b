import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { resourceClaimTemplate } from './resourceclaimtemplate.ts'

const { create, update, cells } = tryRules(resourceClaimTemplate)

const body = {
  metadata: { name: 'x', namespace: 'n' },
  spec: {
    metadata: { labels: { a: 'b' }, annotations: { c: 'd' } },
    spec: { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'c' } }] } },
  },
}

test('a ResourceClaimTemplate contains the claim spec', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a ResourceClaimTemplate rejects invalid metadata of claims', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.metadata.name', 'x', ['spec.metadata.name: Forbidden: cannot be set']],
    [
      'spec.metadata.labels',
      { 'a b': 'c' },
      [
        "spec.metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      ],
    ],
    [
      'spec.metadata.annotations',
      { 'a b': 'c' },
      [
        "spec.metadata.annotations: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      ],
    ],
    [
      'spec.spec.devices.requests.0.exactly.deviceClassName',
      '',
      ['spec.spec.devices.requests[0].exactly.deviceClassName: Required value'],
    ],
    [
      'spec.spec.devices.requests.0.name',
      '',
      [
        "spec.spec.devices.requests[0].name: Invalid value: \"\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a ResourceClaimTemplate rejects updates of spec', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'spec.metadata.labels',
      { a: 'c' },
      [
        'spec: Invalid value: {"metadata":{"labels":{"a":"c"},"annotations":{"c":"d"}},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","allocationMode":"ExactCount","count":1}}]}}}: field is immutable',
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body)).errors, errors, path)
  }
})

test('a ResourceClaimTemplate prints its name', () => {
  assert.deepEqual(
    resourceClaimTemplate.columns?.map(({ name }) => name),
    ['Name', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', '<unknown>'])
  assert.equal(resourceClaimTemplate.storagePrefix, 'resourceclaimtemplates')
  assert.equal(resourceClaimTemplate.deleteAnswersObject, true)
})
