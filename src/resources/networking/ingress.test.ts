import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { ingress } from './ingress.ts'

const { create, update, cells } = tryRules(ingress)

const body = {
  metadata: { name: 'x', namespace: 'n', annotations: { 'kubernetes.io/ingress.class': 'nginx' } },
  spec: {
    ingressClassName: 'nginx',
    defaultBackend: { service: { name: 'svc', port: { number: 80 } } },
    tls: [{ hosts: ['a.example.com', '*.example.com'], secretName: 'sec' }],
    rules: [
      {
        host: 'a.example.com',
        http: {
          paths: [
            { path: '/a', pathType: 'Prefix', backend: { service: { name: 'svc', port: { name: 'http' } } } },
            {
              path: '/x',
              pathType: 'ImplementationSpecific',
              backend: { resource: { apiGroup: 'g.io', kind: 'K', name: 'n' } },
            },
          ],
        },
      },
      {
        host: '*.b.io',
        http: {
          paths: [{ path: '/', pathType: 'Exact', backend: { service: { name: '1svc', port: { number: 1 } } } }],
        },
      },
    ],
  },
  status: { loadBalancer: { ingress: [{ ip: '1.2.3.4' }, { hostname: 'h.io' }, { ip: '1.02.3.4' }] } },
}

test('an Ingress accepts hosts, paths and backends', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('an Ingress rejects invalid hosts, paths and backends', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec', {}, ['spec: Invalid value: null: either `defaultBackend` or `rules` must be specified']],
    [
      'spec.rules.0.host',
      '1.2.3.4',
      ['spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address'],
    ],
    [
      'spec.rules.0.host',
      'A',
      [
        "spec.rules[0].host: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    [
      'spec.rules.1.host',
      '*.*.b',
      [
        "spec.rules[1].host: Invalid value: \"*.*.b\": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    ['spec.rules.0.http.paths', [], ['spec.rules[0].http.paths: Required value']],
    [
      'spec.rules.0.http.paths.0.pathType',
      undefined,
      ['spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified'],
    ],
    [
      'spec.rules.0.http.paths.0.pathType',
      'Foo',
      [
        'spec.rules[0].http.paths[0].pathType: Unsupported value: "Foo": supported values: "Exact", "ImplementationSpecific", "Prefix"',
      ],
    ],
    [
      'spec.rules.0.http.paths.0.path',
      'a//b/..',
      [
        'spec.rules[0].http.paths[0].path: Invalid value: "a//b/..": must be an absolute path',
        'spec.rules[0].http.paths[0].path: Invalid value: "a//b/..": must not contain \'//\'',
        'spec.rules[0].http.paths[0].path: Invalid value: "a//b/..": cannot end with \'/..\'',
      ],
    ],
    [
      'spec.rules.0.http.paths.1.path',
      'x',
      ['spec.rules[0].http.paths[1].path: Invalid value: "x": must be an absolute path'],
    ],
    [
      'spec.rules.0.http.paths.0.backend',
      {},
      ['spec.rules[0].http.paths[0].backend: Invalid value: "": resource or service backend is required'],
    ],
    [
      'spec.rules.0.http.paths.0.backend.service.port',
      { name: 'http', number: 80 },
      ['spec.rules[0].http.paths[0].backend: Invalid value: "": cannot set both port name & port number'],
    ],
    [
      'spec.rules.0.http.paths.0.backend.service.port',
      {},
      ['spec.rules[0].http.paths[0].backend: Required value: port name or number is required'],
    ],
    [
      'spec.rules.0.http.paths.0.backend.service.name',
      '',
      ['spec.rules[0].http.paths[0].backend.service.name: Required value'],
    ],
    [
      'spec.rules.0.http.paths.1.backend.resource',
      { kind: '', name: 'a/b' },
      [
        'spec.rules[0].http.paths[1].backend.resource.kind: Required value',
        'spec.rules[0].http.paths[1].backend.resource.name: Invalid value: "a/b": may not contain \'/\'',
      ],
    ],
    [
      'spec.tls.0.hosts',
      ['*.*'],
      [
        "spec.tls[0].hosts[0]: Invalid value: \"*.*\": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    [
      'spec.tls.0.secretName',
      'A',
      [
        "spec.tls[0].secretName: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    [
      'spec.ingressClassName',
      'other',
      [
        'annotations.kubernetes.io/ingress.class: Invalid value: "nginx": must match `ingressClassName` when both are specified',
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('an Ingress accepts addresses of load balancers in the status', async () => {
  assert.deepEqual((await update(body, body, 'status')).errors, [])
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'status.loadBalancer.ingress',
      [{ ip: '1.2.3' }],
      [
        'status.loadBalancer.ingress[0].ip: Invalid value: "1.2.3": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      ],
    ],
    [
      'status.loadBalancer.ingress',
      [{ hostname: '1.2.3.4' }],
      ['status.loadBalancer.ingress[0].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body, 'status')).errors, errors, path)
  }
})

test('an Ingress prints class, hosts, addresses and ports', () => {
  assert.deepEqual(
    ingress.columns?.map(({ name }) => name),
    ['Name', 'Class', 'Hosts', 'Address', 'Ports', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 'nginx', 'a.example.com,*.b.io', '1.02.3.4,1.2.3.4,h.io', '80, 443', '<unknown>'])
  assert.equal(ingress.storagePrefix, 'ingress')
})
