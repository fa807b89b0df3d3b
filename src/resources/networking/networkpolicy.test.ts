import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { networkPolicy } from './networkpolicy.ts'

const { create, cells, read } = tryRules(networkPolicy)

const body = {
  metadata: { name: 'x', namespace: 'n' },
  spec: {
    podSelector: { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'k', operator: 'In', values: ['v'] }] },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [
      {
        ports: [{ protocol: 'TCP', port: 80, endPort: 90 }, { port: 'http' }],
        from: [
          {
            podSelector: { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'k', operator: 'In', values: ['v'] }] },
            namespaceSelector: {
              matchLabels: { a: 'b' },
              matchExpressions: [{ key: 'k', operator: 'In', values: ['v'] }],
            },
          },
          { ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16', '10.2.0.0/24'] } },
        ],
      },
    ],
    egress: [{ to: [{ ipBlock: { cidr: '2001:db8::/32' } }] }],
  },
}

test('a NetworkPolicy accepts peers and ports of both directions', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a NetworkPolicy rejects invalid ports, peers and blocks', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'spec.ingress.0.ports.0.protocol',
      'ICMP',
      ['spec.ingress[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"'],
    ],
    [
      'spec.ingress.0.ports.0.port',
      0,
      ['spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive'],
    ],
    [
      'spec.ingress.0.ports.0.endPort',
      79,
      ['spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to `port`'],
    ],
    [
      'spec.ingress.0.ports.0.port',
      'http',
      ['spec.ingress[0].ports[0].endPort: Invalid value: 90: may not be specified when `port` is non-numeric'],
    ],
    [
      'spec.ingress.0.ports.0.port',
      undefined,
      ['spec.ingress[0].ports[0].endPort: Invalid value: 90: may not be specified when `port` is not specified'],
    ],
    [
      'spec.ingress.0.ports.1.port',
      'HTTP_',
      [
        'spec.ingress[0].ports[1].port: Invalid value: "HTTP_": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
        'spec.ingress[0].ports[1].port: Invalid value: "HTTP_": must contain at least one letter (a-z)',
      ],
    ],
    ['spec.ingress.0.from.0', {}, ['spec.ingress[0].from[0]: Required value: must specify a peer']],
    [
      'spec.ingress.0.from.1.podSelector',
      {},
      ['spec.ingress[0].from[1]: Forbidden: may not specify both ipBlock and another peer'],
    ],
    ['spec.ingress.0.from.1.ipBlock.cidr', '', ['spec.ingress[0].from[1].ipBlock.cidr: Required value']],
    [
      'spec.ingress.0.from.1.ipBlock.cidr',
      '10.0.0.0',
      [
        'spec.ingress[0].from[1].ipBlock.cidr: Invalid value: "10.0.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
      ],
    ],
    [
      'spec.ingress.0.from.1.ipBlock.except.0',
      '11.0.0.0/16',
      ['spec.ingress[0].from[1].ipBlock.except[0]: Invalid value: "11.0.0.0/16": must be a strict subset of `cidr`'],
    ],
    [
      'spec.ingress.0.from.1.ipBlock.except.0',
      '10.0.0.0/8',
      ['spec.ingress[0].from[1].ipBlock.except[0]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`'],
    ],
    [
      'spec.policyTypes',
      ['Ingress', 'Egress', 'Ingress'],
      ['spec.policyTypes: Invalid value: ["Ingress","Egress","Ingress"]: may not specify more than two policyTypes'],
    ],
    [
      'spec.policyTypes',
      ['Both'],
      ['spec.policyTypes[0]: Unsupported value: "Both": supported values: "Ingress", "Egress"'],
    ],
    [
      'spec.podSelector.matchExpressions.0.operator',
      'Foo',
      ['spec.podSelector.matchExpressions[0].operator: Invalid value: "Foo": not a valid selector operator'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a NetworkPolicy defaults to TCP and to the directions of its rules', () => {
  const { spec } = read({ metadata: { name: 'x' }, spec: { podSelector: {}, egress: [{ ports: [{ port: 1 }] }] } })
  assert.deepEqual(
    { spec },
    {
      spec: {
        podSelector: {},
        egress: [{ ports: [{ protocol: 'TCP', port: 1 }] }],
        policyTypes: ['Ingress', 'Egress'],
      },
    },
  )
})

test('a NetworkPolicy prints its pod selector', () => {
  assert.deepEqual(
    networkPolicy.columns?.map(({ name }) => name),
    ['Name', 'Pod-Selector', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 'a=b,k in (v)', '<unknown>'])
  assert.equal(networkPolicy.storagePrefix, 'networkpolicies')
})
