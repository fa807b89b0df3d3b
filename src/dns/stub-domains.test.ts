import assert from 'node:assert/strict'
import { test } from 'node:test'

import { serverOf, stubFault, stubsIn } from './stub-domains.ts'

test('a DNS stub domain has a list of servers, each with an address and an optional port', () => {
  const stubs = stubsIn([
    'Corp.Example.=10.1.2.3',
    'corp.example=10.1.2.4:5353',
    'six.example=[fd00::1]:5353',
    'of=nobody',
  ])
  assert.deepEqual(
    [...stubs],
    [
      [
        'corp.example',
        [
          { address: '10.1.2.3', port: 53 },
          { address: '10.1.2.4', port: 5353 },
        ],
      ],
      ['six.example', [{ address: 'fd00::1', port: 5353 }]],
    ],
  )
  assert.equal(stubFault(['a=10.0.0.1', 'b', 'c=']), 'b')
  assert.equal(stubFault(['a=[fd00::1]']), undefined)
})

test('an upstream DNS server consists of an address and an optional port', () => {
  assert.deepEqual(serverOf('10.1.2.3'), { address: '10.1.2.3', port: 53 })
  assert.deepEqual(serverOf('fd00::1'), { address: 'fd00::1', port: 53 })
  assert.deepEqual(serverOf('[fd00::1]:5353'), { address: 'fd00::1', port: 5353 })
  assert.equal(serverOf('dns.example'), undefined)
})
