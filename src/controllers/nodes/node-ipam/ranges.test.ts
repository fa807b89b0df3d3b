import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { formatCidr } from '#lib/net/cidr.ts'

import { controllerSettings, type ControllerSettings } from '../../settings.ts'
import { planRanges } from './ranges.ts'

const next = (chosen: Partial<ControllerSettings>): string[] =>
  planRanges(controllerSettings(chosen)).map((range) => formatCidr(range.allocateNext()))

describe('node CIDR sizes', () => {
  const cases: readonly [Partial<ControllerSettings>, string[]][] = [
    [{ 'cluster-cidr': '10.244.0.0/16' }, ['10.244.0.0/24']],
    [{ 'cluster-cidr': 'fd00:1::/56' }, ['fd00:1::/64']],
    [{ 'cluster-cidr': '10.244.0.0/16', 'node-cidr-mask-size': 26 }, ['10.244.0.0/26']],
    [{ 'cluster-cidr': 'fd00:1::/56', 'node-cidr-mask-size-ipv6': 60 }, ['fd00:1::/60']],
    [
      { 'cluster-cidr': 'fd00:1::/56,10.244.0.0/16', 'node-cidr-mask-size-ipv4': 25, 'node-cidr-mask-size-ipv6': 72 },
      ['fd00:1::/72', '10.244.0.0/25'],
    ],
    [{ 'cluster-cidr': '10.0.0.0/16', 'service-cluster-ip-range': '10.0.0.0/23' }, ['10.0.2.0/24']],
    [
      { 'cluster-cidr': '10.0.0.0/16,fd00:1::/56', 'service-cluster-ip-range': '10.0.0.0/24,fd00:1::/112' },
      ['10.0.1.0/24', 'fd00:1:0:1::/64'],
    ],
    [{ 'cluster-cidr': '10.0.0.0/16', 'service-cluster-ip-range': 'nothing' }, ['10.0.0.0/24']],
  ]
  for (const [chosen, pieces] of cases) {
    it(`are ${pieces.join(' and ')} with the flags ${JSON.stringify(chosen)}`, () =>
      assert.deepEqual(next(chosen), pieces))
  }
})

describe('flags of node IPAM', () => {
  const dual = '10.244.0.0/16,fd00:1::/56'
  const cases: readonly [Partial<ControllerSettings>, string][] = [
    [{}, 'invalid CIDR[0]: <nil> (invalid CIDR address: )'],
    [{ 'cluster-cidr': '10.0.0.0/16,x' }, 'invalid CIDR[1]: <nil> (invalid CIDR address: x)'],
    [
      { 'cluster-cidr': '10.0.0.0/16,10.1.0.0/16' },
      'len of ClusterCIDRs==2 and they are not configured as dual stack (at least one from each IPFamily',
    ],
    [{ 'cluster-cidr': `${dual},10.1.0.0/16` }, 'length of clusterCIDRs is:3 more than max allowed of 2'],
    [
      { 'cluster-cidr': dual, 'node-cidr-mask-size': 24 },
      'usage of --node-cidr-mask-size is not allowed with dual-stack clusters',
    ],
    [
      { 'cluster-cidr': '10.0.0.0/16', 'node-cidr-mask-size': 24, 'node-cidr-mask-size-ipv4': 25 },
      'usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if --node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific flags',
    ],
    [
      { 'cluster-cidr': '10.0.0.0/16', 'node-cidr-mask-size-ipv6': 64 },
      'usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster',
    ],
    [
      { 'cluster-cidr': 'fd00::/56', 'node-cidr-mask-size-ipv4': 24 },
      'usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster',
    ],
    [
      { 'cluster-cidr': '10.0.0.0/25' },
      'Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to --node-cidr-mask-size configured for CIDR family',
    ],
    [{ 'cluster-cidr': 'fd00::/40' }, 'New CIDR set failed; the node CIDR size is too big'],
    [
      { 'cluster-cidr': dual, 'service-cluster-ip-range': '10.0.0.0/24,10.1.0.0/24' },
      'serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles)',
    ],
    [
      { 'cluster-cidr': dual, 'cidr-allocator-type': 'CloudAllocator' },
      "--cidr-allocator-type is set to 'CloudAllocator' but cloud provider is not configured",
    ],
    [{ 'cluster-cidr': dual, 'cidr-allocator-type': 'Mine' }, 'invalid CIDR allocator type: Mine'],
  ]
  for (const [chosen, message] of cases) {
    it(`are refused: ${message}`, () => assert.throws(() => next(chosen), { message }))
  }
})
