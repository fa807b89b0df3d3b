import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Service, ServiceSpec } from '#apis/core/v1.ts'
import type { Endpoint, EndpointSlice } from '#apis/discovery/v1.ts'

import { routesOf } from './routing.ts'
import { servicePortsOf } from './service-port.ts'

const VANTAGE = { family: 'IPv4', nodeName: 'here', zone: 'z1' } as const

function service(spec: ServiceSpec = {}, ingress: readonly { ip: string; ipMode?: string }[] = []): Service {
  return {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: { name: 'web', namespace: 'ns' },
    spec: { clusterIP: '10.0.0.9', clusterIPs: ['10.0.0.9'], ports: [{ port: 80, targetPort: 8080 }], ...spec },
    status: { loadBalancer: { ingress: [...ingress] } },
  }
}

function slice(...endpoints: readonly Endpoint[]): EndpointSlice {
  return {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: { name: 'web-1', namespace: 'ns' },
    addressType: 'IPv4',
    ports: [{ name: '', protocol: 'TCP', port: 8080 }],
    endpoints: [...endpoints],
  }
}

const at = (ip: string, more: Partial<Endpoint> = {}): Endpoint => ({ addresses: [ip], conditions: {}, ...more })
const LEAVING = { ready: false, serving: true, terminating: true }
const GONE = { ready: false, serving: false, terminating: true }

function routed(spec: ServiceSpec, ...endpoints: readonly Endpoint[]): [cluster: string, local: string, any: boolean] {
  const [route] = routesOf(service(spec), [slice(...endpoints)], VANTAGE)
  const text = (all: readonly { readonly ip: string }[] = []): string => all.map(({ ip }) => ip).join()
  return [text(route?.cluster), text(route?.local), route?.hasEndpoints ?? false]
}

describe('routesOf() for a Service', () => {
  const local: ServiceSpec = {
    type: 'NodePort',
    externalTrafficPolicy: 'Local',
    ports: [{ port: 80, targetPort: 8080, nodePort: 30_000 }],
  }
  const zone = (name: string): Partial<Endpoint> => ({ hints: { forZones: [{ name }] } })
  const node = (name: string): Partial<Endpoint> => ({ hints: { forNodes: [{ name }], forZones: [{ name: 'z1' }] } })
  const cases: [what: string, spec: ServiceSpec, endpoints: Endpoint[], expected: ReturnType<typeof routed>][] = [
    ['returns no endpoints if there are none', {}, [], ['', '', false]],
    [
      'returns ready endpoints',
      {},
      [at('10.1.0.1'), at('10.1.0.2', { conditions: { ready: false } })],
      ['10.1.0.1', '', true],
    ],
    [
      'returns terminating endpoints if there are no others',
      {},
      [at('10.1.0.1', { conditions: LEAVING }), at('10.1.0.2', { conditions: GONE })],
      ['10.1.0.1', '', true],
    ],
    [
      'returns local endpoints with policy Local',
      { internalTrafficPolicy: 'Local' },
      [at('10.1.0.1', { nodeName: 'here' }), at('10.1.0.2')],
      ['', '10.1.0.1', true],
    ],
    [
      'reports that there are endpoints on other nodes',
      { internalTrafficPolicy: 'Local' },
      [at('10.1.0.2', { nodeName: 'there' })],
      ['', '', true],
    ],
    [
      'returns local endpoints only for external traffic with externalTrafficPolicy Local',
      local,
      [at('10.1.0.1', { nodeName: 'here' }), at('10.1.0.2')],
      ['10.1.0.1,10.1.0.2', '10.1.0.1', true],
    ],
    [
      'prefers terminating local endpoints to other nodes',
      local,
      [at('10.1.0.1', { nodeName: 'here', conditions: LEAVING }), at('10.1.0.2')],
      ['10.1.0.2', '10.1.0.1', true],
    ],
    [
      'returns endpoints of the zone with topology hints',
      {},
      [at('10.1.0.1', zone('z1')), at('10.1.0.2', zone('z2'))],
      ['10.1.0.1', '', true],
    ],
    [
      'returns endpoints of other zones if the zone has none',
      {},
      [at('10.1.0.1', zone('z3')), at('10.1.0.2', zone('z2'))],
      ['10.1.0.1,10.1.0.2', '', true],
    ],
    [
      'returns endpoints of all zones if hints are incomplete',
      {},
      [at('10.1.0.1', zone('z1')), at('10.1.0.2')],
      ['10.1.0.1,10.1.0.2', '', true],
    ],
    [
      'returns endpoints of the node with node hints',
      {},
      [at('10.1.0.1', node('here')), at('10.1.0.2', node('there'))],
      ['10.1.0.1', '', true],
    ],
    [
      'uses zone hints if there are no node hints',
      {},
      [at('10.1.0.1', node('other')), at('10.1.0.2', node('there'))],
      ['10.1.0.1,10.1.0.2', '', true],
    ],
    [
      'prefers a ready endpoint to a terminating one with the same address',
      {},
      [at('10.1.0.1'), at('10.1.0.1', { conditions: LEAVING })],
      ['10.1.0.1', '', true],
    ],
  ]
  for (const [what, spec, endpoints, expected] of cases)
    it(what, () => assert.deepEqual(routed(spec, ...endpoints), expected))

  for (const ip of ['127.0.0.1', '169.254.169.254', '0.0.0.0', '224.0.0.1', '255.255.255.255', 'x; flush ruleset', ''])
    it(`never returns the endpoint ${JSON.stringify(ip)}`, () => assert.deepEqual(routed({}, at(ip)), ['', '', false]))
})

describe('servicePortsOf() for a Service', () => {
  it('is empty for a headless or ExternalName Service, or without an address of the IP family', () => {
    for (const spec of [
      { clusterIPs: ['None'], clusterIP: 'None' },
      { type: 'ExternalName' },
      { clusterIPs: [], clusterIP: '' },
    ])
      assert.deepEqual(servicePortsOf(service(spec), 'IPv4'), [])
    assert.deepEqual(servicePortsOf(service(), 'IPv6'), [])
  })

  it('omits forbidden addresses', () => {
    const externalIPs = ['127.0.0.1', '192.0.2.1', '169.254.1.1', '::1', '0.0.0.0', '192.0.2.1']
    const ingress = [{ ip: '192.0.2.2' }, { ip: '192.0.2.3', ipMode: 'Proxy' }, { ip: '127.0.0.2' }]
    const [port] = servicePortsOf(service({ externalIPs }, ingress), 'IPv4')
    assert.deepEqual([port?.externalIps, port?.loadBalancerIps], [['192.0.2.1'], ['192.0.2.2']])
  })

  it('contains the source ranges of the IP family, and none if one allows all addresses', () => {
    const ranges = (...loadBalancerSourceRanges: string[]): readonly string[] | undefined =>
      servicePortsOf(service({ loadBalancerSourceRanges }), 'IPv4')[0]?.sourceRanges
    const own = ['192.0.2.0/24', '10.0.0.0/8', '10.1.0.0/16']
    assert.deepEqual(ranges('192.0.2.7/24', ' 10.0.0.0/8', '10.1.2.3/16', 'fd00::/8'), own)
    assert.deepEqual(ranges('10.0.0.0/8', '0.0.0.0/0'), [])
  })
})
