import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { ingressClass } from './ingressclass.ts'

const { create, update, cells, read } = tryRules(ingressClass)

const body = {
  metadata: { name: 'x', annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } },
  spec: {
    controller: 'acme.io/ctl',
    parameters: { apiGroup: 'g.io', kind: 'K', name: 'n', scope: 'Namespace', namespace: 'ns' },
  },
}

test('an IngressClass is valid with a controller name and parameters', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('an IngressClass rejects invalid controllers and parameters', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.controller', '', ['spec.controller: Required value']],
    [
      'spec.controller',
      'nginx',
      ['spec.controller: Invalid value: "nginx": must be a domain-prefixed path (such as "acme.io/foo")'],
    ],
    ['spec.controller', `acme.io/${'a'.repeat(250)}`, ['spec.controller: Too long: may not be more than 250 bytes']],
    [
      'spec.parameters.scope',
      'All',
      ['spec.parameters.scope: Unsupported value: "All": supported values: "Cluster", "Namespace"'],
    ],
    [
      'spec.parameters.namespace',
      undefined,
      ["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
    ],
    [
      'spec.parameters.scope',
      'Cluster',
      ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
    ],
    ['spec.parameters.kind', '', ['spec.parameters.kind: Required value']],
    ['spec.parameters.name', '..', ['spec.parameters.name: Invalid value: "..": may not be \'..\'']],
    [
      'spec.parameters.apiGroup',
      'A',
      [
        "spec.parameters.apiGroup: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('an IngressClass rejects updates of controller', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.controller', 'acme.io/other', ['spec.controller: Invalid value: "acme.io/other": field is immutable']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body)).errors, errors, path)
  }
})

test('an IngressClass has cluster-scoped parameters by default', () => {
  const { spec } = read({
    metadata: { name: 'x' },
    spec: { controller: 'a.io/b', parameters: { kind: 'K', name: 'n' } },
  })
  assert.deepEqual({ spec }, { spec: { controller: 'a.io/b', parameters: { kind: 'K', name: 'n', scope: 'Cluster' } } })
})

test('an IngressClass prints "(default)" behind a default class, its controller and its parameters', () => {
  assert.deepEqual(
    ingressClass.columns?.map(({ name }) => name),
    ['Name', 'Controller', 'Parameters', 'Age'],
  )
  assert.deepEqual(cells(body), ['x (default)', 'acme.io/ctl', 'K.g.io/n', '<unknown>'])
  assert.equal(ingressClass.storagePrefix, 'ingressclasses')
})
