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

describe('planLeased', () => {
  const table: readonly [
    string,
    { there: EndpointSubset[]; ips: string[]; leaving?: boolean; expected: EndpointSubset[] },
  ][] = [
    ['starts with its own address', { there: [], ips: [own.ip], expected: [subset([own.ip])] }],
    [
      'adds every server with a lease, in order',
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
      'sets its own ports if it is alone',
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
      'repairs a repeated address',
      { there: [subset([own.ip, own.ip])], ips: [own.ip, '10.9.0.1'], expected: [subset(['10.9.0.1', own.ip])] },
    ],
    [
      'removes only its own address on shutdown',
      {
        there: [subset(['10.9.0.1', own.ip], others)],
        ips: ['10.9.0.1'],
        leaving: true,
        expected: [subset(['10.9.0.1'], others)],
      },
    ],
    [
      'leaves unknown subsets alone on shutdown',
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

  it('keeps changes of users if the addresses are correct', () => {
    const there = [{ addresses: [{ ip: own.ip, nodeName: 'n' }], ports }]
    assert.deepEqual(planLeased(there, [own.ip], own), there)
  })
})

describe('planCounted', () => {
  const table: readonly [string, EndpointSubset[], number, EndpointSubset[]][] = [
    ['starts with its own address', [], 1, [subset([own.ip])]],
    ['adds its own address', [subset(['10.9.0.1'])], 2, [subset(['10.9.0.1', own.ip])]],
    ['keeps its address if it is present', [subset(['10.9.0.1', own.ip])], 2, [subset(['10.9.0.1', own.ip])]],
    ['replaces the address after its own', [subset(['10.9.0.1', '10.9.0.3'])], 2, [subset(['10.9.0.1', own.ip])]],
    [
      'replaces the first address if its own is the last',
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

describe('planWithout', () => {
  it('removes only the address of this server', () => {
    assert.deepEqual(planWithout([subset(['10.9.0.1', own.ip])], own.ip), [subset(['10.9.0.1'])])
    assert.deepEqual(planWithout([subset([own.ip])], own.ip), [])
    assert.deepEqual(planWithout([], own.ip), [])
  })
})

describe('planSlice', () => {
  const ready = (ip: string): object => ({ addresses: [ip], conditions: { ready: true } })

  it('is IPv6 if all addresses are', () => {
    assert.deepEqual(planSlice([subset(['fd00::1'])]), { addressType: 'IPv6', endpoints: [ready('fd00::1')], ports })
  })

  it('omits IPv6 addresses beside IPv4 ones', () => {
    const mixed = planSlice([subset(['10.9.0.1', 'fd00::1'])])
    assert.deepEqual(mixed, { addressType: 'IPv4', endpoints: [ready('10.9.0.1')], ports })
  })

  it('is empty without endpoints', () => {
    assert.deepEqual(planSlice([]), { addressType: 'IPv4', endpoints: [], ports: [] })
  })
})
