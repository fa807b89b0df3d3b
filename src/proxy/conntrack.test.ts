import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { flowsIn, staleFlows } from './conntrack.ts'
import type { Route } from './routing.ts'

const LISTED = `udp      17 29 src=10.244.2.2 dst=10.0.0.9 sport=4000 dport=53 [UNREPLIED] src=10.244.1.2 dst=10.244.2.2 sport=5353 dport=4000 mark=0 use=1
udp      17 29 src=10.244.2.2 dst=10.0.0.9 sport=4001 dport=53 src=10.244.1.3 dst=10.244.2.2 sport=5353 dport=4001 [ASSURED] mark=0 use=1
udp      17 29 src=192.0.2.2 dst=192.0.2.1 sport=4002 dport=30053 src=10.244.1.2 dst=10.244.1.1 sport=5353 dport=4002 mark=0 use=1
udp      17 29 src=10.244.2.2 dst=8.8.8.8 sport=4003 dport=53 src=8.8.8.8 dst=10.244.2.2 sport=53 dport=4003 mark=0 use=1
conntrack v1.4.7 (conntrack-tools): 4 flow entries have been shown.
`

function routeTo(...ips: readonly string[]): Route {
  const serving = ips.map((ip) => ({
    ip,
    port: 5353,
    isLocal: false,
    isReady: true,
    isServing: true,
    isTerminating: false,
    zoneHints: [],
    nodeHints: [],
  }))
  const port = {
    name: 'ns/dns',
    namespace: 'ns',
    service: 'dns',
    portName: '',
    protocol: 'udp' as const,
    clusterIp: '10.0.0.9',
    port: 53,
    nodePort: 30_053,
    externalIps: [],
    loadBalancerIps: [],
    sourceRanges: [],
    affinitySeconds: 0,
    isInternalLocal: false,
    isExternalLocal: false,
    healthCheckNodePort: 0,
  }
  const here = { local: [], readyHere: [], endpoints: ips.length }
  return { port, cluster: serving, ...here, hasEndpoints: ips.length > 0, serving }
}

describe('conntrack entries of UDP', () => {
  const stale = (...ips: readonly string[]): string[] => {
    const routed = [{ service: 'ns/dns', routes: new Map([['IPv4' as const, [routeTo(...ips)]]]), causedMs: [] }]
    return staleFlows(flowsIn(LISTED), routed, 'IPv4').map(({ sourcePort }) => sourcePort)
  }

  it('are parsed from the output of conntrack', () => {
    assert.deepEqual(flowsIn(LISTED)[0], {
      source: '10.244.2.2',
      sourcePort: '4000',
      address: '10.0.0.9',
      port: '53',
      endpoint: '10.244.1.2',
      endpointPort: '5353',
    })
    assert.equal(flowsIn(LISTED).length, 4)
  })

  it('are deleted if they lead to an address that is no endpoint of the Service', () => {
    assert.deepEqual(stale('10.244.1.3'), ['4000', '4002'])
    assert.deepEqual(stale('10.244.1.2', '10.244.1.3'), [])
  })

  it('stay if the Service has no endpoint, or if they belong to other Services', () => assert.deepEqual(stale(), []))
})
