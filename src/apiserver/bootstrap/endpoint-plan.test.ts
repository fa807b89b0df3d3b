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
    ['begins with itself', { there: [], ips: [own.ip], expected: [subset([own.ip])] }],
    [
      'adds whoever has a lease, in order',
      {
        there: [subset([own.ip])],
        ips: [own.ip, '10.9.0.10', '10.9.0.1'],
        expected: [subset(['10.9.0.1', '10.9.0.10', '10.9.0.2'])],
      },
    ],
    [
      'removes whoever has none',
      { there: [subset(['10.9.0.1', own.ip])], ips: [own.ip], expected: [subset([own.ip])] },
    ],
    [
      'leaves the ports of others alone',
      {
        there: [subset(['10.9.0.1'], others)],
        ips: ['10.9.0.1', own.ip],
        expected: [subset(['10.9.0.1', own.ip], others)],
      },
    ],
    [
      'has its own ports when it is alone',
      { there: [subset([own.ip], others)], ips: [own.ip], expected: [subset([own.ip])] },
    ],
    [
      'makes anew what is not one subset',
      {
        there: [subset(['1.1.1.1']), subset(['2.2.2.2'], others)],
        ips: [own.ip, '10.9.0.1'],
        expected: [subset(['10.9.0.1', own.ip])],
      },
    ],
    [
      'counts an address that is there twice as wrong',
      { there: [subset([own.ip, own.ip])], ips: [own.ip, '10.9.0.1'], expected: [subset(['10.9.0.1', own.ip])] },
    ],
    [
      'leaves the rest to the others when it goes',
      {
        there: [subset(['10.9.0.1', own.ip], others)],
        ips: ['10.9.0.1'],
        leaving: true,
        expected: [subset(['10.9.0.1'], others)],
      },
    ],
    [
      'touches nothing it does not understand when it goes',
      {
        there: [subset(['1.1.1.1']), subset(['2.2.2.2'])],
        ips: ['10.9.0.1'],
        leaving: true,
        expected: [subset(['1.1.1.1']), subset(['2.2.2.2'])],
      },
    ],
    ['leaves nothing when it was the last', { there: [subset([own.ip])], ips: [], leaving: true, expected: [] }],
  ]
  for (const [name, { there, ips, leaving = false, expected }] of table) {
    it(name, () => assert.deepEqual(planLeased(there, ips, leaving ? undefined : own), expected))
  }

  it('keeps what people have added to the addresses that are right', () => {
    const there = [{ addresses: [{ ip: own.ip, nodeName: 'n' }], ports }]
    assert.deepEqual(planLeased(there, [own.ip], own), there)
  })
})

describe('planCounted', () => {
  const table: readonly [string, EndpointSubset[], number, EndpointSubset[]][] = [
    ['begins with itself', [], 1, [subset([own.ip])]],
    ['adds itself', [subset(['10.9.0.1'])], 2, [subset(['10.9.0.1', own.ip])]],
    ['is there already', [subset(['10.9.0.1', own.ip])], 2, [subset(['10.9.0.1', own.ip])]],
    ['pushes out the one after it', [subset(['10.9.0.1', '10.9.0.3'])], 2, [subset(['10.9.0.1', own.ip])]],
    ['begins at the front when it is the last', [subset(['10.9.0.0', '10.9.0.1'])], 2, [subset(['10.9.0.1', own.ip])]],
    ['makes anew what is not one subset', [subset(['1.1.1.1']), subset(['2.2.2.2'])], 2, [subset([own.ip])]],
    ['leaves ports alone', [subset(['10.9.0.1'], others)], 2, [subset(['10.9.0.1', own.ip], others)]],
  ]
  for (const [name, there, count, expected] of table) {
    it(name, () => assert.deepEqual(planCounted(there, own, count), expected))
  }
})

describe('planWithout', () => {
  it('takes only its own address', () => {
    assert.deepEqual(planWithout([subset(['10.9.0.1', own.ip])], own.ip), [subset(['10.9.0.1'])])
    assert.deepEqual(planWithout([subset([own.ip])], own.ip), [])
    assert.deepEqual(planWithout([], own.ip), [])
  })
})

describe('planSlice', () => {
  const ready = (ip: string): object => ({ addresses: [ip], conditions: { ready: true } })

  it('is of IPv6 when everything is', () => {
    assert.deepEqual(planSlice([subset(['fd00::1'])]), { addressType: 'IPv6', endpoints: [ready('fd00::1')], ports })
  })

  it('leaves out IPv6 when there is something else', () => {
    const mixed = planSlice([subset(['10.9.0.1', 'fd00::1'])])
    assert.deepEqual(mixed, { addressType: 'IPv4', endpoints: [ready('10.9.0.1')], ports })
  })

  it('is empty without endpoints', () => {
    assert.deepEqual(planSlice([]), { addressType: 'IPv4', endpoints: [], ports: [] })
  })
})
