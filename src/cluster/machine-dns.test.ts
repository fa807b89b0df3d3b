import assert from 'node:assert/strict'
import { test } from 'node:test'

import { dnsAddress, stubFault, stubsIn } from './machine-dns.ts'

test('the name server has the tenth address of services, of the first family', () => {
  assert.equal(dnsAddress('10.96.0.0/16'), '10.96.0.10')
  assert.equal(dnsAddress('fd00:10:96::/112,10.96.0.0/16'), 'fd00:10:96::a')
  assert.equal(dnsAddress('10.0.0.0/29'), undefined)
  assert.equal(dnsAddress(''), undefined)
})

test('stub domains have servers, by address and perhaps port', () => {
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
