import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { EndpointSubset } from '#apis/core/v1.ts'

import { planCounted, planLeased, planSlice, planWithout } from './endpoint-plan.ts'

const ports = [{ name: 'https', port: 6443, protocol: 'TCP' }]
const others = [{ name: 'https', port: 7443, protocol: 'TCP' }]
const own = { ip: '10.9.0.2', ports }

function subset(ips: readonly string[], given = ports): EndpointSubset {
  return { addresses: ips.map((ip) => ({ ip })), ports: given }
}

describe('planLeased() for the endpoints of the kubernetes Service', () => {
  const table: readonly [
    string,
    { there: EndpointSubset[]; ips: string[]; leaving?: boolean; expected: EndpointSubset[] },
  ][] = [
    ['creates endpoints with the address of this server', { there: [], ips: [own.ip], expected: [subset([own.ip])] }],
    [
      'adds every server with a lease, in sorted order',
      {
        there: [subset([own.ip])],
        ips: [own.ip, '10.9.0.10', '10.9.0.1'],
        expected: [subset(['10.9.0.1', '10.9.0.10', '10.9.0.2'])],
      },
    ],
    [
      'removes servers without a lease',
      { there: [subset(['10.9.0.1', own.ip])], ips: [own.ip], expected: [subset([own.ip])] },
    ],
    [
      'keeps the ports if other servers exist',
      {
        there: [subset(['10.9.0.1'], others)],
        ips: ['10.9.0.1', own.ip],
        expected: [subset(['10.9.0.1', own.ip], others)],
      },
    ],
    [
      'sets the ports of this server if it is alone',
      { there: [subset([own.ip], others)], ips: [own.ip], expected: [subset([own.ip])] },
    ],
    [
      'replaces several subsets by one',
      {
        there: [subset(['1.1.1.1']), subset(['2.2.2.2'], others)],
        ips: [own.ip, '10.9.0.1'],
        expected: [subset(['10.9.0.1', own.ip])],
      },
    ],
    [
      'removes a repeated address',
      { there: [subset([own.ip, own.ip])], ips: [own.ip, '10.9.0.1'], expected: [subset(['10.9.0.1', own.ip])] },
    ],
    [
      'removes only the address of this server on shutdown',
      {
        there: [subset(['10.9.0.1', own.ip], others)],
        ips: ['10.9.0.1'],
        leaving: true,
        expected: [subset(['10.9.0.1'], others)],
      },
    ],
    [
      'keeps subsets of an unknown form on shutdown',
      {
        there: [subset(['1.1.1.1']), subset(['2.2.2.2'])],
        ips: ['10.9.0.1'],
        leaving: true,
        expected: [subset(['1.1.1.1']), subset(['2.2.2.2'])],
      },
    ],
    [
      'leaves no endpoints if it was the last server',
      { there: [subset([own.ip])], ips: [], leaving: true, expected: [] },
    ],
  ]
  for (const [name, { there, ips, leaving = false, expected }] of table) {
    it(name, () => assert.deepEqual(planLeased(there, ips, leaving ? undefined : own), expected))
  }

  it('keeps ports that users changed if the addresses are correct', () => {
    const there = [{ addresses: [{ ip: own.ip, nodeName: 'n' }], ports }]
    assert.deepEqual(planLeased(there, [own.ip], own), there)
  })
})

describe('planCounted() for the endpoints of the kubernetes Service', () => {
  const table: readonly [string, EndpointSubset[], number, EndpointSubset[]][] = [
    ['creates endpoints with the address of this server', [], 1, [subset([own.ip])]],
    ['adds the address of this server', [subset(['10.9.0.1'])], 2, [subset(['10.9.0.1', own.ip])]],
    ['changes nothing if the address is present', [subset(['10.9.0.1', own.ip])], 2, [subset(['10.9.0.1', own.ip])]],
    [
      'replaces the address after that of this server if there are too many',
      [subset(['10.9.0.1', '10.9.0.3'])],
      2,
      [subset(['10.9.0.1', own.ip])],
    ],
    [
      'replaces the first address if that of this server is the last',
      [subset(['10.9.0.0', '10.9.0.1'])],
      2,
      [subset(['10.9.0.1', own.ip])],
    ],
    ['replaces several subsets by one', [subset(['1.1.1.1']), subset(['2.2.2.2'])], 2, [subset([own.ip])]],
    ['keeps the ports', [subset(['10.9.0.1'], others)], 2, [subset(['10.9.0.1', own.ip], others)]],
  ]
  for (const [name, there, count, expected] of table) {
    it(name, () => assert.deepEqual(planCounted(there, own, count), expected))
  }
})

describe('planWithout() for the endpoints of the kubernetes Service', () => {
  it('removes only the address of this server', () => {
    assert.deepEqual(planWithout([subset(['10.9.0.1', own.ip])], own.ip), [subset(['10.9.0.1'])])
    assert.deepEqual(planWithout([subset([own.ip])], own.ip), [])
    assert.deepEqual(planWithout([], own.ip), [])
  })
})

describe('planSlice() for the EndpointSlice of the kubernetes Service', () => {
  const ready = (ip: string): object => ({ addresses: [ip], conditions: { ready: true } })

  it('plans an IPv6 slice if all addresses are IPv6', () => {
    assert.deepEqual(planSlice([subset(['fd00::1'])]), { addressType: 'IPv6', endpoints: [ready('fd00::1')], ports })
  })

  it('omits IPv6 addresses if there are IPv4 addresses', () => {
    const mixed = planSlice([subset(['10.9.0.1', 'fd00::1'])])
    assert.deepEqual(mixed, { addressType: 'IPv4', endpoints: [ready('10.9.0.1')], ports })
  })

  it('plans a slice without endpoints if there are none', () => {
    assert.deepEqual(planSlice([]), { addressType: 'IPv4', endpoints: [], ports: [] })
  })
})
