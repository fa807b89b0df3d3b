import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { serviceCidr } from './servicecidr.ts'

const { create, update, cells } = tryRules(serviceCidr)

const body = {
  metadata: { name: 'x' },
  spec: { cidrs: ['10.0.0.0/24', 'fd00::/64'] },
  status: {
    conditions: [
      { type: 'Ready', status: 'True', reason: 'r', message: '', lastTransitionTime: '2024-01-01T00:00:00Z' },
    ],
  },
}

test('a ServiceCIDR accepts one range for each family', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a ServiceCIDR rejects invalid ranges, too many, or two of one family', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.cidrs', [], ['spec.cidrs: Required value: at least one CIDR required']],
    [
      'spec.cidrs',
      ['10.0.0.0/24', 'fd00::/64', '10.1.0.0/24'],
      ['spec.cidrs: Invalid value: ["10.0.0.0/24","fd00::/64","10.1.0.0/24"]: may only hold up to 2 values'],
    ],
    [
      'spec.cidrs',
      ['10.0.0.1/24'],
      ['spec.cidrs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length'],
    ],
    [
      'spec.cidrs',
      ['10.0.0.0'],
      ['spec.cidrs[0]: Invalid value: "10.0.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'],
    ],
    [
      'spec.cidrs',
      ['FD00::/64'],
      ['spec.cidrs[0]: Invalid value: "FD00::/64": must be in canonical form ("fd00::/64")'],
    ],
    [
      'spec.cidrs',
      ['10.0.0.0/24', '10.1.0.0/24'],
      [
        'spec.cidrs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64',
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a ServiceCIDR rejects updates of cidrs', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.cidrs', ['10.1.0.0/24', 'fd00::/64'], ['spec.cidrs[0]: Invalid value: "10.1.0.0/24": field is immutable']],
    ['spec.cidrs', ['10.0.0.0/24'], ['spec.cidrs: Invalid value: ["10.0.0.0/24"]: field is immutable']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body)).errors, errors, path)
  }
})

test('a ServiceCIDR prints its ranges', () => {
  assert.deepEqual(
    serviceCidr.columns?.map(({ name }) => name),
    ['Name', 'CIDRs', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', '10.0.0.0/24,fd00::/64', '<unknown>'])
  assert.equal(serviceCidr.storagePrefix, 'servicecidrs')
})
