import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Endpoint } from '../endpoints.ts'
import { localByCidr } from '../local-detector.ts'
import { routeOf } from '../routing.ts'
import type { ServicePort } from '../service-port.ts'
import { renderRoutes, type Rendering } from './rendering.ts'
import { sharedRules } from './shared-chains.ts'

const PORT: ServicePort = {
  name: 'ns/web',
  namespace: 'ns',
  service: 'web',
  portName: '',
  protocol: 'tcp',
  clusterIp: '10.0.0.9',
  port: 80,
  nodePort: 0,
  externalIps: [],
  loadBalancerIps: [],
  sourceRanges: [],
  affinitySeconds: 0,
  isInternalLocal: false,
  isExternalLocal: false,
  healthCheckNodePort: 0,
}
const VANTAGE = { family: 'IPv4', nodeName: 'here', zone: '' } as const
const SETTINGS = {
  family: 'IPv4',
  masqueradeMark: '0x00004000',
  detector: localByCidr('10.244.0.0/16'),
  nodeIp: '192.0.2.1',
} as const

function at(ip: string, isLocal = false): Endpoint {
  return { ip, port: 8080, isLocal, isReady: true, isServing: true, isTerminating: false, zoneHints: [], nodeHints: [] }
}

function render(port: Partial<ServicePort>, ...endpoints: readonly Endpoint[]): Rendering {
  return renderRoutes([routeOf({ ...PORT, ...port }, endpoints, VANTAGE)], SETTINGS)
}

/** Names without hashes. */
const plain = (text: string): string => text.replaceAll(/-[0-9A-F]{8}-ns\/web\/tcp\//g, '')

function chainsOf({ chains }: Rendering): Record<string, string[]> {
  return Object.fromEntries(Array.from(chains, ([name, rules]) => [plain(name), rules.map(plain)]))
}

describe('nftables rules of a Service', () => {
  it('use a shared chain with endpoints as map elements if the Service has only a cluster IP', () => {
    const { elements, chains, shared } = render({}, at('10.1.0.1', true), at('10.1.0.2'))
    assert.deepEqual(elements, [
      'hairpin-connections 10.1.0.1 . 10.1.0.1 . tcp . 8080',
      'endpoints-tcp 10.0.0.9 . 80 . 0 : 10.1.0.1 . 8080',
      'endpoints-tcp 10.0.0.9 . 80 . 1 : 10.1.0.2 . 8080',
      'cluster-ips 10.0.0.9',
      'service-ips 10.0.0.9 . tcp . 80 : goto any-of/2',
    ])
    assert.deepEqual([[...chains], shared], [[], ['any-of/2']])
    assert.match(sharedRules('any-of/2', 'IPv6')[1] ?? '', /^meta l4proto udp dnat ip6 to .* mod 2 map @endpoints-udp$/)
  })

  it('reject traffic on every address if there are no endpoints', () => {
    const { elements } = render({ nodePort: 30_000, externalIps: ['198.51.100.1'] })
    assert.deepEqual(elements, [
      'cluster-ips 10.0.0.9',
      'no-endpoint-services 10.0.0.9 . tcp . 80 : goto reject-chain',
      'no-endpoint-services 198.51.100.1 . tcp . 80 : goto reject-chain',
      'no-endpoint-nodeports tcp . 30000 : goto reject-chain',
    ])
  })

  it('masquerade outside traffic that may leave the node', () => {
    assert.deepEqual(chainsOf(render({ nodePort: 30_000 }, at('10.1.0.1'))), {
      service: ['meta l4proto tcp dnat ip to numgen random mod 1 map { 0 : 10.1.0.1 . 8080 }'],
      external: ['mark set mark or 0x00004000', 'goto service'],
    })
  })

  it('drop traffic with policy Local without local endpoints, except from the node and its pods', () => {
    const rendering = render({ nodePort: 30_000, isExternalLocal: true }, at('10.1.0.1'))
    assert.deepEqual(chainsOf(rendering)['external'], [
      'ip saddr 10.244.0.0/16 goto service',
      'fib saddr type local mark set mark or 0x00004000',
      'fib saddr type local goto service',
    ])
    assert.ok(rendering.elements.includes('no-endpoint-nodeports tcp . 30000 : drop'))
  })

  it('check session affinity before they choose an endpoint', () => {
    const rendering = render({ affinitySeconds: 60 }, at('10.1.0.1'))
    assert.deepEqual(Object.values(chainsOf(rendering)).map((rules) => rules.length), [2, 2]) // prettier-ignore
    assert.deepEqual([...rendering.sets.values()], ['type ipv4_addr ; flags dynamic,timeout ; timeout 60s'])
  })

  it('accept only the source ranges of the load balancer, and the node if it is among them', () => {
    const ranges = { loadBalancerIps: ['198.51.100.2'], sourceRanges: ['192.0.2.0/24'] }
    assert.deepEqual(chainsOf(render(ranges, at('10.1.0.1')))['firewall'], [
      'ip saddr != { 192.0.2.0/24, 198.51.100.2/32 } drop',
    ])
    // nft rejects overlapping ranges.
    const overlapping = { ...ranges, sourceRanges: ['203.0.113.0/25', '203.0.113.0/24'] }
    assert.deepEqual(chainsOf(render(overlapping, at('10.1.0.1')))['firewall'], ['ip saddr != { 203.0.113.0/24 } drop'])
  })
})
