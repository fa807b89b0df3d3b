import assert from 'node:assert/strict'
import { test } from 'node:test'

import { nodeRanges, rangeFault } from './address-ranges.ts'

const BOTH = { podCidr: '10.244.0.0/16,fd00:10:244::/56', serviceCidr: '10.96.0.0/16,fd00:10:96::/112' }

test('cluster address ranges are IPv4 or dual-stack', () => {
  const fault = (podCidr: string): string => rangeFault({ podCidr, serviceCidr: '10.96.0.0/16' }, undefined) ?? ''
  assert.equal(fault('10.244.0.0/16'), '')
  assert.equal(rangeFault(BOTH, undefined), undefined)
  assert.match(fault('10.244.0.0'), /--cluster-cidr is no list of ranges: "10\.244\.0\.0"/)
  assert.match(fault('fd00::/56'), /must begin with a range of IPv4/)
  assert.match(fault('10.244.0.0/16,10.245.0.0/16'), /one range of each family at most/)
  assert.match(fault(BOTH.podCidr), /must be of the same families/)
  assert.match(fault('10.96.0.0/12'), /overlap/)
})

test('cluster address ranges with dual stack need both families for pods and Services', () => {
  assert.match(rangeFault({ podCidr: BOTH.podCidr }, undefined) ?? '', /are needed both/)
  assert.equal(rangeFault({ podCidr: '10.1.0.0/16' }, undefined), undefined)
})

test('an existing cluster keeps its address ranges', () => {
  const before = { podCidr: '10.244.0.0/16', serviceCidr: '10.96.0.0/16' }
  assert.equal(rangeFault({}, before), undefined)
  assert.equal(rangeFault({ podCidr: '10.244.0.0/16' }, before), undefined)
  assert.match(rangeFault({ podCidr: '10.9.0.0/16' }, before) ?? '', /cannot change.*has 10\.244\.0\.0\/16/)
})

test('nodes get an IPv6 pod range if the cluster has one', () => {
  assert.equal(nodeRanges('/data', '10.108.0.0/24', '10.244.0.0/16'), '10.108.0.0/24')
  assert.match(
    nodeRanges('/data', '10.108.0.0/24', BOTH.podCidr),
    /^10\.108\.0\.0\/24,fd[0-9a-f]{2}:[0-9a-f]{4}:[0-9a-f]{4}::\/64$/,
  )
})
