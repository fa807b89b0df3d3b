import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { ipAddress } from './ipaddress.ts'

const { create, update, cells } = tryRules(ipAddress)

const body = {
  metadata: { name: '10.0.0.1' },
  spec: { parentRef: { group: 'g.io', resource: 'services', namespace: 'ns', name: 'n' } },
}

test('an IPAddress has the address as its name and a parentRef', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('an IPAddress rejects names that are no address, and empty references', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['metadata.name', '10.0.0.01', ['metadata.name: Invalid value: "10.0.0.01": must not have leading 0s']],
    [
      'metadata.name',
      'x',
      ['metadata.name: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
    ],
    ['spec.parentRef', undefined, ['spec.parentRef: Required value']],
    ['spec.parentRef.resource', '', ['spec.parentRef.resource: Required value']],
    ['spec.parentRef.name', '', ['spec.parentRef.name: Required value']],
    ['spec.parentRef.namespace', 'a/b', ['spec.parentRef.namespace: Invalid value: "a/b": may not contain \'/\'']],
    [
      'spec.parentRef.group',
      'A',
      [
        "spec.parentRef.group: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('an IPAddress rejects updates of parentRef', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'spec.parentRef.name',
      'other',
      [
        'spec.parentRef: Invalid value: {"group":"g.io","resource":"services","namespace":"ns","name":"other"}: field is immutable',
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body)).errors, errors, path)
  }
})

test('an IPAddress prints its parentRef', () => {
  assert.deepEqual(
    ipAddress.columns?.map(({ name }) => name),
    ['Name', 'ParentRef'],
  )
  assert.deepEqual(cells(body), ['10.0.0.1', 'services.g.io/ns/n'])
  assert.equal(ipAddress.storagePrefix, 'ipaddresses')
})
